package export

import (
	"context"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"text/template"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"github.com/google/uuid"
	"sigs.k8s.io/yaml"
)

// part is one file of an archive.
type part struct {
	name  string
	says  string                                                        // one line of the archive's README
	there func(context.Context, Archive, tenants.BrandID) (bool, error) // nil: always
	write func(context.Context, Archive, *Manifest, *output) error
}

// parts lists every file, in the order in which it is written: the trail comes
// last, so that whatever else is in the archive has its facts there.
func parts() []part {
	return []part{
		{name: "README.md", says: "this text", write: writeReadme},
		{name: "brand.yaml", says: "what the Brand set; `countersign brand apply -f brand.yaml` sets it", write: writeBrand},
		{name: "scopes.json", says: "what agents could be allowed, retired ones too", write: writeScopes},
		{name: "connections.json", says: "how people logged in, without secrets", write: writeConnections},
		{name: "domains.json", says: "the Brand's domains, and how each was proved", write: writeDomains},
		{name: "logo.png", says: "the logo, where there is one", there: hasLogo, write: writeLogo},
		{name: "members.json", says: "who worked on the Brand, and in which role", write: writeMembers},
		{name: "api-keys.json", says: "what its servers came with, without secrets", write: writeAPIKeys},
		{name: "webhooks.json", says: "where it was told, without secrets", write: writeWebhooks},
		{name: "jwks.json", says: "the public keys, as published: what they signed verifies with them", write: writeJWKS},
		{name: "jwks-archive.json", says: "public keys that were revoked, each with when and why", write: writeKeyArchive},
		{name: "grants.ndjson", says: "what people allowed agents, a grant a line, the newest first", write: writeGrants},
		{name: "consents.ndjson", says: "what they were shown and answered, word for word; `hash` is SHA-256 of `record`, and stands in the trail", write: writeConsents},
		{name: "suspended.ndjson", says: "in whose name nothing happened, a user a line", write: writeSuspended},
		{name: "receipts.ndjson", says: "the log of receipts, a line an entry, with the receipt where nobody was erased; `countersign verify log receipts.ndjson --jwks jwks.json` verifies all of it", write: writeReceipts},
		{name: "checkpoints.ndjson", says: "everything that was ever signed of that log", write: writeCheckpoints},
		{name: "event-details.ndjson", says: "what events told of `authorization_details`, which the trail holds only digests of: SHA-256 of `salt` and the value in canonical form (RFC 8785)", write: writeDetails},
		{name: "audit.ndjson", says: "everything that happened, a fact a line; it verifies by itself", write: writeAudit},
	}
}

//go:embed README.md.tmpl
var readme string

func writeReadme(_ context.Context, _ Archive, m *Manifest, out *output) error {
	t, err := template.New("README.md").Parse(readme)
	if err != nil {
		return err
	}
	type line struct{ Name, Says string }
	view := struct {
		Brand tenants.BrandID
		At    string
		Parts []line
	}{m.Brand, m.ExportedAt.Format(time.RFC3339), nil}
	for _, p := range parts() {
		view.Parts = append(view.Parts, line{p.name, p.says})
	}
	return t.Execute(out, view)
}

func writeBrand(ctx context.Context, a Archive, m *Manifest, out *output) error {
	f, err := tenants.FileOf(ctx, a.DB, m.Brand, a.Now())
	if err != nil {
		return err
	}
	if f.Logo != nil {
		*f.Logo = "file:logo.png" // which lies beside it
	}
	raw, err := yaml.Marshal(f)
	if err == nil {
		_, err = out.Write(raw)
	}
	return err
}

func writeScopes(ctx context.Context, a Archive, m *Manifest, out *output) error {
	type scope struct {
		tenants.FileScope
		RetiredAt *time.Time `json:"retired_at,omitempty"`
	}
	all, err := tenants.Scopes(ctx, a.DB, m.Brand)
	if err != nil {
		return err
	}
	view := make([]scope, len(all))
	for i, s := range all {
		view[i] = scope{tenants.FileScope(s.Scope), s.RetiredAt}
	}
	return out.whole(view)
}

func writeConnections(ctx context.Context, a Archive, m *Manifest, out *output) error {
	all, err := tenants.Connections(ctx, a.DB, m.Brand)
	if err != nil {
		return err
	}
	return out.whole(orNone(all))
}

func writeDomains(ctx context.Context, a Archive, m *Manifest, out *output) error {
	type domain struct {
		Host     string     `json:"host"`
		State    string     `json:"state"`
		AddedAt  time.Time  `json:"added_at"`
		ProvenAt *time.Time `json:"proven_at,omitempty"`
		Method   *string    `json:"method,omitempty"`
	}
	all, err := tenants.Domains(ctx, a.DB, m.Brand)
	if err != nil {
		return err
	}
	view := make([]domain, len(all))
	for i, d := range all {
		view[i] = domain{d.Host, d.State(a.Now()), d.AddedAt, d.ProvenAt, d.Method}
	}
	return out.whole(view)
}

func hasLogo(ctx context.Context, a Archive, brand tenants.BrandID) (bool, error) {
	_, _, err := tenants.Logo(ctx, a.DB, brand)
	if errors.Is(err, tenants.ErrNoLogo) {
		return false, nil
	}
	return err == nil, err
}

func writeLogo(ctx context.Context, a Archive, m *Manifest, out *output) error {
	picture, _, err := tenants.Logo(ctx, a.DB, m.Brand)
	if err == nil {
		_, err = out.Write(picture)
	}
	return err
}

func writeMembers(ctx context.Context, a Archive, m *Manifest, out *output) error {
	type member struct {
		ID    uuid.UUID    `json:"id"` // as the trail names it
		Name  string       `json:"name"`
		Email string       `json:"email"`
		Role  tenants.Role `json:"role"`
		Since time.Time    `json:"since"`
	}
	all, err := tenants.Members(ctx, a.DB, m.Brand)
	if err != nil {
		return err
	}
	view := make([]member, len(all))
	for i, one := range all {
		view[i] = member{one.Person, one.Name, one.Email, one.Role, one.Since}
	}
	return out.whole(view)
}

func writeAPIKeys(ctx context.Context, a Archive, m *Manifest, out *output) error {
	type key struct {
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Rights    []tenants.Right `json:"rights"`
		CreatedAt time.Time       `json:"created_at"`
		RevokedAt *time.Time      `json:"revoked_at,omitempty"`
		LastUsed  *time.Time      `json:"last_used_at,omitempty"`
	}
	all, err := tenants.APIKeys(ctx, a.DB, m.Brand)
	if err != nil {
		return err
	}
	view := make([]key, len(all))
	for i, k := range all {
		view[i] = key{k.ID, k.Name, k.Rights, k.CreatedAt, k.RevokedAt, k.LastUsedAt}
	}
	return out.whole(view)
}

func writeWebhooks(ctx context.Context, a Archive, m *Manifest, out *output) error {
	type webhook struct {
		ID        string    `json:"id"`
		URL       string    `json:"url"`
		Events    []string  `json:"events"`
		Format    string    `json:"format"`
		Enabled   bool      `json:"enabled"`
		CreatedAt time.Time `json:"created_at"`
	}
	all, err := tenants.Webhooks(ctx, a.DB, m.Brand)
	if err != nil {
		return err
	}
	view := make([]webhook, len(all))
	for i, h := range all {
		view[i] = webhook{h.ID, h.URL, h.Events, h.Format, h.Enabled, h.CreatedAt}
	}
	return out.whole(view)
}

func writeJWKS(ctx context.Context, a Archive, m *Manifest, out *output) error {
	return writeKeys(ctx, m, out, a.Keys.JWKS)
}

func writeKeyArchive(ctx context.Context, a Archive, m *Manifest, out *output) error {
	return writeKeys(ctx, m, out, a.Keys.Archive)
}

func writeKeys(ctx context.Context, m *Manifest, out *output, of func(context.Context, tenants.BrandID) (signing.Document, error)) error {
	d, err := of(ctx, m.Brand)
	if errors.Is(err, signing.ErrNoKey) { // the Brand is so new
		d, err = signing.Document{Body: []byte(`{"keys":[]}`)}, nil
	}
	if err == nil {
		_, err = out.Write(d.Body)
	}
	return err
}

// grant is one as the API shows it: the agent's own name for the person is not
// the Brand's to know.
type grant struct {
	ID        uuid.UUID         `json:"id"`
	Agent     string            `json:"agent"`
	AgentName string            `json:"agent_name,omitempty"`
	Subject   string            `json:"subject"`
	Scopes    []string          `json:"scopes"`
	Details   []json.RawMessage `json:"authorization_details,omitempty"`
	CreatedAt time.Time         `json:"created_at"`
	ExpiresAt time.Time         `json:"expires_at"`
	LastUsed  *time.Time        `json:"last_used_at,omitempty"`
	EndedAt   *time.Time        `json:"ended_at,omitempty"`
	EndReason string            `json:"end_reason,omitempty"`
}

func writeGrants(ctx context.Context, a Archive, m *Manifest, out *output) error {
	return a.Authority.EachGrant(ctx, m.Brand, func(g authority.Grant) error {
		return out.row(grant{
			g.ID, g.Agent, g.AgentName, g.Subject, g.Scopes, g.Details.Values(), g.CreatedAt.UTC(), g.ExpiresAt.UTC(), g.LastUsed, g.EndedAt, g.EndReason,
		})
	})
}

// consent is an answer. Record is a text, so that its hash can be checked.
type consent struct {
	ID        uuid.UUID  `json:"id"`
	GrantID   *uuid.UUID `json:"grant_id"`
	RequestID *uuid.UUID `json:"request_id"`
	Subject   string     `json:"subject"`
	At        time.Time  `json:"at"`
	Answer    string     `json:"answer"`
	Record    string     `json:"record"`
	Hash      string     `json:"hash"`
}

func writeConsents(ctx context.Context, a Archive, m *Manifest, out *output) error {
	return a.Authority.EachAnswer(ctx, m.Brand, func(c authority.StoredAnswer) error {
		return out.row(consent{
			c.ID, c.GrantID, c.RequestID, c.Subject, c.At.UTC(), c.Answer, c.Record, base64.RawURLEncoding.EncodeToString(c.Hash),
		})
	})
}

func writeSuspended(ctx context.Context, a Archive, m *Manifest, out *output) error {
	type suspended struct {
		Subject string    `json:"subject"`
		Since   time.Time `json:"since"`
	}
	return a.Authority.EachSuspended(ctx, m.Brand, func(s authority.Suspended) error {
		return out.row(suspended{s.Subject, s.SuspendedAt.UTC()})
	})
}

// logged is a line of the log as a verifier reads it.
type logged struct {
	Entry     string `json:"entry"`
	Salt      string `json:"salt,omitempty"`
	ContextID string `json:"contextId,omitempty"`
	MessageID string `json:"messageId,omitempty"`
	JWS       string `json:"jws,omitempty"`
}

func writeReceipts(ctx context.Context, a Archive, m *Manifest, out *output) error {
	return a.Authority.EachLogged(ctx, m.Brand, func(l authority.LoggedReceipt) error {
		return out.row(logged{l.Entry, base64.RawURLEncoding.EncodeToString(l.Salt), l.ContextID, l.MessageID, l.JWS})
	})
}

func writeCheckpoints(ctx context.Context, a Archive, m *Manifest, out *output) error {
	type checkpoint struct {
		Size int64  `json:"size"`
		JWS  string `json:"jws"`
	}
	return a.Authority.EachCheckpoint(ctx, m.Brand, func(c authority.SignedCheckpoint) error {
		return out.row(checkpoint{c.Size, c.JWS})
	})
}

func writeDetails(ctx context.Context, a Archive, m *Manifest, out *output) error {
	type told struct {
		Seq     int64             `json:"seq"` // of the event, in the trail
		Salt    authority.Octets  `json:"salt"`
		Details []json.RawMessage `json:"authorization_details"`
	}
	return a.Authority.EachDetails(ctx, m.Brand, func(d authority.StoredDetails) error {
		return out.row(told{d.Seq, d.Salt, d.Details})
	})
}

func writeAudit(ctx context.Context, a Archive, m *Manifest, out *output) error {
	return a.Authority.Trail(ctx, m.Brand, authority.Events{}, math.MaxInt, func(e authority.Entry) error {
		line, err := e.Line()
		if err == nil {
			_, err = out.Write(line)
		}
		out.rows++
		m.Head = authority.Head{Seq: e.Seq, Hash: e.Hash}.String()
		return err
	})
}

// orNone writes [] and not null.
func orNone[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}
