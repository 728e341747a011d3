-- Owned by package authority: the trail's trigger works for the tables' owner,
-- so what it touches must be named by nobody else. Unless a search path says
-- otherwise, a session's temporary tables come first: whoever holds the
-- service's login could put heads of his own in front of the real ones, and
-- chain to them what he likes. And nobody but the trail's own table needs to
-- call it: on another table it would move a head without an event.
-- +goose Up
SET lock_timeout = '5s';

-- +goose StatementBegin
DO $$
BEGIN
	EXECUTE format('ALTER FUNCTION audit_chain() SET search_path = pg_catalog, %I, pg_temp', current_schema());
END
$$;
-- +goose StatementEnd

REVOKE EXECUTE ON FUNCTION audit_chain() FROM PUBLIC;

-- An agent whose person was suspended could not come, and has not stayed away.
ALTER TABLE grants ADD COLUMN kept_out_until timestamptz;
