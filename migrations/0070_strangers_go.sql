-- +goose NO TRANSACTION
-- Owned by package authority/agent: agents that nobody registered are forgotten when
-- they stay away, so that strangers cannot use up the room there is for them.
-- +goose Up
SET lock_timeout = '2s';

ALTER TABLE agents
	ADD COLUMN IF NOT EXISTS came_at timestamptz NOT NULL DEFAULT now(), -- when it last proved who it is, to the hour; kept of discovered ones
	ADD COLUMN IF NOT EXISTS site    text NOT NULL DEFAULT '';           -- of a discovered one: whose domain its issuer is of

-- Whom the operator registered, or has disabled, is never forgotten, whatever the
-- program says.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION agents_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NOT OLD.discovered OR NOT OLD.enabled THEN
		RAISE EXCEPTION 'agent % stays', OLD.issuer USING ERRCODE = 'restrict_violation';
	END IF;
	RETURN OLD;
END $$;
-- +goose StatementEnd
CREATE OR REPLACE TRIGGER agents_stay BEFORE DELETE ON agents FOR EACH ROW EXECUTE FUNCTION agents_stay();
GRANT DELETE ON agents TO countersign_app;

SET lock_timeout = 0; -- it waits for everybody who writes now, and keeps nobody waiting
DROP INDEX CONCURRENTLY IF EXISTS agents_by_site;
CREATE INDEX CONCURRENTLY agents_by_site ON agents (site) WHERE discovered;
DROP INDEX CONCURRENTLY IF EXISTS agents_by_absence;
CREATE INDEX CONCURRENTLY agents_by_absence ON agents (came_at) WHERE discovered;
