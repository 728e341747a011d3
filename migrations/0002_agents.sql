-- Owned by package authority/agent: the personal agents we know.
-- +goose Up
SET lock_timeout = '5s';

-- Not fenced by Brand: an agent is the same agent everywhere.
CREATE TABLE agents (
	-- The agent's issuer URL, which is also its client_id; compared byte for byte.
	issuer     text PRIMARY KEY CHECK (length(issuer) BETWEEN 8 AND 512),
	jwks_uri   text NOT NULL CHECK (length(jwks_uri) BETWEEN 8 AND 2048),
	-- The agent's own words for itself; decides nothing.
	name       text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
	enabled    boolean NOT NULL,
	created_at timestamptz NOT NULL,
	updated_at timestamptz NOT NULL
);

-- What the rules ask inside their own statement, so that an agent disabled a
-- moment ago is refused by every instance at once, whatever it has cached.
CREATE VIEW agent_states AS SELECT issuer, name, enabled FROM agents;

GRANT SELECT, INSERT, UPDATE ON agents TO countersign_app;
GRANT SELECT ON agent_states TO countersign_app;
