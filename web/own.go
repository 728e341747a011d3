package web

import (
	"context"
	"fmt"
	"time"

	"github.com/gorilla/sessions"
	"github.com/jackc/pgx/v5"
)

// Values of a session that are kept beside it, so that whoever is signed in finds
// all of theirs.
const (
	OwnerValue   = "owner"   // who is signed in
	BrowserValue = "browser" // family of the browser
)

// Living is a session that is not over.
type Living struct {
	Since   time.Time
	Browser string
	Here    bool // it is the one that was asked from
}

// Own lists the owner's living sessions, the newest first.
func (s *Store) Own(ctx context.Context, owner string, here *sessions.Session) ([]Living, error) {
	const q = `
		SELECT created_at AS since, browser, id_hash = @id AS here FROM browser_sessions
		 WHERE owner = @owner AND owner <> '' AND kind = @kind
		   AND expires_at > @now AND (idle_until IS NULL OR idle_until > @now)
		 ORDER BY created_at DESC, id_hash`
	rows, err := s.pool.Query(ctx, q, s.own(owner, here))
	if err != nil {
		return nil, fmt.Errorf("list browser sessions: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[Living])
	if err != nil {
		return nil, fmt.Errorf("list browser sessions: %w", err)
	}
	return all, nil
}

// EndOthers ends every session of the owner but this one, and returns how many.
func (s *Store) EndOthers(ctx context.Context, owner string, here *sessions.Session) (int64, error) {
	const q = `DELETE FROM browser_sessions WHERE owner = @owner AND owner <> '' AND kind = @kind AND id_hash <> @id`
	tag, err := s.pool.Exec(ctx, q, s.own(owner, here))
	if err != nil {
		return 0, fmt.Errorf("end browser sessions: %w", err)
	}
	return tag.RowsAffected(), nil
}

func (s *Store) own(owner string, here *sessions.Session) pgx.NamedArgs {
	return pgx.NamedArgs{"owner": owner, "kind": s.kind, "id": idHash(here.ID), "now": s.now()}
}
