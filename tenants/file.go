package tenants

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// File is a Brand kept as one file. A part that is left out is left as it is; of
// one that lists things, the file names all: scopes that it does not name are
// retired, agents left to the Brand's rule, and Wishes says what becomes of the rest.
type File struct {
	Brand    BrandID         `json:"brand"`
	Settings json.RawMessage `json:"settings,omitempty"` // Settings, or some of them
	Scopes   []FileScope     `json:"scopes,omitempty"`
	// DetailTypes are all types of authorization_details; those it does not name are
	// removed.
	DetailTypes []FileDetailType `json:"detail_types,omitempty"`
	Agents      *FileAgents      `json:"agents,omitempty"`
	Interface   *FileInterface   `json:"interface,omitempty"`
	Login       *ConnectionDraft `json:"login,omitempty"`
	// AgentEndpoint is the URL at which a hosted Brand's own agent is called;
	// empty: nowhere.
	AgentEndpoint *string `json:"agent_endpoint,omitempty"`
	// Logo is sha256: and the digest of the one that is there, a reference to another
	// picture, or empty: none.
	Logo *string `json:"logo,omitempty"`
	// These are asked for: see Wishes.
	Domains  []string      `json:"domains,omitempty"`
	Webhooks []FileWebhook `json:"webhooks,omitempty"`
	Members  []FileMember  `json:"members,omitempty"`
	APIKeys  []KeyDraft    `json:"api_keys,omitempty"`
}

// FileScope is a scope in a File, in the card's order.
type FileScope struct {
	ID          string               `json:"id"`
	Description string               `json:"description"`
	Effect      string               `json:"effect"`
	Impact      string               `json:"impact"`
	Undo        string               `json:"undo,omitempty"`
	Texts       map[string]ScopeText `json:"texts,omitempty"`
}

// FileAgents are the agents that the Brand allows and denies by name.
type FileAgents struct {
	Allow []string `json:"allow,omitempty"`
	Deny  []string `json:"deny,omitempty"`
}

// FileInterface is Interface as it is set.
type FileInterface struct {
	Mode     Mode   `json:"mode"`
	URL      string `json:"interface_url,omitempty"`
	Provider string `json:"provider,omitempty"`
	Audience string `json:"audience,omitempty"`
}

// Interface is what the file asks for.
func (f FileInterface) Interface() Interface {
	return Interface{Mode: f.Mode, URL: f.URL, Provider: f.Provider, Audience: f.Audience}
}

// Fact is a line that a change writes, or would write, into the audit trail.
type Fact struct {
	Event  string
	Detail map[string]any
}

// PlanFile returns what ApplyFile would write into the trail, and changes
// nothing. Nothing: the Brand is as the file says.
func PlanFile(ctx context.Context, edit Editor, site Site, f File) ([]Fact, error) {
	var facts []Fact
	err := edit.change(ctx, f.Brand, "plan file", func(e *Edit) error {
		e.Note = func(event string, detail map[string]any) { facts = append(facts, Fact{event, detail}) }
		if err := e.applyFile(ctx, site, f); err != nil {
			return err
		}
		return errTrial
	})
	if !errors.Is(err, errTrial) {
		return nil, err
	}
	return facts, nil
}

// ApplyFile makes settings, scopes and agents what the file says, all of it or
// nothing. Twice is once. Interface, login and agent endpoint are for Asks.
func ApplyFile(ctx context.Context, edit Editor, site Site, f File) error {
	return edit.change(ctx, f.Brand, "apply file", func(e *Edit) error { return e.applyFile(ctx, site, f) })
}

func (e *Edit) applyFile(ctx context.Context, site Site, f File) error {
	change := func(s *Settings) error {
		if len(f.Settings) == 0 {
			return nil
		}
		d := json.NewDecoder(bytes.NewReader(f.Settings))
		d.DisallowUnknownFields()
		return d.Decode(s)
	}
	var after Settings
	if err := change(&after); err != nil {
		return Problems{{Field: "settings", Say: "are not what is expected: " + err.Error(), Mend: "countersign brand show writes the members there are"}}
	}
	languages := after.Languages
	if languages == nil {
		var err error
		if languages, err = e.languages(ctx); err != nil {
			return err
		}
	}
	if f.Scopes != nil {
		// Scopes first, in the languages that will be: the settings are then held
		// against them.
		if err := e.applyScopes(ctx, f.Scopes, languages); err != nil {
			return err
		}
	}
	if f.DetailTypes != nil {
		if err := e.applyDetailTypes(ctx, f.DetailTypes, languages); err != nil {
			return err
		}
	}
	if _, err := e.changeSettings(ctx, site, false, change); err != nil {
		return err
	}
	if f.Agents != nil {
		return e.applyAgents(ctx, *f.Agents)
	}
	return nil
}

func (e *Edit) applyScopes(ctx context.Context, scopes []FileScope, languages []string) error {
	ids := make([]string, len(scopes))
	for i, s := range scopes {
		ids[i] = s.ID
		if slices.Contains(ids[:i], s.ID) {
			return Problems{{Field: "scopes", Say: s.ID + " stands there twice", Mend: "take one away"}}
		}
		var p Problems
		err := e.saveScopeIn(ctx, Scope(s), languages)
		if errors.As(err, &p) {
			for n := range p {
				p[n].Field = "scopes." + s.ID + "." + p[n].Field
			}
			return p
		}
		if err != nil {
			return err
		}
	}
	all, err := e.scopes(ctx)
	if err != nil {
		return err
	}
	before := onCard(all)
	for _, s := range all {
		switch named := slices.Contains(ids, s.ID); {
		case named && s.RetiredAt != nil:
			e.Note("scope.restored", map[string]any{"scope": s.ID})
		case !named && s.RetiredAt == nil:
			e.Note("scope.retired", map[string]any{"scope": s.ID})
		}
	}
	if slices.Equal(before, ids) {
		return nil
	}
	stay := slices.DeleteFunc(slices.Clone(before), func(id string) bool { return !slices.Contains(ids, id) })
	order := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !slices.Contains(before, id) })
	if !slices.Equal(stay, order) {
		e.Note("scope.ordered", map[string]any{"before": before, "after": ids})
	}
	return e.arrange(ctx, ids)
}

func (e *Edit) applyAgents(ctx context.Context, want FileAgents) error {
	const q = `SELECT issuer, allowed, noted_at FROM brand_agents WHERE brand_id = @brand`
	rows, err := e.Query(ctx, q, pgx.NamedArgs{"brand": e.Brand})
	if err != nil {
		return err
	}
	listed, err := pgx.CollectRows(rows, pgx.RowToStructByName[ListedAgent])
	if err != nil {
		return err
	}
	for _, a := range listed {
		if !slices.Contains(want.Allow, a.Issuer) && !slices.Contains(want.Deny, a.Issuer) {
			if err := e.unlistAgent(ctx, a.Issuer); err != nil {
				return err
			}
		}
	}
	for _, issuer := range want.Allow {
		if slices.Contains(want.Deny, issuer) {
			return Problems{{Field: "agents", Say: issuer + " is allowed and denied", Mend: "take it away from one of the two"}}
		}
		if err := e.listAgent(ctx, issuer, true); err != nil {
			return err
		}
	}
	for _, issuer := range want.Deny {
		if err := e.listAgent(ctx, issuer, false); err != nil {
			return err
		}
	}
	return nil
}

// FileOf writes the Brand as a File. Secrets are not in it; where the login has
// one, the file needs a reference in its place.
func FileOf(ctx context.Context, db *DB, brand BrandID, now time.Time) (File, error) {
	f := File{Brand: brand}
	settings, err := SettingsOf(ctx, db, brand)
	if err != nil {
		return File{}, err
	}
	if f.Settings, err = json.Marshal(settings); err != nil {
		return File{}, err
	}
	scopes, err := Scopes(ctx, db, brand)
	if err != nil {
		return File{}, err
	}
	for _, s := range scopes {
		if s.RetiredAt == nil {
			f.Scopes = append(f.Scopes, FileScope(s.Scope))
		}
	}
	types, err := DetailTypes(ctx, db, brand)
	if err != nil {
		return File{}, err
	}
	for _, t := range types {
		if slices.ContainsFunc(f.Scopes, func(s FileScope) bool { return s.ID == t.Scope }) {
			f.DetailTypes = append(f.DetailTypes, FileDetailType(t))
		}
	}
	const all = 1 << 20
	agents, err := ListedAgents(ctx, db, brand, "", all)
	if err != nil {
		return File{}, err
	}
	f.Agents = &FileAgents{}
	for _, a := range agents {
		if a.Allowed {
			f.Agents.Allow = append(f.Agents.Allow, a.Issuer)
		} else {
			f.Agents.Deny = append(f.Agents.Deny, a.Issuer)
		}
	}
	i, err := InterfaceOf(ctx, db, brand)
	if err != nil {
		return File{}, err
	}
	f.Interface = &FileInterface{Mode: i.Mode, URL: i.URL, Provider: i.Provider}
	switch at, err := AgentEndpointOf(ctx, db, brand); {
	case err == nil:
		f.AgentEndpoint = &at.URL
	case !errors.Is(err, ErrNoAgentEndpoint):
		return File{}, err
	}
	switch _, hash, err := Logo(ctx, db, brand); {
	case err == nil:
		digest := LogoDigest + hash
		f.Logo = &digest
	case !errors.Is(err, ErrNoLogo):
		return File{}, err
	}
	if err := f.addTrust(ctx, db, now); err != nil {
		return File{}, err
	}
	return f, f.addLogin(ctx, db)
}

func (f *File) addLogin(ctx context.Context, db *DB) error {
	connections, err := Connections(ctx, db, f.Brand)
	if err != nil {
		return err
	}
	for _, c := range connections {
		if c.Live {
			f.Login = &ConnectionDraft{
				Kind: c.Kind, JWKSURI: c.JWKSURI, LoginURL: c.LoginURL, LoginOrigin: c.LoginOrigin,
				Issuer: c.Issuer, ClientID: c.ClientID, Auth: c.Auth, SubjectClaim: c.SubjectClaim,
				Scopes: c.Scopes, Prompt: c.Prompt, MaxAge: c.MaxAge,
			}
		}
	}
	return nil
}

// Is reports whether the connection is as the draft says, its secret included.
func (d ConnectionDraft) Is(c Connection, secret string) bool {
	d.tidy()
	c.CreatedAt, c.Live = time.Time{}, false
	same := Connection{
		ID: c.ID, Kind: d.Kind, Issuer: d.Issuer, ClientID: d.ClientID, Auth: d.Auth, SubjectClaim: d.SubjectClaim,
		Scopes: d.Scopes, Prompt: d.Prompt, MaxAge: d.MaxAge,
		JWKSURI: d.JWKSURI, LoginURL: d.LoginURL, LoginOrigin: d.LoginOrigin,
	}
	return reflect.DeepEqual(same, c) && (d.Secret == "" || d.Secret == secret)
}
