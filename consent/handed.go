package consent

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"time"

	"countersign.dev/consent/federation"
	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// sessionLife is how long a page that was answered to another site may stay open.
const sessionLife = 10 * time.Minute

// purpose is what a session is good for.
type purpose bool

const (
	toDecide purpose = false // the one request
	toEnter  purpose = true  // My agents
)

// first takes the assertion: exactly one post of it gets true. It is asked only of
// one whose signature has verified, or a forgery would use up a real one (B79).
func (s journeys) first(ctx context.Context, brand tenants.BrandID, issuer string, a federation.Assertion) (bool, error) {
	const q = `
		INSERT INTO login_assertions (brand_id, id_hash, expires_at) VALUES (@brand, @id, @expires)
		ON CONFLICT DO NOTHING`
	id := sha256.Sum256([]byte(issuer + "\n" + a.ID))
	n, err := s.db.Exec(ctx, brand, q, pgx.NamedArgs{"brand": brand, "id": id[:], "expires": a.Expires})
	if err != nil {
		return false, fmt.Errorf("take assertion at %s: %w", brand, err)
	}
	return n == 1, nil
}

// signedIn begins a journey whose person has signed in already, on the Brand's own
// page. It stands in no browser: the hash is of a secret that nobody has.
func (s journeys) signedIn(ctx context.Context, brand tenants.BrandID, request *uuid.UUID, l login, fresh bool, locales string) (journey, error) {
	const q = `
		INSERT INTO journeys (brand_id, id, browser, request_id, ui_locales, created_at, expires_at,
		                      subject, account, logged_in_at, vouched_by, fresh, logins)
		VALUES (@brand, @id, @browser, @request, @locales, @now, @expires, @subject, @account, @at, @by, @fresh, 1)
		RETURNING ` + journeyColumns
	nobody := sha256.Sum256([]byte(rand.Text()))
	now := s.now()
	return s.one(ctx, brand, q, pgx.NamedArgs{
		"brand": brand, "id": handle(), "browser": nobody[:], "request": request, "locales": locales, "now": now,
		"expires": now.Add(journeyLife), "subject": l.Subject, "account": l.Account, "at": l.At, "by": l.By, "fresh": fresh,
	})
}

// handOut makes the session of the page that is shown now, which says shown. The
// journey's former one, if there was one, is worth nothing any more.
func (s journeys) handOut(ctx context.Context, brand tenants.BrandID, id, shown string) (string, error) {
	const q = `
		UPDATE journeys SET session_hash = @session, session_until = @until, session_used = false, shown = @shown
		 WHERE brand_id = @brand AND id = @id`
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	session := base64.RawURLEncoding.EncodeToString(secret)
	return session, s.change(ctx, brand, q, pgx.NamedArgs{
		"brand": brand, "id": id, "session": sessionHash(session), "until": s.now().Add(sessionLife), "shown": shown,
	})
}

// spend uses the session up and returns its journey: exactly one post of it gets
// that. A session that is over, used, another Brand's, for another purpose or none
// at all is errNoJourney.
func (s journeys) spend(ctx context.Context, brand tenants.BrandID, session string, p purpose) (journey, error) {
	const q = `
		UPDATE journeys SET session_used = true
		 WHERE brand_id = @brand AND session_hash = @session AND NOT session_used AND session_until > @now
		   AND (request_id IS NULL) = @enter
		RETURNING ` + journeyColumns
	return s.one(ctx, brand, q, pgx.NamedArgs{
		"brand": brand, "session": sessionHash(session), "now": s.now(), "enter": bool(p),
	})
}

// spent returns the journey of a session that was used to decide, for whoever
// pressed the button twice.
func (s journeys) spent(ctx context.Context, brand tenants.BrandID, session string) (journey, error) {
	const q = `
		SELECT ` + journeyColumns + `
		  FROM journeys
		 WHERE brand_id = @brand AND session_hash = @session AND session_used AND session_until > @now
		   AND request_id IS NOT NULL`
	return s.one(ctx, brand, q, pgx.NamedArgs{"brand": brand, "session": sessionHash(session), "now": s.now()})
}

// moveTo has the journey go on in the browser.
func (s journeys) moveTo(ctx context.Context, brand tenants.BrandID, b *browser, id string) error {
	const q = `UPDATE journeys SET browser = @browser WHERE brand_id = @brand AND id = @id`
	return s.change(ctx, brand, q, pgx.NamedArgs{"brand": brand, "id": id, "browser": b.hash()})
}

// forget removes assertions that would be refused for their age.
func (s journeys) forget(ctx context.Context, brand tenants.BrandID) error {
	const q = `DELETE FROM login_assertions WHERE brand_id = @brand AND expires_at <= @now`
	if _, err := s.db.Exec(ctx, brand, q, pgx.NamedArgs{"brand": brand, "now": s.now()}); err != nil {
		return fmt.Errorf("forget assertions of %s: %w", brand, err)
	}
	return nil
}

func sessionHash(session string) []byte {
	sum := sha256.Sum256([]byte(session))
	return sum[:]
}
