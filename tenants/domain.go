package tenants

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/net/idna"
)

// lostAfter is how long a proof may be gone before we say so. Servers move and
// DNS is edited; that is no reason to stop a Brand.
const lostAfter = 7 * 24 * time.Hour

// Reasons that something cannot be done with a domain.
var (
	ErrNoDomain   = errors.New("the brand has not added this domain")
	ErrLastDomain = errors.New("the brand would have no proven domain left")
)

// Domain is a host name that a Brand says is its own, and how it proved that.
type Domain struct {
	Host         string
	Token        string // to be published, in a file or in DNS
	AddedAt      time.Time
	ProvenAt     *time.Time
	Method       *string // file or dns
	CheckedAt    *time.Time
	FailingSince *time.Time
	Trouble      string // what the last look found wrong
}

// State is where the domain stands: waiting, proven, failing (its proof was not
// found, for a few days), or lost (for longer).
func (d Domain) State(now time.Time) string {
	switch {
	case d.ProvenAt == nil:
		return "waiting"
	case d.FailingSince == nil:
		return "proven"
	case now.Sub(*d.FailingSince) <= lostAfter:
		return "failing"
	}
	return "lost"
}

// stands reports whether the domain shows whose the Brand is: it is proven and not
// lost.
func (d Domain) stands(now time.Time) bool {
	state := d.State(now)
	return state == "proven" || state == "failing"
}

// Where the proof is looked for.
const (
	proofPath   = "/.well-known/countersign-proof"
	proofRecord = "_countersign."
)

// FileURL is where a file with the token proves the domain.
func (d Domain) FileURL() string { return "https://" + d.Host + proofPath }

// Record is where a TXT record with the token proves it.
func (d Domain) Record() string { return proofRecord + d.Host }

const selectDomains = `
	SELECT host, token, added_at, proven_at, method, checked_at, failing_since, trouble
	  FROM brand_domains
	 WHERE brand_id = @brand AND (@host = '' OR host = @host)
	 ORDER BY added_at, host`

// Domains lists what the Brand has added.
func Domains(ctx context.Context, db *DB, brand BrandID) ([]Domain, error) {
	return domains(ctx, db, brand, "")
}

func domains(ctx context.Context, db *DB, brand BrandID, host string) ([]Domain, error) {
	all, err := All[Domain](ctx, db, brand, selectDomains, pgx.NamedArgs{"brand": brand, "host": host})
	if err != nil {
		return nil, fmt.Errorf("list domains of %s: %w", brand, err)
	}
	return all, nil
}

// AddDomain begins the proof of a host name. Twice is once: the token stays.
func AddDomain(ctx context.Context, db *DB, edit Editor, brand BrandID, name string) (Domain, error) {
	host, err := hostForm(name)
	if err != nil {
		return Domain{}, err
	}
	err = edit.change(ctx, brand, "add domain", func(e *Edit) error {
		const q = `
			INSERT INTO brand_domains (brand_id, host, token, added_at)
			SELECT @brand, @host, @token, @now
			 WHERE (SELECT count(*) FROM brand_domains WHERE brand_id = @brand) < @most
			ON CONFLICT DO NOTHING`
		const mostDomains = 20
		tag, err := e.Exec(ctx, q, pgx.NamedArgs{
			"brand": brand, "host": host, "token": "countersign-proof=" + strings.ToLower(rand.Text()), "now": e.Now, "most": mostDomains,
		})
		if err == nil && tag.RowsAffected() > 0 {
			e.Note("domain.added", map[string]any{"host": host})
		}
		return err
	})
	if err != nil {
		return Domain{}, err
	}
	found, err := domains(ctx, db, brand, host)
	if err == nil && len(found) == 0 {
		err = Problems{{Field: "host", Say: "would be one domain too many", Mend: "remove one that is not needed", Mistake: ManyDomains}}
	}
	if err != nil {
		return Domain{}, err
	}
	return found[0], nil
}

// hostNames are those that DNS can hold.
var hostNames = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(true), idna.VerifyDNSLength(true))

// hostForm brings a name that somebody typed, or pasted with its https://, into
// the form that is stored.
func hostForm(name string) (string, error) {
	bad := func(say, mend string) (string, error) {
		return "", Problems{{Field: "host", Say: say, Mend: mend, Mistake: NoHost}}
	}
	name = strings.TrimSpace(name)
	if u, err := url.Parse(name); err == nil && u.Scheme != "" && u.Host != "" {
		name = u.Host
	}
	host, err := hostNames.ToASCII(strings.TrimSuffix(name, "."))
	if err != nil || host == "" || strings.ContainsAny(host, ":/@ ") {
		return bad("is no host name", "give a name such as example.com, without path or port")
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return bad("is an address", "give the name that stands in your URLs")
	}
	if !strings.Contains(host, ".") {
		return bad("is not a public name", "give a name such as example.com")
	}
	return strings.ToLower(host), nil
}

// RemoveDomain takes a domain away. The last proven one stays: without any, the
// Brand would be nobody's.
func RemoveDomain(ctx context.Context, edit Editor, brand BrandID, name string) error {
	host, err := hostForm(name)
	if err != nil {
		return err
	}
	return removeDomain(ctx, edit, brand, host, func(Domain) bool { return true })
}

// removeShown is RemoveDomain of one as somebody saw it; one that was proved since, or
// added anew, is ErrChangeStale.
func removeShown(ctx context.Context, edit Editor, brand BrandID, shown domainShown) error {
	return removeDomain(ctx, edit, brand, shown.Host, func(d Domain) bool {
		return d.AddedAt.Equal(shown.Added) && (d.ProvenAt != nil) == shown.Proven
	})
}

func removeDomain(ctx context.Context, edit Editor, brand BrandID, host string, is func(Domain) bool) error {
	return edit.change(ctx, brand, "remove domain", func(e *Edit) error {
		d, err := e.removable(ctx, host)
		if err == nil && !is(d) {
			err = ErrChangeStale
		}
		if err != nil {
			return err
		}
		const q = `DELETE FROM brand_domains WHERE brand_id = @brand AND host = @host`
		_, err = e.Exec(ctx, q, pgx.NamedArgs{"brand": brand, "host": host})
		e.Note("domain.removed", map[string]any{"host": host, "was_proven": d.ProvenAt != nil})
		return err
	})
}

// removable finds the domain, or says why it stays. Who has proved something keeps a
// domain whose proof stands: one that is lost takes nobody's place.
func (e *Edit) removable(ctx context.Context, host string) (Domain, error) {
	rows, err := e.Query(ctx, selectDomains, pgx.NamedArgs{"brand": e.Brand, "host": ""})
	if err != nil {
		return Domain{}, err
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[Domain])
	if err != nil {
		return Domain{}, err
	}
	i := slices.IndexFunc(all, func(d Domain) bool { return d.Host == host })
	if i < 0 {
		return Domain{}, ErrNoDomain
	}
	if all[i].ProvenAt == nil {
		return all[i], nil
	}
	var others Hosts
	for _, d := range all {
		if d.Host != host && d.stands(e.Now) {
			others.Proven = append(others.Proven, d.Host)
		}
	}
	if len(others.Proven) == 0 {
		return Domain{}, ErrLastDomain
	}
	p, err := e.leansOn(ctx, host, others)
	return all[i], errors.Join(err, p.err())
}

// leansOn tells which of the Brand's addresses stand on the host and on none of the
// others.
func (e *Edit) leansOn(ctx context.Context, host string, others Hosts) (Problems, error) {
	const q = `
		SELECT b.mode, b.interface_url, b.support_url, b.privacy_url, b.connected_url, coalesce(l.login_url, ''), coalesce(l.login_origin, '')
		  FROM brands b LEFT JOIN login_connections l ON l.brand_id = b.id AND l.live
		 WHERE b.id = @brand`
	var mode Mode
	urls := make([]string, 6)
	err := e.QueryRow(ctx, q, pgx.NamedArgs{"brand": e.Brand}).Scan(&mode, &urls[0], &urls[1], &urls[2], &urls[3], &urls[4], &urls[5])
	if err != nil {
		return nil, err
	}
	if mode == Hosted {
		urls[0] = "" // ours
	}
	this := Hosts{Proven: []string{host}}
	var p Problems
	for i, field := range []string{"interface_url", "support_url", "privacy_url", "connected_url", "login_url", "login_origin"} {
		if u, err := url.Parse(urls[i]); err == nil && this.Cover(u.Hostname()) && !others.Cover(u.Hostname()) {
			p.add(field, "stands on "+host, "move it to another proven domain first")
			p.kind(StandsOn, host)
		}
	}
	return p, nil
}

// Hosts are the domains that a Brand has proved.
type Hosts struct {
	Proven []string
	// Lost are those whose proof has been gone for too long. What stands there stays,
	// and nothing new comes.
	Lost []string
	// Any: the operator let the Brand in before there were proofs.
	Any bool
}

// ever are the hosts for what stands already.
func (h Hosts) ever() Hosts {
	h.Proven = slices.Concat(h.Proven, h.Lost)
	return h
}

// Cover reports whether the host is one of them, or lies beneath one.
func (h Hosts) Cover(host string) bool {
	host = strings.ToLower(host)
	return h.Any || slices.ContainsFunc(h.Proven, func(p string) bool {
		return host == p || strings.HasSuffix(host, "."+p)
	})
}

const selectProven = `
	SELECT b.proven AS "any",
	       ARRAY(SELECT host FROM brand_domains d
	              WHERE d.brand_id = @brand AND d.proven_at IS NOT NULL AND (d.failing_since IS NULL OR d.failing_since >= @lost)
	              ORDER BY d.proven_at, d.host) AS proven,
	       ARRAY(SELECT host FROM brand_domains d
	              WHERE d.brand_id = @brand AND d.proven_at IS NOT NULL AND d.failing_since < @lost
	              ORDER BY d.proven_at, d.host) AS lost
	  FROM brands b
	 WHERE b.id = @brand`

// proven are the Brand's domains as they are now. Whoever has proved something once is
// held to it, though it is lost.
func (e *Edit) proven(ctx context.Context) (Hosts, error) {
	var h Hosts
	err := e.QueryRow(ctx, selectProven, pgx.NamedArgs{"brand": e.Brand, "lost": e.Now.Add(-lostAfter)}).Scan(&h.Any, &h.Proven, &h.Lost)
	h.Any = h.Any && len(h.Proven) == 0 && len(h.Lost) == 0
	return h, err
}

// link checks a URL that people or agents are sent to: https, at a place that
// the Brand has shown to be its own.
func (p *Problems) link(field, raw string, site Site, hosts Hosts) {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || len(raw) > longestURL:
		p.add(field, "is no absolute URL", "write it out, from https:// on")
		p.kind(NoURL)
		return
	case u.User != nil:
		p.add(field, "holds a user name", "take it away")
		p.kind(UserInURL)
		return
	case u.Fragment != "" || strings.Contains(raw, "#"):
		p.add(field, "has a fragment", "take away what stands behind #")
		p.kind(Fragment)
		return
	case site.AllowLoopback && loopback(u.Hostname()) && (u.Scheme == "http" || u.Scheme == "https"):
		return
	case u.Scheme != "https":
		p.add(field, "is not https", "begin it with https://")
		p.kind(NoHTTPS)
		return
	}
	p.own(field, u, hosts)
}

// own checks that the URL is at a place that the Brand has shown to be its own.
func (p *Problems) own(field string, u *url.URL, hosts Hosts) {
	// The same form as the proof's, or a letter that looks like another would
	// pass for it.
	host, err := hostNames.ToASCII(u.Hostname())
	if err != nil || !hosts.Cover(host) {
		p.add(field, "is on "+u.Hostname()+", which the Brand has not proved to be its own",
			"prove the domain first (countersign brand domain), or use one that is proven")
		p.kind(NotYourHost, u.Hostname())
	}
}
