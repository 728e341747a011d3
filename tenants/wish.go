package tenants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Wish is a difference between a File and its Brand that is not made with the rest
// of the file.
type Wish struct {
	Say string // in one line, for whoever is about to make it so
	// Ask asks an owner; nil: it only stops something, and needs none.
	Ask func(ctx context.Context, a *Asks, edit Editor, by, channel string) (PendingChange, error)
	// Do makes it so at once and returns what is shown once; nil: an owner alone can.
	Do func(ctx context.Context, a *Asks, edit Editor) (string, error)
}

// FileWebhook is an endpoint in a File. Its secret stands in none: the owner who
// allows it is shown it once.
type FileWebhook struct {
	URL     string   `json:"url"`
	Events  []string `json:"events,omitempty"`  // none: all
	Format  string   `json:"format,omitempty"`  // FormatSET; left out: FormatJSON
	Enabled *bool    `json:"enabled,omitempty"` // left out: on
}

func (w FileWebhook) on() bool { return w.Enabled == nil || *w.Enabled }

func (w FileWebhook) events() []string {
	out := w.Events
	if len(out) == 0 {
		out = WebhookEvents()
	}
	out = slices.Clone(out)
	slices.Sort(out)
	return out
}

// FileMember is somebody who works on the Brand, or is invited to.
type FileMember struct {
	Email string `json:"email"`
	Role  Role   `json:"role"`
}

// Wishes are what the file wants of webhooks, members, API keys and domains that is
// not so. A part that is left out wants nothing; of one that is there, what it does
// not name goes: invitations are taken back at once, which needs no owner, and so are
// webhooks turned off, unless the file wants something new of webhooks; for that, and
// for members, keys and domains, one is asked. What cannot be is
// Problems, of all parts together, before anything is asked for.
func (f File) Wishes(ctx context.Context, db *DB, site Site, now time.Time) ([]Wish, error) {
	var out []Wish
	var wrong Problems
	for _, part := range []func(context.Context, *DB, Site, time.Time) ([]Wish, error){
		f.domainWishes, f.hookWishes, f.memberWishes, f.keyWishes,
	} {
		some, err := part(ctx, db, site, now)
		var p Problems
		if err != nil && !errors.As(err, &p) {
			return nil, err
		}
		out, wrong = append(out, some...), append(wrong, p...)
	}
	return out, wrong.err()
}

func (f File) domainWishes(ctx context.Context, db *DB, _ Site, _ time.Time) ([]Wish, error) {
	if f.Domains == nil {
		return nil, nil
	}
	now, err := Domains(ctx, db, f.Brand)
	if err != nil {
		return nil, err
	}
	hosts, err := f.hosts()
	if err != nil {
		return nil, err
	}
	var out []Wish
	for _, host := range hosts {
		if slices.ContainsFunc(now, func(d Domain) bool { return d.Host == host }) {
			continue
		}
		out = append(out, Wish{
			Say: "domain " + host + ": to be proved",
			Ask: func(ctx context.Context, a *Asks, edit Editor, by, channel string) (PendingChange, error) {
				return a.AskDomain(ctx, edit, f.Brand, host, by, channel)
			},
			Do: func(ctx context.Context, a *Asks, edit Editor) (string, error) {
				d, err := AddDomain(ctx, a.DB, edit, f.Brand, host)
				return "publish at " + d.FileURL() + ", or as the TXT record " + d.Record() + ": " + d.Token, err
			},
		})
	}
	for _, d := range now {
		if slices.Contains(hosts, d.Host) {
			continue
		}
		out = append(out, Wish{
			Say: "domain " + d.Host + ": taken away",
			Ask: func(ctx context.Context, a *Asks, edit Editor, by, channel string) (PendingChange, error) {
				return a.AskDomainRemoval(ctx, edit, f.Brand, d.Host, by, channel)
			},
			Do: func(ctx context.Context, _ *Asks, edit Editor) (string, error) {
				return "", RemoveDomain(ctx, edit, f.Brand, d.Host)
			},
		})
	}
	return out, nil
}

// hosts are the domains that the file names.
func (f File) hosts() ([]string, error) {
	var wrong Problems
	var out []string
	for _, name := range f.Domains {
		host, err := hostForm(name)
		var p Problems
		if err != nil && !errors.As(err, &p) {
			return nil, err
		}
		for i := range p {
			p[i].Field = "domains." + name
		}
		out, wrong = append(out, host), append(wrong, p...)
	}
	return out, wrong.err()
}

// CheckDomains returns why domains that the file does not name would stay once the rest
// of it is so, and changes nothing. As the operator, interface and login move first.
func (f File) CheckDomains(ctx context.Context, edit Editor, site Site, operator bool) error {
	if f.Domains == nil {
		return nil
	}
	hosts, err := f.hosts()
	if err != nil {
		return nil // Wishes tells it
	}
	var wrong Problems
	err = edit.change(ctx, f.Brand, "try domains", func(e *Edit) error {
		e.Note = func(string, map[string]any) {}
		if err := e.applyFile(ctx, site, f); err != nil {
			return errTrial // PlanFile tells it
		}
		rows, err := e.Query(ctx, selectDomains, pgx.NamedArgs{"brand": e.Brand, "host": ""})
		if err != nil {
			return err
		}
		all, err := pgx.CollectRows(rows, pgx.RowToStructByName[Domain])
		if err != nil {
			return err
		}
		for _, d := range all {
			if slices.Contains(hosts, d.Host) {
				continue
			}
			p, err := e.letsGo(ctx, d.Host)
			if err != nil {
				return err
			}
			wrong = append(wrong, p...)
		}
		return errTrial
	})
	if !errors.Is(err, errTrial) {
		return err
	}
	return slices.DeleteFunc(wrong, func(p Problem) bool {
		return operator && (f.Interface != nil && p.Field == "interface_url" || f.Login != nil && strings.HasPrefix(p.Field, "login_"))
	}).err()
}

// letsGo takes the domain away, or says why it stays.
func (e *Edit) letsGo(ctx context.Context, host string) (Problems, error) {
	here := Editor(func(_ context.Context, _ BrandID, fn func(*Edit) error) error { return fn(e) })
	err := RemoveDomain(ctx, here, e.Brand, host)
	var p Problems
	switch {
	case errors.Is(err, ErrLastDomain):
		p.add("domains."+host, "is the last proven one", "keep it, or prove another first")
	case !errors.As(err, &p):
		return nil, err
	}
	return p, nil
}

func (f File) memberWishes(ctx context.Context, db *DB, _ Site, at time.Time) ([]Wish, error) {
	if f.Members == nil {
		return nil, nil
	}
	roles, err := f.roles()
	if err != nil {
		return nil, err
	}
	now, err := Members(ctx, db, f.Brand)
	if err != nil {
		return nil, err
	}
	invited, err := Invitations(ctx, db, f.Brand, at)
	if err != nil {
		return nil, err
	}
	var out []Wish
	ask := func(say string, ask func(ctx context.Context, a *Asks, edit Editor, by, channel string) (PendingChange, error)) {
		out = append(out, Wish{Say: say, Ask: ask})
	}
	for _, m := range now {
		address, _ := ParseEmail(m.Email)
		role, named := roles[address]
		delete(roles, address)
		switch {
		case !named:
			ask("member "+m.Email+": removed", func(ctx context.Context, a *Asks, edit Editor, by, channel string) (PendingChange, error) {
				return a.AskRemoval(ctx, edit, f.Brand, m.Person, by, channel)
			})
		case role != m.Role:
			ask(fmt.Sprintf("member %s: %s → %s", m.Email, m.Role, role), func(ctx context.Context, a *Asks, edit Editor, by, channel string) (PendingChange, error) {
				return a.AskRole(ctx, edit, f.Brand, m.Person, role, by, channel)
			})
		}
	}
	for _, i := range invited {
		role, named := roles[i.Email]
		if named && role == i.Role {
			delete(roles, i.Email)
		}
		if !named {
			out = append(out, Wish{Say: "invitation of " + i.Email + ": taken back", Do: func(ctx context.Context, _ *Asks, edit Editor) (string, error) {
				return "", WithdrawInvitation(ctx, edit, f.Brand, i.ID)
			}})
		}
	}
	for _, m := range f.Members { // in the file's order
		address, _ := ParseEmail(m.Email)
		if role, left := roles[address]; left {
			ask(fmt.Sprintf("member %s: invited as %s", address, role), func(ctx context.Context, a *Asks, edit Editor, by, channel string) (PendingChange, error) {
				return a.AskInvitation(ctx, edit, f.Brand, address, role, by, channel)
			})
		}
	}
	return out, nil
}

// roles are those that the file names, by address.
func (f File) roles() (map[string]Role, error) {
	var p Problems
	out := make(map[string]Role)
	owned := false
	for _, m := range f.Members {
		address, err := ParseEmail(m.Email)
		if err != nil {
			p.add("members", "hold "+m.Email+", which is no e-mail address of plain letters", "write it as name@host")
			continue
		}
		if _, twice := out[address]; twice {
			p.add("members", "hold "+address+" twice", "take one away")
		}
		p = append(p, badRole(m.Role)...)
		out[address] = m.Role
		owned = owned || m.Role == Owner
	}
	if !owned {
		p.add("members", "name no owner", "name one at least, or leave members out")
	}
	return out, p.err()
}

func (f File) keyWishes(ctx context.Context, db *DB, _ Site, _ time.Time) ([]Wish, error) {
	if f.APIKeys == nil {
		return nil, nil
	}
	all, err := APIKeys(ctx, db, f.Brand)
	if err != nil {
		return nil, err
	}
	live := slices.DeleteFunc(all, func(k APIKey) bool { return k.RevokedAt != nil })
	var out []Wish
	var wrong Problems
	for _, d := range f.APIKeys {
		p := d.Check()
		for i := range p {
			p[i].Field = "api_keys." + d.Name + "." + p[i].Field
		}
		wrong = append(wrong, p...)
		if i := slices.IndexFunc(live, func(k APIKey) bool { return k.is(d) }); i >= 0 {
			live = slices.Delete(live, i, i+1)
			continue
		}
		out = append(out, Wish{
			Say: fmt.Sprintf("API key %q: made, with %v", d.Name, d.Rights),
			Ask: func(ctx context.Context, a *Asks, edit Editor, by, channel string) (PendingChange, error) {
				return a.AskKey(ctx, edit, f.Brand, d, by, channel)
			},
			Do: func(ctx context.Context, _ *Asks, edit Editor) (string, error) {
				return NewAPIKey(ctx, edit, f.Brand, d)
			},
		})
	}
	for _, k := range live {
		out = append(out, Wish{
			Say: fmt.Sprintf("API key %q (%s): revoked", k.Name, k.ID),
			Ask: func(ctx context.Context, a *Asks, edit Editor, by, channel string) (PendingChange, error) {
				return a.AskKeyEnd(ctx, edit, f.Brand, k.ID, by, channel)
			},
			Do: func(ctx context.Context, _ *Asks, edit Editor) (string, error) {
				return "", EndAPIKey(ctx, edit, f.Brand, k.ID)
			},
		})
	}
	return out, wrong.err()
}

// is reports whether the key is as the draft says, the order of rights aside.
func (k APIKey) is(d KeyDraft) bool {
	has, wants := slices.Sorted(slices.Values(k.Rights)), slices.Sorted(slices.Values(d.Rights))
	return k.Name == d.Name && slices.Equal(has, wants)
}

// ChangeKeyEnd is asked for by a file that does not name a key any more: a slip there
// would stop a Brand's servers for good. Whoever revokes one by itself waits for
// nobody.
const ChangeKeyEnd = "apikey.revoke"

// AskKeyEnd asks an owner to revoke an API key.
func (a *Asks) AskKeyEnd(ctx context.Context, edit Editor, brand BrandID, id, by, channel string) (PendingChange, error) {
	keys, err := APIKeys(ctx, a.DB, brand)
	if err != nil {
		return PendingChange{}, err
	}
	i := slices.IndexFunc(keys, func(k APIKey) bool { return k.ID == id && k.RevokedAt == nil })
	if i < 0 {
		return PendingChange{}, ErrBadKey
	}
	return a.Ask(ctx, edit, brand, Ask{
		Kind: ChangeKeyEnd, By: by, Channel: channel,
		Diff:    map[string]any{"key": id, "name": keys[i].Name, "rights": keys[i].Rights},
		Payload: about{id},
	})
}

// fileAppliers apply the kinds that only files ask for.
func fileAppliers() map[string]Applier {
	return map[string]Applier{
		ChangeKeyEnd: func(ctx context.Context, edit Editor, brand BrandID, payload []byte) (string, error) {
			var p about
			if err := json.Unmarshal(payload, &p); err != nil {
				return "", fmt.Errorf("read change: %w", err)
			}
			return "", EndAPIKey(ctx, edit, brand, p.ID)
		},
		ChangeHookOff: func(ctx context.Context, edit Editor, brand BrandID, payload []byte) (string, error) {
			var p hookSwitch
			if err := json.Unmarshal(payload, &p); err != nil {
				return "", fmt.Errorf("read change: %w", err)
			}
			return "", switchShown(ctx, edit, brand, p, false, noPartOfFile)
		},
		ChangeHookEvents: func(ctx context.Context, edit Editor, brand BrandID, payload []byte) (string, error) {
			var p hookEvents
			if err := json.Unmarshal(payload, &p); err != nil {
				return "", fmt.Errorf("read change: %w", err)
			}
			return "", SetWebhookEvents(ctx, edit, brand, p.ID, p.Before, p.After)
		},
	}
}

// addTrust adds who and what is trusted: webhooks, members, API keys, domains.
func (f *File) addTrust(ctx context.Context, db *DB, now time.Time) error {
	hooks, err := Webhooks(ctx, db, f.Brand)
	if err != nil {
		return err
	}
	for _, on := range []bool{true, false} { // of one that is off, only where nothing else has its URL
		for _, h := range hooks {
			if h.Enabled != on || !on && slices.ContainsFunc(f.Webhooks, func(w FileWebhook) bool { return w.URL == h.URL }) {
				continue
			}
			w := FileWebhook{URL: h.URL, Events: h.Events}
			if h.Format != FormatJSON {
				w.Format = h.Format
			}
			if !on {
				w.Enabled = new(bool)
			}
			f.Webhooks = append(f.Webhooks, w)
		}
	}
	members, err := Members(ctx, db, f.Brand)
	if err != nil {
		return err
	}
	for _, m := range members {
		f.Members = append(f.Members, FileMember{m.Email, m.Role})
	}
	invited, err := Invitations(ctx, db, f.Brand, now)
	if err != nil {
		return err
	}
	for _, i := range invited {
		f.Members = append(f.Members, FileMember{i.Email, i.Role})
	}
	if !slices.ContainsFunc(f.Members, func(m FileMember) bool { return m.Role == Owner }) {
		f.Members = nil // nobody owns it yet: there is nothing to keep
	}
	keys, err := APIKeys(ctx, db, f.Brand)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if k.RevokedAt == nil {
			f.APIKeys = append(f.APIKeys, KeyDraft{k.Name, k.Rights})
		}
	}
	domains, err := Domains(ctx, db, f.Brand)
	for _, d := range domains {
		f.Domains = append(f.Domains, d.Host)
	}
	return err
}

// LogoDigest is how a File says that the logo is as it is.
const LogoDigest = "sha256:"

// LogoFrom tells whether the file has another logo than the Brand, and which picture
// that is; none takes it away. read fetches what a reference names.
func (f File) LogoFrom(ctx context.Context, db *DB, read func(reference string) ([]byte, error)) (changes bool, raw []byte, err error) {
	if f.Logo == nil {
		return false, nil, nil
	}
	_, now, err := Logo(ctx, db, f.Brand)
	if err != nil && !errors.Is(err, ErrNoLogo) {
		return false, nil, err
	}
	if digest, ok := strings.CutPrefix(*f.Logo, LogoDigest); ok {
		if digest != now {
			return false, nil, Problems{{Field: "logo", Say: "is not the one that is there, and its digest alone makes none", Mend: "name the picture as file:PATH"}}
		}
		return false, nil, nil
	}
	if *f.Logo == "" {
		return now != "", nil, nil
	}
	if raw, err = read(*f.Logo); err != nil {
		return false, nil, err
	}
	_, hash, err := RemakeLogo(raw)
	return hash != now, raw, err
}
