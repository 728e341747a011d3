package federation

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"

	"countersign.dev/tenants"
)

// Trials try connections out for whoever sets them up. They touch no login of
// anybody else.
type Trials struct {
	Client            *Client
	AllowLoopbackHTTP bool // development
}

func (t Trials) connection(l tenants.LoginConnection) Connection {
	return Connection{
		Issuer: l.Issuer, ClientID: l.ClientID, ClientSecret: l.ClientSecret, Key: l.Key,
		SubjectClaim: l.SubjectClaim, Scopes: l.Scopes, Prompt: l.Prompt, MaxAge: l.MaxAge,
		AllowLoopbackHTTP: t.AllowLoopbackHTTP,
	}
}

// Look tells what the connection's provider says of itself, line by line, or looks
// at the Brand's own page and its keys.
func (t Trials) Look(ctx context.Context, l tenants.LoginConnection) []tenants.Line {
	var found []Finding
	if l.Kind == tenants.KindAssertion {
		found = t.Client.ExaminePage(ctx, Page{
			Issuer: l.Issuer, JWKSURI: l.JWKSURI, LoginURL: l.LoginURL, AllowLoopbackHTTP: t.AllowLoopbackHTTP,
		})
	} else {
		found = t.Client.Examine(ctx, t.connection(l))
	}
	out := make([]tenants.Line, len(found))
	for i, f := range found {
		out[i] = tenants.Line{What: f.Field, At: f.Value, State: f.State, Say: f.Say, Mend: f.Mend, Offer: f.Offer, Code: f.Code, About: [2]string{f.About}}
	}
	return out
}

// Begin returns where a test login sends the browser, or what is in its way.
func (t Trials) Begin(ctx context.Context, l tenants.LoginConnection, try tenants.Try, uiLocales string) (string, tenants.Tried) {
	to, err := t.Client.Begin(ctx, t.connection(l), BeginParams{
		RedirectURI: try.RedirectURI, State: try.State, Nonce: try.Nonce, Verifier: try.Verifier, UILocales: uiLocales,
	})
	return to, tried(err)
}

// Finish is the other end of it.
func (t Trials) Finish(ctx context.Context, l tenants.LoginConnection, try tenants.Try, answer url.Values) tenants.Tried {
	id, claims, err := t.Client.Try(ctx, t.connection(l), FinishParams{
		Query: answer, State: try.State, Nonce: try.Nonce, Verifier: try.Verifier,
		RedirectURI: try.RedirectURI, StartedAt: try.Began,
	})
	out := tried(err)
	out.Subject, out.Account = id.Subject, id.Account
	for name, value := range claims {
		text, ok := value.(string)
		if !ok {
			raw, _ := json.Marshal(value) // it has just been read as JSON
			text = string(raw)
		}
		out.Claims = append(out.Claims, tenants.Claim{Name: shown(name), Value: shown(text)})
	}
	slices.SortFunc(out.Claims, func(a, b tenants.Claim) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// tried words an error for whoever may mend the connection.
func tried(err error) tenants.Tried {
	if err == nil {
		return tenants.Tried{}
	}
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		return tenants.Tried{Trouble: tenants.TryRefused, Why: refusal.Code}
	}
	for _, one := range []struct {
		is      error
		trouble string
	}{
		{ErrUnreachable, tenants.TryUnreachable},
		{ErrMisconfigured, tenants.TryMisconfigured},
	} {
		if errors.Is(err, one.is) {
			return tenants.Tried{Trouble: one.trouble, Why: shown(strings.TrimPrefix(err.Error(), one.is.Error()+": "))}
		}
	}
	return tenants.Tried{Trouble: tenants.TryInvalid, Why: shown(strings.TrimPrefix(err.Error(), ErrInvalid.Error()+": "))}
}
