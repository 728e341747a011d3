package tenants

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Interface is where a Brand's agent answers and whose audience its callers
// name: what its tokens are good for hangs on it.
type Interface struct {
	Mode Mode   `json:"mode"`
	URL  string `json:"interface_url"` // hosted: may be left out, it is ours
	// Provider is whose audience pa-jwts name. Empty: the operator's for a hosted
	// Brand, the Brand's own for others; it is made if it is not there.
	Provider string `json:"provider"`
	// Audience is that of a Provider which is made; empty: a name of its own. A
	// Provider's audience never changes.
	Audience string `json:"audience"`
	Issuer   string `json:"issuer"` // follows from the others; not to be set
}

// EndInterfaceChanged is why the grants end that were given at another interface.
const EndInterfaceChanged = "interface_changed"

// InterfaceOf returns where the Brand's agent answers now, or ErrNoBrand.
func InterfaceOf(ctx context.Context, db *DB, brand BrandID) (Interface, error) {
	i, err := One[interfaceRow](ctx, db, brand, selectInterface, pgx.NamedArgs{"brand": brand})
	if errors.Is(err, pgx.ErrNoRows) {
		return Interface{}, ErrNoBrand
	}
	if err != nil {
		return Interface{}, fmt.Errorf("load interface of %s: %w", brand, err)
	}
	return Interface(i), nil
}

const selectInterface = `
	SELECT b.mode, b.interface_url AS url, b.provider_id AS provider, p.audience, b.issuer
	  FROM brands b JOIN providers p ON p.id = b.provider_id
	 WHERE b.id = @brand`

type interfaceRow struct {
	Mode     Mode
	URL      string `db:"url"`
	Provider string
	Audience string
	Issuer   string
}

// SetInterface moves the Brand to want. Where mode or URL change, every grant
// ends, because people allowed something at another place; the caller shows that
// he knows by repeating the Brand's id in confirm. Into a Provider that another
// Brand made, the Brand is moved by the operator, or by a member who owns both and
// has just touched their passkey: whoever shares an audience can send on the pa-jwts
// that he is sent. Every owner of every Brand of it hears of it. To all others such
// a Provider is none.
func SetInterface(ctx context.Context, edit Editor, site Site, brand BrandID, want Interface, confirm string, operator bool) error {
	m := move{site: site, want: want, confirmed: confirm == string(brand), operator: operator}
	// First as a trial that is taken back: a slip, such as another Brand's URL,
	// must show before the first grant has ended.
	err := m.run(ctx, edit, brand, true)
	if !errors.Is(err, errTrial) {
		return err
	}
	const batch = 500 // grants are many, and each transaction holds the Brand's trail
	for m.ends {
		ended := 0
		err := edit.change(ctx, brand, "end grants", func(e *Edit) error {
			var err error
			ended, err = e.EndGrants(ctx, EndInterfaceChanged, batch)
			return err
		})
		if err != nil {
			return err
		}
		if ended < batch {
			break
		}
	}
	return m.run(ctx, edit, brand, false)
}

// CheckInterface returns want with all that follows from it, or what SetInterface
// would refuse; and changes nothing.
func CheckInterface(ctx context.Context, edit Editor, site Site, brand BrandID, want Interface, operator bool) (Interface, error) {
	m := move{site: site, want: want, confirmed: true, operator: operator}
	return m.try(ctx, edit, brand)
}

// CheckAsked is CheckInterface where somebody only asks, and an owner decides.
func CheckAsked(ctx context.Context, edit Editor, site Site, brand BrandID, want Interface) (Interface, error) {
	m := move{site: site, want: want, confirmed: true, later: true}
	return m.try(ctx, edit, brand)
}

func (m *move) try(ctx context.Context, edit Editor, brand BrandID) (Interface, error) {
	if err := m.run(ctx, edit, brand, true); err != nil && !errors.Is(err, errTrial) {
		return Interface{}, err
	}
	return m.after, nil
}

var errTrial = errors.New("only a trial")

type move struct {
	site                Site
	want                Interface
	confirmed, operator bool
	later               bool      // somebody only asks: a member decides later
	joined              bool      // found: another Brand's Provider
	after               Interface // found: what it comes to
	ends                bool      // found: grants end
}

func (m *move) run(ctx context.Context, edit Editor, brand BrandID, trial bool) error {
	return edit.change(ctx, brand, "move interface", func(e *Edit) error {
		moved, err := m.move(ctx, e)
		if err != nil || !moved {
			return err
		}
		if trial {
			return errTrial
		}
		if !m.ends {
			return nil
		}
		// The change of a unique column has waited for approvals under way, so
		// none is missed.
		const all = 1 << 30
		_, err = e.EndGrants(ctx, EndInterfaceChanged, all)
		return err
	})
}

// move writes the new interface. It reports whether anything changes.
func (m *move) move(ctx context.Context, e *Edit) (bool, error) {
	rows, err := e.Query(ctx, selectInterface, pgx.NamedArgs{"brand": e.Brand})
	if err != nil {
		return false, err
	}
	r, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[interfaceRow])
	if err != nil {
		return false, err
	}
	before, after := Interface(r), m.want
	hosts, err := e.proven(ctx)
	if err != nil {
		return false, err
	}
	at := hosts
	if before.URL == m.want.URL {
		at = hosts.ever()
	}
	p := after.settle(m.site, e.Brand, at)
	if len(p) > 0 {
		return false, p
	}
	if after.Provider == "" && (before.Mode == after.Mode || before.Mode != Hosted && after.Mode != Hosted) {
		after.Provider = before.Provider
	}
	made, err := m.provider(ctx, e, &after, hosts)
	if err != nil {
		return false, err
	}
	m.after = after
	if before == after {
		return false, nil
	}
	m.ends = before.Mode != after.Mode || before.URL != after.URL || before.Issuer != after.Issuer
	if !m.confirmed {
		p.add("confirm", "is not the Brand's id", "where mode or URL change, every grant ends; repeat the Brand's id to say that you know")
		p.kind(NotTheID)
		return false, p
	}
	if m.joined {
		if err := e.oneJoins(ctx); err != nil {
			return false, err
		}
	}
	e.noteDiff("brand.interface", map[string]any{"provider_made": made}, before, after)
	const q = `
		UPDATE brands SET mode = @mode, interface_url = @url, issuer = @issuer, provider_id = @provider
		 WHERE id = @brand`
	_, err = e.Exec(ctx, q, pgx.NamedArgs{
		"brand": e.Brand, "mode": after.Mode, "url": after.URL, "issuer": after.Issuer, "provider": after.Provider,
	})
	if isUnique(err) {
		p.add("interface_url", "is another Brand's", "each Brand has an interface URL of its own")
		p.kind(AnothersURL)
		return false, p
	}
	if err == nil && m.joined {
		err = e.tellJoined(ctx, after.Provider)
	}
	return true, err
}

func isUnique(err error) bool {
	const unique = "23505"
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == unique
}

// settle checks the URL and fills in what follows from the mode.
func (i *Interface) settle(site Site, brand BrandID, hosts Hosts) Problems {
	var p Problems
	ours := site.PublicURL + "/a2a/" + string(brand)
	i.Issuer = ours + "/oauth"
	switch i.Mode {
	case Hosted:
		if i.URL == "" {
			i.URL = ours
		}
		if i.URL != ours {
			p.add("interface_url", "is not ours, but the mode is hosted", "leave it out, or choose fronted")
			p.kind(NotOurs)
		}
	case Fronted, Split:
		p.place("interface_url", i.URL, site, hosts)
		if i.Mode == Fronted {
			// On the interface's own origin: strict agents refuse any other.
			i.Issuer = i.URL + "/oauth"
		}
	default:
		p.oneOf("mode", string(i.Mode), string(Hosted), string(Fronted), string(Split))
	}
	return p
}

// place checks an interface URL. It is compared byte for byte for ever after, so
// it must have the one form in which others write it too.
func (p *Problems) place(field, raw string, site Site, hosts Hosts) {
	before := len(*p)
	p.link(field, raw, site, hosts)
	if len(*p) > before {
		return
	}
	u, err := url.Parse(raw)
	ours, _ := url.Parse(site.PublicURL)
	switch {
	case err != nil || u.RawQuery != "" || u.ForceQuery:
		p.add(field, "has a query", "take away what stands behind ?")
		p.kind(QueryInURL)
	case strings.HasSuffix(raw, "/"):
		p.add(field, "ends with a slash", "take it away")
		p.kind(SlashAtEnd)
	case u.String() != raw || u.Host != strings.ToLower(u.Host) || u.Path != "" && path.Clean(u.Path) != u.Path ||
		strings.Contains(raw, "%") || u.Scheme == "https" && u.Port() == "443":
		p.add(field, "is not written in the simplest way", "write host in small letters, no port 443, no percent signs, dots or double slashes in the path")
		p.kind(NotSimplest)
	case ours != nil && strings.EqualFold(u.Host, ours.Host):
		p.add(field, "is on our own host", "choose hosted, or the Brand's own host")
		p.kind(OnOurHost)
	}
}

// provider finds or makes the Provider of after. It reports whether it was made.
func (m *move) provider(ctx context.Context, e *Edit, after *Interface, hosts Hosts) (bool, error) {
	var p Problems
	if after.Provider == "" && after.Mode == Hosted {
		const q = `SELECT id FROM providers WHERE shared ORDER BY created_at, id LIMIT 1`
		err := e.QueryRow(ctx, q).Scan(&after.Provider)
		if errors.Is(err, pgx.ErrNoRows) {
			p.add("provider", "is not named, and the operator has none for hosted Brands", "name one, or ask the operator")
			p.kind(NoProvider)
			return false, p
		}
		if err != nil {
			return false, err
		}
	}
	if after.Provider == "" {
		after.Provider = string(e.Brand)
	}
	const find = `SELECT audience, shared, coalesce(founder, '') FROM providers WHERE id = @id`
	var audience string
	var shared bool
	var founder BrandID
	err := e.QueryRow(ctx, find, pgx.NamedArgs{"id": after.Provider}).Scan(&audience, &shared, &founder)
	unknown := errors.Is(err, pgx.ErrNoRows)
	switch {
	case unknown && (m.operator || after.Provider == string(e.Brand)):
		return true, m.makeProvider(ctx, e, after, hosts)
	case err != nil && !unknown:
		return false, err
	}
	m.joined = false
	belongs := !unknown && (shared || founder == e.Brand || after.Provider == e.present(ctx))
	if !belongs && !unknown {
		if m.joined, err = m.joins(ctx, e, founder); err != nil {
			return false, err
		}
	}
	switch {
	case !belongs && !m.joined: // the same answer whether or not there is one: nobody finds out by guessing
		p.add("provider", "is none that the Brand can belong to", "leave it out: the Brand gets one of its own; into that of another Brand, somebody who owns both takes it")
		p.kind(AnothersProvider)
		return false, p
	case shared && after.Mode != Hosted:
		p.add("provider", "shares its audience with hosted Brands of others", "leave it out: the Brand gets one of its own")
		p.kind(SharedProvider)
	case after.Audience != "" && after.Audience != audience:
		p.add("audience", "is not that of the Provider, which never changes", "leave it out, or name a new Provider")
		p.kind(NotItsAudience)
	}
	after.Audience = audience
	return false, p.err()
}

// present is the Provider that the Brand belongs to.
func (e *Edit) present(ctx context.Context) string {
	var id string
	_ = e.QueryRow(ctx, `SELECT provider_id FROM brands WHERE id = @brand`, pgx.NamedArgs{"brand": e.Brand}).Scan(&id)
	return id
}

func (m *move) makeProvider(ctx context.Context, e *Edit, after *Interface, hosts Hosts) error {
	var p Problems
	if !validBrandID(BrandID(after.Provider)) {
		p.add("provider", "is no id", "use 1 to 40 of a–z, 0–9 and -")
		p.kind(NoID)
		return p
	}
	ownName := ownAudience(after.Provider)
	if after.Audience == "" {
		after.Audience = ownName
	}
	if after.Audience != ownName {
		// Nobody takes a name that agents would take for somebody else's.
		p.link("audience", after.Audience, m.site, hosts)
	}
	if len(p) > 0 {
		return p
	}
	const q = `
		INSERT INTO providers (id, name, audience, founder, created_at)
		SELECT @id, name, @audience, @brand, @now FROM brands WHERE id = @brand`
	_, err := e.Exec(ctx, q, pgx.NamedArgs{"id": after.Provider, "audience": after.Audience, "brand": e.Brand, "now": e.Now})
	if isUnique(err) {
		p.add("audience", "is another Provider's", "choose another")
		p.kind(AudienceTaken)
		return p
	}
	return err
}
