package tenants

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// RecoveryWait is how long everybody has to say no when an owner without
// passkeys and codes wants to come back with nobody to vouch.
const RecoveryWait = 72 * time.Hour

// ErrNoRecovery is returned where no recovery is under way, or none is due.
var ErrNoRecovery = errors.New("no such recovery")

// EventRecoveryCancelled is the fact that somebody said no to a recovery.
const EventRecoveryCancelled = "recovery.cancelled"

// Recovery is an owner's wait.
type Recovery struct {
	ID     uuid.UUID `db:"id"`
	Brand  BrandID   `db:"brand_id"`
	Person uuid.UUID `db:"person_id"`
	DueAt  time.Time
	Token  string // to be published on a domain of the Brand's: see FindProof
}

// AskRecovery begins the wait and tells every member of the Brand by mail. One
// that is under way goes on, and is not told again.
func AskRecovery(ctx context.Context, db *DB, a Act) error {
	const insert = `
		INSERT INTO recoveries (brand_id, id, person_id, asked_at, due_at, token)
		SELECT brand_id, @id, person_id, @now, @due, @token
		  FROM memberships
		 WHERE brand_id = @brand AND person_id = @person AND role = 'owner'
		ON CONFLICT (brand_id, person_id) WHERE cancelled_at IS NULL AND done_at IS NULL DO NOTHING`
	const tell = `
		INSERT INTO notices (brand_id, id, person_id, kind, detail, created_at)
		SELECT brand_id, gen_random_uuid(), person_id, @event, jsonb_build_object('by', @person::uuid), @now
		  FROM memberships
		 WHERE brand_id = @brand`
	id := uuid.Must(uuid.NewV7())
	a.Detail = map[string]any{"recovery": id}
	err := a.Do(ctx, db, func(tx pgx.Tx) error {
		args := pgx.NamedArgs{
			"brand": a.Brand, "id": id, "person": a.By, "event": a.Event,
			"now": a.Now, "due": a.Now.Add(RecoveryWait), "token": "countersign-recovery=" + strings.ToLower(rand.Text()),
		}
		tag, err := tx.Exec(ctx, insert, args)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return ErrNoRecovery
		}
		_, err = tx.Exec(ctx, tell, args)
		return err
	})
	return err
}

// CancelRecovery ends the wait. Any member may: who is wrong loses a mail, who is
// right saves the Brand.
func CancelRecovery(ctx context.Context, db *DB, a Act, id uuid.UUID) error {
	const q = `
		UPDATE recoveries SET cancelled_at = @now, cancelled_by = @by
		 WHERE brand_id = @brand AND id = @id AND cancelled_at IS NULL AND done_at IS NULL`
	a.Detail = map[string]any{"recovery": id}
	return a.Do(ctx, db, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, q, pgx.NamedArgs{"brand": a.Brand, "id": id, "by": a.By, "now": a.Now})
		if err == nil && tag.RowsAffected() == 0 {
			return ErrNoRecovery
		}
		return err
	})
}

// EndRecovery is CancelRecovery for a program, which waits for nobody: it lets
// nobody in.
func EndRecovery(ctx context.Context, edit Editor, brand BrandID, id uuid.UUID) error {
	const q = `
		UPDATE recoveries SET cancelled_at = @now
		 WHERE brand_id = @brand AND id = @id AND cancelled_at IS NULL AND done_at IS NULL`
	return edit.change(ctx, brand, "cancel recovery", func(e *Edit) error {
		tag, err := e.Exec(ctx, q, pgx.NamedArgs{"brand": brand, "id": id, "now": e.Now})
		if err == nil && tag.RowsAffected() == 0 {
			return ErrNoRecovery
		}
		e.Note(EventRecoveryCancelled, map[string]any{"recovery": id})
		return err
	})
}

// Recoveries lists the waits that are under way at the Brand.
func Recoveries(ctx context.Context, db *DB, brand BrandID) ([]Recovery, error) {
	const q = `
		SELECT id, brand_id, person_id, due_at, token FROM recoveries
		 WHERE brand_id = @brand AND cancelled_at IS NULL AND done_at IS NULL ORDER BY due_at, id`
	out, err := All[Recovery](ctx, db, brand, q, pgx.NamedArgs{"brand": brand})
	if err != nil {
		return nil, fmt.Errorf("list recoveries at %s: %w", brand, err)
	}
	return out, nil
}

// RecoveriesOf lists the person's own waits, at all Brands.
func RecoveriesOf(ctx context.Context, db *DB, person uuid.UUID) ([]Recovery, error) {
	const q = `SELECT id, brand_id, person_id, due_at, token FROM person_recoveries WHERE person_id = @person ORDER BY due_at, id`
	out, err := ofPerson[Recovery](ctx, db, person, q)
	if err != nil {
		return nil, fmt.Errorf("list a person's recoveries: %w", err)
	}
	return out, nil
}

// StandingDomains lists the Brand's domains that are proven and not lost.
func StandingDomains(ctx context.Context, db *DB, brand BrandID, now time.Time) ([]Domain, error) {
	all, err := Domains(ctx, db, brand)
	return slices.DeleteFunc(all, func(d Domain) bool { return !d.stands(now) }), err
}

// NoProof is that the recovery's token stands at none of the Brand's domains.
type NoProof struct {
	Found string // what was found instead, for whoever publishes it
}

func (p NoProof) Error() string { return "no proof for the recovery: " + p.Found }

// FindProof looks whether the recovery's token stands now at one of the Brand's
// domains that are proven and not lost, where a domain's own proof would stand,
// and returns that host; otherwise it returns NoProof. The domain's own proof does
// not count: it stands there whoever asks.
func (r Recovery) FindProof(ctx context.Context, db *DB, p Prover, now time.Time) (host string, err error) {
	all, err := StandingDomains(ctx, db, r.Brand, now)
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return "", NoProof{Found: "the brand has no proven domain"}
	}
	methods, troubles := make([]string, len(all)), make([]string, len(all))
	var looks sync.WaitGroup // at once: one host that hangs must not eat up the time of all
	for i, d := range all {
		d.Token = r.Token
		looks.Go(func() { methods[i], troubles[i] = p.look(ctx, d) })
	}
	looks.Wait()
	if i := slices.IndexFunc(methods, func(m string) bool { return m != "" }); i >= 0 {
		return all[i].Host, nil
	}
	return "", NoProof{Found: strings.Join(troubles, "; ")}
}

// Vouch returns the secret of a link with which the member, who has lost all
// passkeys, may register a new one.
func Vouch(ctx context.Context, db *DB, a Act, person uuid.UUID) (token string, err error) {
	return vouch(ctx, db, a, person, asItIs)
}

func vouch(ctx context.Context, db *DB, a Act, person uuid.UUID, check memberCheck) (token string, err error) {
	const q = `
		SELECT p.email FROM memberships m JOIN people p ON p.id = m.person_id
		 WHERE m.brand_id = @brand AND m.person_id = @person`
	a.Detail = map[string]any{"member": person}
	err = a.Do(ctx, db, func(tx pgx.Tx) error {
		var email string
		err := tx.QueryRow(ctx, q, pgx.NamedArgs{"brand": a.Brand, "person": person}).Scan(&email)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrNotMember
		}
		if err == nil {
			err = check(ctx, tx, a.Brand)
		}
		if err != nil {
			return err
		}
		token, err = issueLink(ctx, tx, LinkRestore, email, LinkData{Brand: a.Brand}, a.Now)
		return err
	})
	return token, err
}

// RestoreByCode spends the link and one recovery code, and gives the person one
// more passkey.
func RestoreByCode(ctx context.Context, db *DB, l Link, person uuid.UUID, code string, key Passkey, now time.Time) error {
	const use = `UPDATE recovery_codes SET used_at = @now WHERE person_id = @person AND hash = @hash AND used_at IS NULL`
	err := db.Tx(ctx, "", func(tx pgx.Tx) error {
		if err := l.spend(ctx, tx, now); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, use, pgx.NamedArgs{"person": person, "hash": codeHash(code), "now": now})
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return ErrBadCode
		}
		return addPasskey(ctx, tx, person, key, now)
	})
	if err != nil {
		return fmt.Errorf("restore by code: %w", err)
	}
	return nil
}

// CheckCode tells whether the code would serve, before the person is asked for a
// passkey. RestoreByCode has the last word.
func CheckCode(ctx context.Context, db *DB, person uuid.UUID, code string) error {
	const q = `SELECT EXISTS (SELECT FROM recovery_codes WHERE person_id = @person AND hash = @hash AND used_at IS NULL)`
	var good bool
	if err := db.pool.QueryRow(ctx, q, pgx.NamedArgs{"person": person, "hash": codeHash(code)}).Scan(&good); err != nil {
		return fmt.Errorf("check recovery code: %w", err)
	}
	if !good {
		return ErrBadCode
	}
	return nil
}

// EventRestored is the fact that somebody came back with a new passkey, because
// an owner vouched, or because nobody had said no and a domain of the Brand's
// showed the token; then it names the recovery and the host.
const EventRestored = "member.restored"

// Waited is a wait that is over, and the Brand's host at which FindProof has found
// its token. None is neither.
type Waited struct {
	Recovery uuid.UUID
	Host     string
}

// spend ends a wait that is over, with its proof at a host that is the Brand's.
func (w Waited) spend(ctx context.Context, tx pgx.Tx, brand BrandID, person uuid.UUID, now time.Time) (detail map[string]any, err error) {
	const q = `
		UPDATE recoveries SET done_at = @now
		 WHERE brand_id = @brand AND id = @recovery AND person_id = @person
		   AND cancelled_at IS NULL AND done_at IS NULL AND due_at <= @now
		   AND EXISTS (SELECT FROM brand_domains
		                WHERE brand_id = @brand AND host = @host AND proven_at IS NOT NULL
		                  AND (failing_since IS NULL OR failing_since >= @lost))`
	tag, err := tx.Exec(ctx, q, pgx.NamedArgs{
		"brand": brand, "recovery": w.Recovery, "host": w.Host, "person": person, "now": now, "lost": now.Add(-lostAfter),
	})
	if err == nil && tag.RowsAffected() == 0 {
		err = ErrNoRecovery
	}
	return map[string]any{"recovery": w.Recovery, "host": w.Host}, err
}

// RestoreByBrand spends the link and gives the person a new passkey on the word
// of one Brand: of an owner there, or of a wait that is over, while the host where
// its token was found is still the Brand's. What else could open this person's
// account is void from now on, and at other Brands the membership rests until an
// owner there confirms it, or a wait there is over too (ConfirmByWait): their owners
// have vouched for nobody. The other owners of this one hear of it.
func RestoreByBrand(ctx context.Context, db *DB, l Link, brand BrandID, w Waited, person uuid.UUID, key Passkey, record Record, now time.Time) error {
	const confirm = `UPDATE memberships SET confirmed_at = @now WHERE brand_id = @brand AND person_id = @person`
	const restored = `UPDATE people SET restored_at = @now, codes_kept_at = NULL WHERE id = @person`
	const keys = `DELETE FROM passkeys WHERE person_id = @person`
	const codes = `DELETE FROM recovery_codes WHERE person_id = @person`
	args := pgx.NamedArgs{"brand": brand, "person": person, "now": now}
	back := Act{Brand: brand, By: person, Event: EventRestored, Record: record, Now: now}
	err := db.Tx(ctx, brand, func(tx pgx.Tx) error {
		if err := l.spend(ctx, tx, now); err != nil {
			return err
		}
		if l.Purpose != LinkRestore {
			var err error
			if back.Detail, err = w.spend(ctx, tx, brand, person, now); err != nil {
				return err
			}
		}
		tag, err := tx.Exec(ctx, confirm, args)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return ErrNotMember // removed meanwhile: nobody vouches any more
		}
		for _, q := range []string{restored, keys, codes} {
			if _, err := tx.Exec(ctx, q, args); err != nil {
				return err
			}
		}
		if err := addPasskey(ctx, tx, person, key, now); err != nil {
			return err
		}
		return back.come(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("restore by %s: %w", brand, err)
	}
	return nil
}

// ConfirmByWait spends the link and ends the rest of a membership at one more Brand, on
// the word of a wait there that is over, as RestoreByBrand does. The person has come
// back by another Brand and keeps the passkey that they made then: making one more
// would throw away what the other Brand's wait has shown. since is when this person
// signed in with it; who came back after that is somebody else, perhaps.
func ConfirmByWait(ctx context.Context, db *DB, l Link, brand BrandID, w Waited, person uuid.UUID, since time.Time, record Record, now time.Time) error {
	// It is confirmed of who came back then, and of nobody who comes at this moment.
	const confirm = `
		UPDATE memberships m SET confirmed_at = p.restored_at FROM people p
		 WHERE m.brand_id = @brand AND m.person_id = @person AND m.role = 'owner'
		   AND p.id = m.person_id AND p.restored_at > m.confirmed_at AND p.restored_at <= @since`
	act := Act{Brand: brand, By: person, Event: EventConfirmed, Record: record, Now: now}
	err := db.Tx(ctx, brand, func(tx pgx.Tx) error {
		if err := l.spend(ctx, tx, now); err != nil {
			return err
		}
		var err error
		if act.Detail, err = w.spend(ctx, tx, brand, person, now); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, confirm, pgx.NamedArgs{"brand": brand, "person": person, "since": since})
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return ErrNotMember // removed meanwhile, confirmed, or somebody has come back since
		}
		return act.come(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("confirm by a wait at %s: %w", brand, err)
	}
	return nil
}
