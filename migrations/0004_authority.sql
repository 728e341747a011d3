-- Owned by package authority: requests, grants, refresh tokens, what happened.
-- +goose Up
SET lock_timeout = '5s';

-- One living grant per (Brand, agent, agent's user, Brand user).
CREATE TABLE grants (
	brand_id     text NOT NULL REFERENCES brands,
	id           uuid NOT NULL,
	agent        text NOT NULL,             -- the agent's issuer
	agent_sub    text NOT NULL,             -- its name for the person
	subject      text NOT NULL,             -- the Brand's name for the person
	scopes       text[] NOT NULL CHECK (cardinality(scopes) > 0),
	-- Counts every change, so that a token signed from an older reading of the
	-- grant loses the compare-and-set at redemption.
	version      integer NOT NULL DEFAULT 1,
	created_at   timestamptz NOT NULL,
	expires_at   timestamptz NOT NULL,
	last_used_at timestamptz,
	ended_at     timestamptz,
	end_reason   text,
	PRIMARY KEY (brand_id, id),
	CHECK ((ended_at IS NULL) = (end_reason IS NULL))
);
CREATE UNIQUE INDEX grants_one_living ON grants (brand_id, agent, agent_sub, subject) WHERE ended_at IS NULL;
CREATE INDEX grants_by_subject ON grants (brand_id, subject);

CREATE TABLE device_requests (
	brand_id         text NOT NULL REFERENCES brands,
	id               uuid NOT NULL,
	agent            text NOT NULL,
	agent_sub        text NOT NULL,
	scopes           text[] NOT NULL CHECK (cardinality(scopes) > 0),
	device_code_hash bytea NOT NULL,
	-- 34 bits fall to brute force, so a plain hash would be as good as the code
	-- itself: a MAC under a key that is not in this database.
	user_code_mac    bytea NOT NULL,
	-- The page must show the code for comparison; erased once decided.
	user_code_sealed bytea,
	state            text NOT NULL CHECK (state IN ('pending', 'approved', 'denied', 'redeemed')),
	grant_id         uuid,
	created_at       timestamptz NOT NULL,
	expires_at       timestamptz NOT NULL,
	polled_at        timestamptz,
	decided_at       timestamptz,
	lease_id         uuid,
	lease_until      timestamptz,
	redeemed_at      timestamptz,
	PRIMARY KEY (brand_id, id),
	FOREIGN KEY (brand_id, grant_id) REFERENCES grants (brand_id, id),
	CHECK ((state IN ('approved', 'redeemed')) = (grant_id IS NOT NULL)),
	CHECK ((state = 'pending') = (decided_at IS NULL)),
	CHECK (state = 'pending' OR user_code_sealed IS NULL)
) WITH (fillfactor = 80); -- polls update in place
CREATE UNIQUE INDEX device_requests_code ON device_requests (brand_id, device_code_hash);
-- Unique among the codes a person could still type; a dead code may come again.
CREATE UNIQUE INDEX device_requests_user_code ON device_requests (brand_id, user_code_mac) WHERE state = 'pending';
CREATE INDEX device_requests_waiting ON device_requests (brand_id, agent, created_at) WHERE state = 'pending';
CREATE INDEX device_requests_by_agent ON device_requests (brand_id, agent, agent_sub, created_at);
CREATE INDEX device_requests_by_age ON device_requests (expires_at);

CREATE TABLE refresh_tokens (
	brand_id    text NOT NULL REFERENCES brands,
	hash        bytea NOT NULL,
	grant_id    uuid NOT NULL,
	-- One family per redemption; every token in it descends from the first.
	family_id   uuid NOT NULL,
	generation  integer NOT NULL,
	-- The version of the out-of-database key that derives this token's successor.
	key_version integer NOT NULL,
	created_at  timestamptz NOT NULL,
	used_at     timestamptz,
	PRIMARY KEY (brand_id, hash),
	FOREIGN KEY (brand_id, grant_id) REFERENCES grants (brand_id, id)
);
CREATE UNIQUE INDEX refresh_tokens_line ON refresh_tokens (brand_id, family_id, generation);
CREATE INDEX refresh_tokens_by_grant ON refresh_tokens (brand_id, grant_id);

-- Brand users whom the Brand has suspended. Absent: not suspended.
CREATE TABLE suspended_users (
	brand_id     text NOT NULL REFERENCES brands,
	subject      text NOT NULL,
	suspended_at timestamptz NOT NULL,
	PRIMARY KEY (brand_id, subject)
);

-- Wrong user codes, counted per browser session, Brand user, address and Brand.
-- Keys are hashes: no address is kept.
CREATE TABLE code_attempts (
	brand_id   text NOT NULL REFERENCES brands,
	kind       text NOT NULL CHECK (kind IN ('session', 'user', 'address', 'brand')),
	key        bytea NOT NULL,
	started_at timestamptz NOT NULL,
	wrong      integer NOT NULL,
	PRIMARY KEY (brand_id, kind, key)
);

-- Facts, written in the transaction that makes them true.
CREATE TABLE audit_events (
	brand_id   text NOT NULL REFERENCES brands,
	id         bigint GENERATED ALWAYS AS IDENTITY,
	at         timestamptz NOT NULL,
	actor      text NOT NULL CHECK (actor IN ('user', 'agent', 'admin', 'operator', 'system')),
	event      text NOT NULL,
	request_id uuid,
	grant_id   uuid,
	detail     jsonb NOT NULL DEFAULT '{}',
	PRIMARY KEY (brand_id, id)
);
CREATE INDEX audit_events_by_grant ON audit_events (brand_id, grant_id);

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
	FOREACH t IN ARRAY ARRAY['grants', 'device_requests', 'refresh_tokens', 'suspended_users', 'code_attempts', 'audit_events'] LOOP
		EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
		EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
		EXECUTE format('CREATE POLICY brand_fence ON %I USING (brand_id = current_setting(''countersign.brand'', true))', t);
	END LOOP;
END
$$;
-- +goose StatementEnd

GRANT SELECT, INSERT, UPDATE ON grants, device_requests, refresh_tokens TO countersign_app;
GRANT DELETE ON device_requests, refresh_tokens TO countersign_app; -- what is over is purged
GRANT SELECT, INSERT, DELETE ON suspended_users TO countersign_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON code_attempts TO countersign_app;
GRANT SELECT, INSERT ON audit_events TO countersign_app; -- append only
