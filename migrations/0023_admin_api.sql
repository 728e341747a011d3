-- Owned by package tenants, but for agent_applications, which is
-- authority/agent's: what admins ask for from outside.
-- +goose Up
SET lock_timeout = '5s';

-- A stolen API key, or a file slipped into a repository, must not be able to move
-- where people log in or tokens are good: such changes wait for an owner.
CREATE TABLE pending_changes (
	brand_id       text NOT NULL REFERENCES brands,
	id             uuid NOT NULL,
	kind           text NOT NULL,
	asked_by       text NOT NULL, -- the API key's id, or the operator
	channel        text NOT NULL,
	asked_at       timestamptz NOT NULL,
	expires_at     timestamptz NOT NULL,
	diff           json NOT NULL, -- for the owner to read; holds no secret
	-- What will be done. Sealed, so that whoever can write to the database alone
	-- cannot put something else under a diff that an owner approves.
	payload_sealed bytea,
	state          text NOT NULL CHECK (state IN ('pending', 'applied', 'rejected')),
	lease_id       uuid,
	lease_until    timestamptz,
	decided_at     timestamptz,
	decided_by     text NOT NULL DEFAULT '',
	PRIMARY KEY (brand_id, id),
	CHECK ((state = 'pending') = (payload_sealed IS NOT NULL)),
	CHECK ((state = 'pending') = (decided_at IS NULL))
);

-- Answers to calls that bore an Idempotency-Key, so that whoever lost one can
-- ask again. They hold no secrets: those are only ever shown to an owner.
CREATE TABLE api_replies (
	brand_id     text NOT NULL REFERENCES brands,
	api_key      text NOT NULL,
	key_hash     bytea NOT NULL,
	request_hash bytea NOT NULL,
	status       integer, -- null: under way
	content_type text NOT NULL DEFAULT '',
	body         bytea NOT NULL DEFAULT '',
	created_at   timestamptz NOT NULL,
	PRIMARY KEY (brand_id, api_key, key_hash)
);
CREATE INDEX api_replies_by_age ON api_replies (brand_id, created_at);

-- Agents that ask to be registered. They have proved that they hold the key that
-- they publish; whether to let them in is the operator's word.
CREATE TABLE agent_applications (
	issuer     text PRIMARY KEY CHECK (length(issuer) BETWEEN 8 AND 512),
	jwks_uri   text NOT NULL CHECK (length(jwks_uri) BETWEEN 8 AND 2048),
	name       text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
	contact    text NOT NULL CHECK (length(contact) BETWEEN 3 AND 320),
	asked_at   timestamptz NOT NULL,
	state      text NOT NULL CHECK (state IN ('pending', 'approved', 'rejected')),
	decided_at timestamptz,
	CHECK ((state = 'pending') = (decided_at IS NULL))
);

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
	FOREACH t IN ARRAY ARRAY['pending_changes', 'api_replies'] LOOP
		EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
		EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
		EXECUTE format('CREATE POLICY brand_fence ON %I USING (brand_id = current_setting(''countersign.brand'', true))', t);
	END LOOP;
END
$$;
-- +goose StatementEnd

GRANT SELECT, INSERT, UPDATE ON pending_changes, agent_applications TO countersign_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON api_replies TO countersign_app;
