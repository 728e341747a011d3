-- login_connections is owned by package tenants, the rest by package consent:
-- people who sign in on the Brand's own page, which then says who they are.
-- +goose Up
SET lock_timeout = '5s';

ALTER TABLE login_connections
	ADD COLUMN kind         text NOT NULL DEFAULT 'oidc' CHECK (kind IN ('oidc', 'assertion')),
	ADD COLUMN jwks_uri     text NOT NULL DEFAULT '',
	ADD COLUMN login_url    text NOT NULL DEFAULT '',
	-- From nowhere else is an assertion taken.
	ADD COLUMN login_origin text NOT NULL DEFAULT '',
	DROP CONSTRAINT login_connections_auth_check,
	-- Nobody asks the Brand's page for anything, so there is nothing to
	-- authenticate with.
	ADD CONSTRAINT login_connections_kind CHECK (CASE kind
		WHEN 'oidc' THEN auth IN ('secret', 'private_key_jwt') AND jwks_uri = '' AND login_url = '' AND login_origin = ''
		ELSE auth = '' AND client_secret_sealed = '' AND jwks_uri <> '' AND login_url <> '' AND login_origin <> '' END);

-- The assertions that were taken, until they would be refused for their age. An
-- assertion counts once; only its hash is kept, and only after its signature has
-- verified (B79).
CREATE TABLE login_assertions (
	brand_id   text NOT NULL REFERENCES brands,
	id_hash    bytea NOT NULL, -- of issuer and jti
	expires_at timestamptz NOT NULL,
	PRIMARY KEY (brand_id, id_hash)
);
CREATE INDEX login_assertions_by_age ON login_assertions (brand_id, expires_at);
ALTER TABLE login_assertions ENABLE ROW LEVEL SECURITY;
ALTER TABLE login_assertions FORCE ROW LEVEL SECURITY;
CREATE POLICY brand_fence ON login_assertions
	USING (brand_id = current_setting('countersign.brand', true));
GRANT SELECT, INSERT, DELETE ON login_assertions TO countersign_app;

-- A post from another site comes without our cookie, so the form that answers it
-- carries its own proof: one secret, for one answer, of which this is the hash.
ALTER TABLE journeys
	ADD COLUMN session_hash  bytea,
	ADD COLUMN session_until timestamptz,
	ADD COLUMN session_used  boolean NOT NULL DEFAULT false,
	ADD COLUMN shown         text NOT NULL DEFAULT '', -- what that form's page said
	ADD CONSTRAINT journeys_session CHECK ((session_hash IS NULL) = (session_until IS NULL));
CREATE UNIQUE INDEX journeys_by_session ON journeys (brand_id, session_hash) WHERE session_hash IS NOT NULL;
