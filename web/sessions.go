package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gorilla/sessions"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// SessionLife bounds a browser session, and its cookie.
const SessionLife = time.Hour

// The dashboard's sessions are longer, and end sooner when nobody is there.
const (
	ConsoleLife = 8 * time.Hour
	ConsoleIdle = 30 * time.Minute
)

// Store keeps gorilla sessions in PostgreSQL. The cookie holds a random id and
// nothing else, so it never grows and never speaks; the table holds the id's
// hash. It implements sessions.Store. Session values are strings under string
// keys.
type Store struct {
	pool *pgxpool.Pool
	now  func() time.Time
	kind string        // a session of another kind is an unknown one
	life time.Duration // whatever happens
	idle time.Duration // without a request; 0: no matter
}

// NewStore returns a Store over pool for the people's pages.
func NewStore(pool *pgxpool.Pool, now func() time.Time) *Store {
	return &Store{pool: pool, now: now, kind: "page", life: SessionLife}
}

// NewConsoleStore returns a Store over pool for the dashboard.
func NewConsoleStore(pool *pgxpool.Pool, now func() time.Time) *Store {
	return &Store{pool: pool, now: now, kind: "console", life: ConsoleLife, idle: ConsoleIdle}
}

// cookie spells out every option: the library's defaults are no SameSite, no
// Secure and thirty days.
func (s *Store) cookie() *sessions.Options {
	return &sessions.Options{
		Path: "/", MaxAge: int(s.life.Seconds()), Secure: true, HttpOnly: true,
		SameSite: http.SameSiteLaxMode,
	}
}

// Get implements sessions.Store: one session per request and name.
func (s *Store) Get(r *http.Request, name string) (*sessions.Session, error) {
	return sessions.GetRegistry(r).Get(s, name)
}

// New implements sessions.Store. A cookie that names no living session yields a
// new one: an id of the visitor's choosing is never adopted.
func (s *Store) New(r *http.Request, name string) (*sessions.Session, error) {
	session := sessions.NewSession(s, name)
	session.Options = s.cookie()
	session.IsNew = true
	c, err := r.Cookie(name)
	if err != nil || len(c.Value) > 64 {
		return session, nil //nolint:nilerr // no cookie is no error
	}
	values, err := s.load(r.Context(), c.Value)
	if errors.Is(err, pgx.ErrNoRows) {
		return session, nil
	}
	if err != nil {
		return session, fmt.Errorf("load browser session: %w", err)
	}
	session.ID, session.IsNew = c.Value, false
	for k, v := range values {
		session.Values[k] = v
	}
	return session, nil
}

// Save implements sessions.Store. A session without an id gets one, and the
// cookie is set only then.
func (s *Store) Save(r *http.Request, w http.ResponseWriter, session *sessions.Session) error {
	values := make(map[string]string, len(session.Values))
	for k, v := range session.Values {
		key, ok1 := k.(string)
		value, ok2 := v.(string)
		if !ok1 || !ok2 {
			return fmt.Errorf("save browser session: value %v is not a string", k)
		}
		values[key] = value
	}
	data, err := json.Marshal(values)
	if err != nil {
		return fmt.Errorf("save browser session: %w", err)
	}
	fresh := session.ID == ""
	if fresh {
		session.ID = rand.Text() + rand.Text() // 260 bits
	}
	const begin = `
		INSERT INTO browser_sessions (id_hash, kind, data, created_at, expires_at, idle_until, owner, browser)
		VALUES (@id, @kind, @data, @now, @expires, @idle, @owner, @browser)`
	// One that was ended meanwhile stays ended: a request that was under way must
	// not bring it back.
	const carry = `UPDATE browser_sessions SET data = @data, owner = @owner, browser = @browser WHERE id_hash = @id AND kind = @kind`
	q := carry
	if fresh {
		q = begin
	}
	now := s.now()
	_, err = s.pool.Exec(r.Context(), q, pgx.NamedArgs{
		"id": idHash(session.ID), "kind": s.kind, "data": data, "now": now, "expires": now.Add(s.life), "idle": s.idleUntil(now),
		"owner": values[OwnerValue], "browser": values[BrowserValue],
	})
	if err != nil {
		return fmt.Errorf("save browser session: %w", err)
	}
	if fresh {
		http.SetCookie(w, sessions.NewCookie(session.Name(), session.ID, session.Options))
	}
	return nil
}

// Renew gives the session another id: what somebody planted or saw before a
// login is worth nothing after it.
func (s *Store) Renew(r *http.Request, w http.ResponseWriter, session *sessions.Session) error {
	if err := s.drop(r.Context(), session.ID); err != nil {
		return err
	}
	session.ID = ""
	return s.Save(r, w, session)
}

// End forgets the session, here and in the browser.
func (s *Store) End(r *http.Request, w http.ResponseWriter, session *sessions.Session) error {
	if err := s.drop(r.Context(), session.ID); err != nil {
		return err
	}
	session.ID, session.Values, session.IsNew = "", make(map[any]any), true
	gone := *session.Options
	gone.MaxAge = -1
	http.SetCookie(w, sessions.NewCookie(session.Name(), "", &gone))
	return nil
}

// idleUntil is when a session that nobody uses from now on ends; nil: it is not
// counted.
func (s *Store) idleUntil(now time.Time) *time.Time {
	if s.idle == 0 {
		return nil
	}
	end := now.Add(s.idle)
	return &end
}

// load reads the session, and notes at most once a minute that it is used.
func (s *Store) load(ctx context.Context, id string) (map[string]string, error) {
	const q = `
		SELECT data, idle_until FROM browser_sessions
		 WHERE id_hash = @id AND kind = @kind AND expires_at > @now AND (idle_until IS NULL OR idle_until > @now)`
	const used = `UPDATE browser_sessions SET idle_until = @idle WHERE id_hash = @id AND idle_until > @now`
	now := s.now()
	args := pgx.NamedArgs{"id": idHash(id), "kind": s.kind, "now": now, "idle": s.idleUntil(now)}
	var data []byte
	var idle *time.Time
	if err := s.pool.QueryRow(ctx, q, args).Scan(&data, &idle); err != nil {
		return nil, err
	}
	if idle != nil && now.Add(s.idle).Sub(*idle) >= time.Minute {
		if _, err := s.pool.Exec(ctx, used, args); err != nil {
			return nil, err
		}
	}
	var values map[string]string
	return values, json.Unmarshal(data, &values)
}

func (s *Store) drop(ctx context.Context, id string) error {
	if id == "" {
		return nil
	}
	if _, err := s.pool.Exec(ctx, `DELETE FROM browser_sessions WHERE id_hash = @id`, pgx.NamedArgs{"id": idHash(id)}); err != nil {
		return fmt.Errorf("drop browser session: %w", err)
	}
	return nil
}

// Purge removes sessions that are over, batch after batch.
func (s *Store) Purge(ctx context.Context) (int64, error) {
	const batch = 1000
	const q = `
		DELETE FROM browser_sessions
		 WHERE id_hash IN (SELECT id_hash FROM browser_sessions WHERE expires_at <= @now OR idle_until <= @now LIMIT @batch)`
	var total int64
	for {
		tag, err := s.pool.Exec(ctx, q, pgx.NamedArgs{"now": s.now(), "batch": batch})
		if err != nil {
			return total, fmt.Errorf("purge browser sessions: %w", err)
		}
		total += tag.RowsAffected()
		if tag.RowsAffected() < batch {
			return total, nil
		}
	}
}

func idHash(id string) []byte {
	sum := sha256.Sum256([]byte(id))
	return sum[:]
}
