package consent

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// journeyLife outlasts the request, so that the closing page and an honest
// "this has expired" still find their way.
const journeyLife = time.Hour

// errNoJourney: this browser has no such journey (any more).
var errNoJourney = errors.New("no such journey in this browser")

// journey is one person's way through one request in one browser.
type journey struct {
	ID         string     `db:"id"`
	RequestID  *uuid.UUID `db:"request_id"` // nil: the way to My agents
	Fresh      bool       // the login under way, or the last one, was asked to be fresh
	LoginBegan *time.Time
	Logins     int
	Trouble    *string // how the last login failed
	Subject    *string
	Account    *string
	LoggedInAt *time.Time
	VouchedBy  *string  // for that login; nil: it was made before this was kept
	Ticked     []string // nil: nothing chosen yet
	Days       *int
	UILocales  string `db:"ui_locales"`
	Outcome    *string
	Allowed    []string
	Until      *time.Time `db:"allowed_until"`
	Ended      []string
	Shown      string // what the page of its session said
}

const journeyColumns = `id, request_id, fresh, login_began, logins, trouble, subject, account, logged_in_at, vouched_by,
	ticked, days, ui_locales, outcome, allowed, allowed_until, ended, shown`

type journeys struct {
	db  *tenants.DB
	now func() time.Time
}

// handle returns an opaque name that is short enough for any URL (B48).
func handle() string { return strings.ToLower(rand.Text()) }

// begin starts a journey in the browser.
func (s journeys) begin(ctx context.Context, brand tenants.BrandID, b *browser, request *uuid.UUID, locales string) (string, error) {
	const q = `
		INSERT INTO journeys (brand_id, id, browser, request_id, ui_locales, created_at, expires_at)
		VALUES (@brand, @id, @browser, @request, @locales, @now, @expires)`
	id := handle()
	now := s.now()
	_, err := s.db.Exec(ctx, brand, q, pgx.NamedArgs{
		"brand": brand, "id": id, "browser": b.hash(), "request": request, "locales": locales,
		"now": now, "expires": now.Add(journeyLife),
	})
	if err != nil {
		return "", fmt.Errorf("begin journey at %s: %w", brand, err)
	}
	return id, nil
}

// find returns the browser's own journey; another browser's is errNoJourney
// (R14).
func (s journeys) find(ctx context.Context, brand tenants.BrandID, b *browser, id string) (journey, error) {
	const q = `
		SELECT ` + journeyColumns + `
		  FROM journeys
		 WHERE brand_id = @brand AND id = @id AND browser = @browser AND expires_at > @now`
	if !b.known() || !isHandle(id) {
		return journey{}, errNoJourney
	}
	return s.one(ctx, brand, q, pgx.NamedArgs{"brand": brand, "id": id, "browser": b.hash(), "now": s.now()})
}

func (s journeys) one(ctx context.Context, brand tenants.BrandID, q string, args pgx.NamedArgs) (journey, error) {
	j, err := tenants.One[journey](ctx, s.db, brand, q, args)
	if errors.Is(err, pgx.ErrNoRows) {
		return journey{}, errNoJourney
	}
	if err != nil {
		return journey{}, fmt.Errorf("find journey at %s: %w", brand, err)
	}
	return j, nil
}

// isHandle reports whether id could be one of ours; anything else is not even
// asked of the database.
func isHandle(id string) bool {
	return id != "" && len(id) <= 64 && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '2' || r > '7')
	})
}

// depart records that the browser leaves for a login under the state. A login
// that was under way in this journey counts no more; and where a fresh one is
// needed, neither does an earlier one, or the Back button would stand for it.
func (s journeys) depart(ctx context.Context, brand tenants.BrandID, b *browser, id, state string, fresh bool) error {
	const q = `
		UPDATE journeys
		   SET state_hash = @state, state_used = false, fresh = @fresh, login_began = @now,
		       logged_in_at = CASE WHEN @fresh THEN NULL ELSE logged_in_at END,
		       logins = logins + 1, trouble = NULL
		 WHERE brand_id = @brand AND id = @id AND browser = @browser`
	return s.change(ctx, brand, q, pgx.NamedArgs{
		"brand": brand, "id": id, "browser": b.hash(), "state": stateHash(state), "fresh": fresh, "now": s.now(),
	})
}

// byState returns the journey that left under the state, in whatever browser:
// to help somebody whose browser lost its cookie, never to let him in.
func (s journeys) byState(ctx context.Context, brand tenants.BrandID, state string) (journey, error) {
	const q = `
		SELECT ` + journeyColumns + `
		  FROM journeys
		 WHERE brand_id = @brand AND state_hash = @state AND expires_at > @now`
	return s.one(ctx, brand, q, pgx.NamedArgs{"brand": brand, "state": stateHash(state), "now": s.now()})
}

// arrive consumes the state: exactly one callback gets true (R67, B58).
func (s journeys) arrive(ctx context.Context, brand tenants.BrandID, b *browser, state string) (bool, error) {
	const q = `
		UPDATE journeys SET state_used = true
		 WHERE brand_id = @brand AND state_hash = @state AND browser = @browser AND NOT state_used`
	n, err := s.db.Exec(ctx, brand, q, pgx.NamedArgs{"brand": brand, "state": stateHash(state), "browser": b.hash()})
	if err != nil {
		return false, fmt.Errorf("arrive at %s: %w", brand, err)
	}
	return n == 1, nil
}

// loggedIn records who came back.
func (s journeys) loggedIn(ctx context.Context, brand tenants.BrandID, id string, l login) error {
	const q = `
		UPDATE journeys SET subject = @subject, account = @account, logged_in_at = @at, vouched_by = @by, trouble = NULL
		 WHERE brand_id = @brand AND id = @id`
	return s.change(ctx, brand, q, pgx.NamedArgs{
		"brand": brand, "id": id, "subject": l.Subject, "account": l.Account, "at": l.At, "by": l.By,
	})
}

// shownTo records who reads the question under a login that was made elsewhere:
// they are to read how it ended, too. It is no login made in this journey.
func (s journeys) shownTo(ctx context.Context, brand tenants.BrandID, id string, l login) error {
	const q = `
		UPDATE journeys SET subject = @subject, account = @account, logged_in_at = NULL, vouched_by = NULL
		 WHERE brand_id = @brand AND id = @id`
	return s.change(ctx, brand, q, pgx.NamedArgs{"brand": brand, "id": id, "subject": l.Subject, "account": l.Account})
}

// troubled records how a login failed.
func (s journeys) troubled(ctx context.Context, brand tenants.BrandID, id, trouble string) error {
	const q = `UPDATE journeys SET trouble = @trouble WHERE brand_id = @brand AND id = @id`
	return s.change(ctx, brand, q, pgx.NamedArgs{"brand": brand, "id": id, "trouble": trouble})
}

// chose keeps what was ticked when a post could not count, so that nothing has
// to be ticked twice.
func (s journeys) chose(ctx context.Context, brand tenants.BrandID, id string, ticked []string, days int) error {
	const q = `UPDATE journeys SET ticked = @ticked, days = @days WHERE brand_id = @brand AND id = @id`
	if ticked == nil {
		ticked = []string{}
	}
	return s.change(ctx, brand, q, pgx.NamedArgs{"brand": brand, "id": id, "ticked": ticked, "days": days})
}

// ending is how a journey ended, as its closing page tells it.
type ending struct {
	outcome string // allowed, denied, emptied or continued
	allowed []string
	until   *time.Time
	ended   []string
}

// closed records how it ended here. The grant itself may change later; what was
// allowed in this journey does not.
func (s journeys) closed(ctx context.Context, brand tenants.BrandID, id string, e ending) error {
	const q = `
		UPDATE journeys SET outcome = @outcome, allowed = @allowed, allowed_until = @until, ended = @ended
		 WHERE brand_id = @brand AND id = @id`
	return s.change(ctx, brand, q, pgx.NamedArgs{
		"brand": brand, "id": id, "outcome": e.outcome, "allowed": e.allowed, "until": e.until, "ended": e.ended,
	})
}

func (s journeys) change(ctx context.Context, brand tenants.BrandID, q string, args pgx.NamedArgs) error {
	n, err := s.db.Exec(ctx, brand, q, args)
	if err != nil {
		return fmt.Errorf("change journey at %s: %w", brand, err)
	}
	if n == 0 {
		return errNoJourney
	}
	return nil
}

// purge removes journeys that are over, batch after batch.
func (s journeys) purge(ctx context.Context, brand tenants.BrandID) (int64, error) {
	const batch = 1000
	const q = `
		DELETE FROM journeys
		 WHERE brand_id = @brand AND id IN (
		       SELECT id FROM journeys WHERE brand_id = @brand AND expires_at < @now LIMIT @batch)`
	var total int64
	for {
		n, err := s.db.Exec(ctx, brand, q, pgx.NamedArgs{"brand": brand, "now": s.now(), "batch": batch})
		if err != nil {
			return total, fmt.Errorf("purge journeys of %s: %w", brand, err)
		}
		total += n
		if n < batch {
			return total, nil
		}
	}
}

// Purge removes the Brand's journeys that are over, and assertions that nobody
// could use again.
func (h *Handler) Purge(ctx context.Context, brand tenants.BrandID) (int64, error) {
	if err := h.journeys.forget(ctx, brand); err != nil {
		return 0, err
	}
	return h.journeys.purge(ctx, brand)
}

func stateHash(state string) []byte {
	sum := sha256.Sum256([]byte(state))
	return sum[:]
}
