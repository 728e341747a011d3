-- Test logins that a program or a shell began: what came of one is asked for later,
-- by somebody else than the browser that went through it.
-- +goose Up
SET lock_timeout = '5s';

-- Owned by package tenants. Of whoever logged in nothing is kept: not who they are,
-- nor what the provider said of them, only whether it worked and what was told.
CREATE TABLE login_tries (
	brand_id      text NOT NULL REFERENCES brands,
	id            uuid NOT NULL,
	connection_id uuid NOT NULL,
	shown         text NOT NULL,        -- the connection as it was
	state_hash    bytea NOT NULL,       -- of the secret that the browser comes back with
	try_sealed    bytea,                -- null: it has counted
	began_at      timestamptz NOT NULL,
	ends_at       timestamptz NOT NULL,
	done_at       timestamptz,
	trouble       text NOT NULL DEFAULT '',
	why           text NOT NULL DEFAULT '',
	claims        text[] NOT NULL DEFAULT '{}', -- their names
	subject       boolean NOT NULL DEFAULT false,
	PRIMARY KEY (brand_id, id)
);
CREATE UNIQUE INDEX login_tries_by_state ON login_tries (brand_id, state_hash);
ALTER TABLE login_tries ENABLE ROW LEVEL SECURITY;
ALTER TABLE login_tries FORCE ROW LEVEL SECURITY;
CREATE POLICY brand_fence ON login_tries
	USING (brand_id = current_setting('countersign.brand', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON login_tries TO countersign_app;
