package tenants

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Prover looks at what Brands have published. Its client must refuse addresses
// inside our own network.
type Prover struct {
	HTTP *http.Client
	DNS  Resolver
}

// Resolver is DNS; a *net.Resolver is one.
type Resolver interface {
	LookupTXT(ctx context.Context, name string) ([]string, error)
}

const (
	dnsPatience  = 5 * time.Second
	largestProof = 4 << 10
)

// look tells by which method the domain is proven now, or what was found
// instead.
func (p Prover) look(ctx context.Context, d Domain) (method, trouble string) {
	file := p.inFile(ctx, d)
	if file == nil {
		return "file", ""
	}
	dns := p.inDNS(ctx, d)
	if dns == nil {
		return "dns", ""
	}
	return "", fmt.Sprintf("%s: %v; TXT %s: %v", d.FileURL(), file, d.Record(), dns)
}

// What a proof can lack; the texts are read by whoever publishes it.
var (
	errNoToken  = errors.New("the token is not there")
	errNoRecord = errors.New("there is no such record")
)

func (p Prover) inFile(ctx context.Context, d Domain) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.FileURL(), nil)
	if err != nil {
		return errors.New("is no address")
	}
	resp, err := p.HTTP.Do(r)
	if err != nil {
		if outer, ok := errors.AsType[*url.Error](err); ok {
			return outer.Err
		}
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the host answers %d", resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, largestProof))
	if err != nil {
		return errors.New("the answer breaks off")
	}
	// A file may hold the tokens of several Brands, one a line.
	for line := range strings.Lines(string(body)) {
		if strings.TrimSpace(line) == d.Token {
			return nil
		}
	}
	return errNoToken
}

func (p Prover) inDNS(ctx context.Context, d Domain) error {
	ctx, cancel := context.WithTimeout(ctx, dnsPatience)
	defer cancel()
	records, err := p.DNS.LookupTXT(ctx, d.Record()+".") // absolute: no search list
	if err != nil || len(records) == 0 {
		return errNoRecord // no more: the text of the error names our resolver
	}
	if !slices.Contains(records, d.Token) {
		return errNoToken
	}
	return nil
}

// CheckDomain looks at the domain's proof now, keeps what it found, and returns
// the domain as it stands then. The first proof makes the Brand a proven one.
func CheckDomain(ctx context.Context, db *DB, edit Editor, p Prover, brand BrandID, name string) (Domain, error) {
	host, err := hostForm(name)
	if err != nil {
		return Domain{}, err
	}
	found, err := domains(ctx, db, brand, host)
	if err != nil {
		return Domain{}, err
	}
	if len(found) == 0 {
		return Domain{}, ErrNoDomain
	}
	method, trouble := p.look(ctx, found[0]) // outside any transaction
	if err := edit.change(ctx, brand, "check domain", func(e *Edit) error {
		return e.keepProof(ctx, host, method, trouble)
	}); err != nil {
		return Domain{}, err
	}
	if found, err = domains(ctx, db, brand, host); err == nil && len(found) == 0 {
		err = ErrNoDomain
	}
	if err != nil {
		return Domain{}, err
	}
	return found[0], nil
}

func (e *Edit) keepProof(ctx context.Context, host, method, trouble string) error {
	const before = `
		SELECT proven_at IS NOT NULL, failing_since IS NOT NULL FROM brand_domains
		 WHERE brand_id = @brand AND host = @host FOR UPDATE`
	var proven, failing bool
	err := e.QueryRow(ctx, before, pgx.NamedArgs{"brand": e.Brand, "host": host}).Scan(&proven, &failing)
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrNoDomain
	}
	if err != nil {
		return err
	}
	const keep = `
		UPDATE brand_domains
		   SET checked_at = @now, trouble = @trouble,
		       method = coalesce(nullif(@method, ''), method),
		       proven_at = CASE WHEN @method <> '' THEN coalesce(proven_at, @now) ELSE proven_at END,
		       failing_since = CASE WHEN @method = '' AND proven_at IS NOT NULL THEN coalesce(failing_since, @now) END
		 WHERE brand_id = @brand AND host = @host`
	args := pgx.NamedArgs{"brand": e.Brand, "host": host, "method": method, "trouble": trouble, "now": e.Now}
	if _, err := e.Exec(ctx, keep, args); err != nil {
		return err
	}
	about := map[string]any{"host": host, "method": method}
	switch {
	case method != "" && !proven:
		e.Note("domain.proven", about)
		const q = `UPDATE brands SET proven = true WHERE id = @brand AND NOT proven`
		_, err = e.Exec(ctx, q, args)
	case method != "" && failing:
		e.Note("domain.found_again", about)
	case method == "" && proven && !failing:
		e.Note("domain.failing", map[string]any{"host": host})
	}
	return err
}

// RecheckDomain looks again at one of the Brand's proofs that is due, if any is:
// each once a day, and a failing one every hour. Any number of instances may
// call it; one of them looks.
func RecheckDomain(ctx context.Context, db *DB, edit Editor, p Prover, brand BrandID, now time.Time) error {
	const q = `
		UPDATE brand_domains SET checked_at = @now
		 WHERE brand_id = @brand AND host = (
		       SELECT host FROM brand_domains
		        WHERE brand_id = @brand AND proven_at IS NOT NULL
		          AND checked_at <= CASE WHEN failing_since IS NULL THEN @day::timestamptz ELSE @hour::timestamptz END
		        ORDER BY checked_at LIMIT 1 FOR UPDATE SKIP LOCKED)
		RETURNING host`
	due, err := All[struct{ Host string }](ctx, db, brand, q, pgx.NamedArgs{
		"brand": brand, "now": now, "day": now.Add(-24 * time.Hour), "hour": now.Add(-time.Hour),
	})
	if err != nil {
		return fmt.Errorf("find due domains of %s: %w", brand, err)
	}
	for _, d := range due {
		if _, err := CheckDomain(ctx, db, edit, p, brand, d.Host); err != nil && !errors.Is(err, ErrNoBrand) && !errors.Is(err, ErrNoDomain) {
			return err
		}
	}
	return nil
}
