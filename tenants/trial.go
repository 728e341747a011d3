package tenants

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// ProgramTry begins the state of a test login that a program or a shell began: its
// answer is of no member's browser.
const ProgramTry = TryPrefix + "api."

// TrialLife is how long somebody may look for their password.
const TrialLife = 10 * time.Minute

const (
	trialKept     = 24 * time.Hour // its outcome
	mostTrials    = 20             // that wait at once
	trialPurposed = "login-try"
)

// Reasons that a test login is none.
var (
	ErrNoTrial   = errors.New("no such test login, or its time is over")
	ErrOwnPage   = errors.New("the Brand's own login page posts to people's pages alone; look at it with check")
	ErrTooTrying = errors.New("too many test logins wait already")
)

// Trial is a test login that a program began, and what came of it. Of whoever
// logged in it tells nothing but which claims the provider named: the address may
// have been given to anybody.
type Trial struct {
	ID         uuid.UUID  `json:"id" db:"id"`
	Connection uuid.UUID  `json:"connection" db:"connection_id"`
	State      string     `json:"state"` // waiting, good, failed or over
	Trouble    string     `json:"trouble"`
	Why        string     `json:"why"`
	Claims     []string   `json:"claims"`
	Subject    bool       `json:"subject"` // the claim was there that becomes sub
	BeganAt    time.Time  `json:"began_at"`
	EndsAt     time.Time  `json:"ends_at"`
	DoneAt     *time.Time `json:"done_at"`
}

// Trials begins and ends test logins for programs. Begin and Finish speak with the
// provider.
type Trials struct {
	DB     *DB
	Sealer Sealer
	Site   Site
	Now    func() time.Time
	Begin  func(ctx context.Context, l LoginConnection, try Try, uiLocales string) (string, Tried)
	Finish func(ctx context.Context, l LoginConnection, try Try, answer url.Values) Tried
}

// Start begins a test login through the connection and returns where a browser
// goes for it. Where that cannot be, the trial has failed already, and there is no
// address.
func (t Trials) Start(ctx context.Context, brand BrandID, connection uuid.UUID) (Trial, string, error) {
	c, err := connectionNow(ctx, t.DB, brand, connection)
	if err != nil {
		return Trial{}, "", err
	}
	if c.Kind == KindAssertion {
		return Trial{}, "", ErrOwnPage
	}
	l, err := Candidate(ctx, t.DB, t.Sealer, brand, c.ID)
	if err != nil {
		return Trial{}, "", err
	}
	now := t.Now().UTC().Truncate(time.Microsecond)
	try := Try{
		State: ProgramTry + rand.Text() + rand.Text(), Nonce: rand.Text() + rand.Text(), Verifier: rand.Text() + rand.Text(),
		RedirectURI: t.Site.PublicURL + "/b/" + string(brand) + "/callback", Began: now,
	}
	to, failed := t.Begin(ctx, l, try, "")
	id := uuid.Must(uuid.NewV7())
	raw, err := json.Marshal(try)
	if err != nil {
		return Trial{}, "", fmt.Errorf("begin test login at %s: %w", brand, err)
	}
	sealed, err := t.Sealer.Seal(ctx, brand, trialPurpose(id), raw)
	if err != nil {
		return Trial{}, "", fmt.Errorf("seal test login of %s: %w", brand, err)
	}
	const q = `
		INSERT INTO login_tries (brand_id, id, connection_id, shown, state_hash, try_sealed, began_at, ends_at, done_at, trouble, why)
		SELECT @brand, @id, @connection, @shown, @state, CASE WHEN @trouble = '' THEN @sealed::bytea END, @now, @ends,
		       CASE WHEN @trouble <> '' THEN @now::timestamptz END, @trouble, @why
		 WHERE (SELECT count(*) FROM login_tries WHERE brand_id = @brand AND done_at IS NULL AND ends_at > @now) < @most`
	n, err := t.DB.Exec(ctx, brand, q, pgx.NamedArgs{
		"brand": brand, "id": id, "connection": c.ID, "shown": c.Shown(), "state": stateHash(try.State), "sealed": sealed,
		"now": now, "ends": now.Add(TrialLife), "trouble": failed.Trouble, "why": failed.Why, "most": mostTrials,
	})
	if err != nil {
		return Trial{}, "", fmt.Errorf("keep test login of %s: %w", brand, err)
	}
	if n == 0 {
		return Trial{}, "", ErrTooTrying
	}
	if failed.Trouble != "" {
		to = ""
	}
	trial, err := TrialOf(ctx, t.DB, brand, id, now)
	return trial, to, err
}

// End takes the answer that a browser came back with. It counts once, for the
// connection as it was, and in time; otherwise it is ErrNoTrial.
func (t Trials) End(ctx context.Context, brand BrandID, answer url.Values) (Trial, error) {
	const claim = `
		UPDATE login_tries SET done_at = @now
		 WHERE brand_id = @brand AND state_hash = @state AND done_at IS NULL AND ends_at > @now
		RETURNING id, connection_id, shown, try_sealed AS sealed`
	const keep = `
		UPDATE login_tries SET try_sealed = NULL, trouble = @trouble, why = @why, claims = @claims, subject = @subject
		 WHERE brand_id = @brand AND id = @id`
	type row struct {
		ID           uuid.UUID `db:"id"`
		ConnectionID uuid.UUID `db:"connection_id"`
		Shown        string
		Sealed       []byte
	}
	now := t.Now()
	r, err := One[row](ctx, t.DB, brand, claim, pgx.NamedArgs{"brand": brand, "state": stateHash(answer.Get("state")), "now": now})
	if errors.Is(err, pgx.ErrNoRows) {
		return Trial{}, ErrNoTrial
	}
	if err != nil {
		return Trial{}, fmt.Errorf("find test login of %s: %w", brand, err)
	}
	tried, err := t.finish(ctx, brand, r.ID, r.ConnectionID, r.Shown, r.Sealed, answer)
	if err != nil {
		return Trial{}, err
	}
	claims := []string{}
	for _, c := range tried.Claims {
		claims = append(claims, c.Name)
	}
	_, err = t.DB.Exec(ctx, brand, keep, pgx.NamedArgs{
		"brand": brand, "id": r.ID, "trouble": tried.Trouble, "why": tried.Why, "claims": claims, "subject": tried.Subject != "",
	})
	if err != nil {
		return Trial{}, fmt.Errorf("keep test login of %s: %w", brand, err)
	}
	return TrialOf(ctx, t.DB, brand, r.ID, now)
}

// finish asks the provider. A connection that is another now, or gone, has not been
// tried.
func (t Trials) finish(ctx context.Context, brand BrandID, id, connection uuid.UUID, shown string, sealed []byte, answer url.Values) (Tried, error) {
	changed := Tried{Trouble: TryMisconfigured, Why: "the connection was changed meanwhile"}
	c, err := connectionNow(ctx, t.DB, brand, connection)
	if errors.Is(err, ErrNoConnection) || err == nil && c.Shown() != shown {
		return changed, nil
	}
	if err != nil {
		return Tried{}, err
	}
	l, err := Candidate(ctx, t.DB, t.Sealer, brand, c.ID)
	if err != nil {
		return Tried{}, err
	}
	raw, err := t.Sealer.Open(ctx, brand, trialPurpose(id), sealed)
	if err != nil {
		return Tried{}, fmt.Errorf("open test login of %s: %w", brand, err)
	}
	var try Try
	if err := json.Unmarshal(raw, &try); err != nil {
		return Tried{}, fmt.Errorf("read test login of %s: %w", brand, err)
	}
	return t.Finish(ctx, l, try, answer), nil
}

func trialPurpose(id uuid.UUID) string { return trialPurposed + " " + id.String() }

func stateHash(state string) []byte {
	sum := sha256.Sum256([]byte(state))
	return sum[:]
}

// TrialOf returns the trial, or ErrNoTrial.
func TrialOf(ctx context.Context, db *DB, brand BrandID, id uuid.UUID, now time.Time) (Trial, error) {
	const q = `
		SELECT id, connection_id, trouble, why, claims, subject, began_at, ends_at, done_at,
		       CASE WHEN try_sealed IS NOT NULL AND ends_at <= @now THEN 'over'
		            WHEN try_sealed IS NOT NULL THEN 'waiting'
		            WHEN trouble <> '' THEN 'failed' ELSE 'good' END AS state
		  FROM login_tries WHERE brand_id = @brand AND id = @id`
	t, err := One[Trial](ctx, db, brand, q, pgx.NamedArgs{"brand": brand, "id": id, "now": now})
	if errors.Is(err, pgx.ErrNoRows) {
		return Trial{}, ErrNoTrial
	}
	if err != nil {
		return Trial{}, fmt.Errorf("find test login of %s: %w", brand, err)
	}
	return t, nil
}

// PurgeTrials removes the Brand's test logins of which nobody asks any more.
func PurgeTrials(ctx context.Context, db *DB, brand BrandID, now time.Time) error {
	const q = `DELETE FROM login_tries WHERE brand_id = @brand AND began_at <= @old`
	if _, err := db.Exec(ctx, brand, q, pgx.NamedArgs{"brand": brand, "old": now.Add(-trialKept)}); err != nil {
		return fmt.Errorf("remove test logins of %s: %w", brand, err)
	}
	return nil
}

// OfProgram reports whether the answer is that of a test login that a program
// began.
func OfProgram(answer url.Values) bool { return strings.HasPrefix(answer.Get("state"), ProgramTry) }
