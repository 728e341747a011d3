package main

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/agent"
	"countersign.dev/cmd/countersign/pa/discovery"
	"countersign.dev/consent/federation"
	"countersign.dev/tenants"
	"countersign.dev/tenants/api"
	"countersign.dev/tenants/egress"
)

// site is where we are, as settings are checked against it.
func (p *parts) site() tenants.Site {
	return tenants.Site{PublicURL: p.publicURL, AllowLoopback: p.dev}
}

// prover looks for what Brands have published, through the client that goes
// nowhere inside.
func (p *parts) prover() tenants.Prover {
	return tenants.Prover{HTTP: p.outside, DNS: net.DefaultResolver}
}

// domainProven reports whether the Brand has shown that a domain is its own.
func (p *parts) domainProven(ctx context.Context, id tenants.BrandID) (bool, error) {
	b, err := p.brands.Brand(ctx, id)
	if err != nil {
		return false, err
	}
	return b.Proven, nil
}

// asks keeps changes until an owner decides.
func (p *parts) asks(now func() time.Time) *tenants.Asks {
	return &tenants.Asks{DB: p.db, Sealer: p.sealer, Now: now, Appliers: appliers(p.db, p.sealer, p.site())}
}

// appliers make true whatever waits for an owner.
func appliers(db *tenants.DB, sealer tenants.Sealer, site tenants.Site) map[string]tenants.Applier {
	all := tenants.SettingsAppliers(db, site)
	maps.Copy(all, tenants.WebhookAppliers(sealer, site))
	maps.Copy(all, tenants.AgentAppliers(db, sealer, site))
	return all
}

// programTrials are the test logins that programs and shells begin.
func (p *parts) programTrials(now func() time.Time) tenants.Trials {
	return tenants.Trials{
		DB: p.db, Sealer: p.sealer, Site: p.site(), Now: now, Begin: p.trials().Begin, Finish: p.trials().Finish,
	}
}

// adminAPI serves the Brands' own API.
func (p *parts) adminAPI(credentials *tenants.Credentials, verifier *agent.Verifier, now func() time.Time) *api.Handler {
	return api.New(api.Config{
		Brands: p.brands, Credentials: credentials, Keys: p.keys, Policy: p.policy, Authority: p.authority, Outbox: p.courier.Outbox,
		DB: p.db, Sealer: p.sealer, Site: p.site(), Prover: p.prover(), Asks: p.asks(now), Trials: p.programTrials(now), Now: now,
		Editor: func(keyID string) tenants.Editor {
			return p.authority.Editor(authority.By{Actor: "admin", ID: keyID, Channel: "api"})
		},
		ExamineInterface: p.examineInterface, ExamineLogin: p.examineLogin, TryAgent: p.caller.Try, Apply: p.applyAgent,
		Recognise: func(ctx context.Context, token string) (string, error) {
			who, err := verifier.Verify(ctx, token, p.publicURL)
			if errors.Is(err, agent.ErrRefused) {
				return "", nil
			}
			return who.Issuer, err
		},
		Addresses: p.addresses, Log: p.log,
	})
}

// applyAgent keeps an agent's application. Its proof is meant for us: the audience
// is our own origin.
func (p *parts) applyAgent(ctx context.Context, a api.Application, token string) (string, error) {
	err := p.agents.Apply(ctx, egress.New(egress.Config{AllowLoopback: p.dev}), agent.Application{
		Issuer: a.Issuer, JWKSURI: a.JWKSURI, Name: a.Name, Contact: a.Contact, Logo: a.Logo,
	}, token, p.publicURL)
	for _, told := range []error{
		agent.ErrRefused, agent.ErrBadIssuer, agent.ErrBadJWKSURI, agent.ErrBadName, agent.ErrBadContact,
		agent.ErrForeignKeys, agent.ErrBadLogo, agent.ErrKeysUnfetched, agent.ErrRegistered, agent.ErrFull,
	} {
		if errors.Is(err, told) {
			return err.Error(), nil
		}
	}
	return "", err
}

// examineInterface reads the Brand through its public URLs as a strict agent does.
func (p *parts) examineInterface(ctx context.Context, b *tenants.Brand) []tenants.Line {
	want := discovery.Expected{Interface: b.InterfaceURL, Issuer: b.Issuer, Split: b.Mode == tenants.Split}
	keys, err := p.keys.List(ctx, b.ID)
	if err == nil {
		for _, k := range keys {
			if k.State == "current" || k.State == "next" {
				want.KIDs = append(want.KIDs, k.KID)
			}
		}
	}
	return examined(ctx, p.outside, want)
}

func examined(ctx context.Context, outside *http.Client, want discovery.Expected) []tenants.Line {
	found := discovery.Client{Transport: outside.Transport}.Examine(ctx, want)
	out := make([]tenants.Line, len(found))
	for i, l := range found {
		out[i] = tenants.Line{What: l.What, At: l.At, State: "bad", Say: l.Say, Code: "agent.bad", About: [2]string{l.Say}}
		if l.OK {
			out[i].State, out[i].Code = "ok", "agent."+l.What
			if l.What == "issuer" && want.Split {
				out[i].Code, out[i].About = "agent.split", [2]string{want.Issuer}
			}
		}
	}
	return out
}

func (p *parts) examineLogin(ctx context.Context, l tenants.LoginConnection) []tenants.Line {
	return p.trials().Look(ctx, l)
}

// trials try login connections out.
func (p *parts) trials() federation.Trials {
	return federation.Trials{Client: p.federation, AllowLoopbackHTTP: p.dev}
}

// tidySettings looks again at a proof that is due, and drops answers that are no
// longer owed.
func (p *parts) tidySettings(ctx context.Context, id tenants.BrandID) error {
	now := time.Now()
	if err := errors.Join(tenants.PurgeCalls(ctx, p.db, id, now), tenants.PurgeTrials(ctx, p.db, id, now)); err != nil {
		return err
	}
	return tenants.RecheckDomain(ctx, p.db, p.authority.Editor(authority.ByUpkeep()), p.prover(), id, now)
}
