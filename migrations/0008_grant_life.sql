-- Owned by package authority: a grant's whole life, and a trail that shows
-- every change of itself.
-- +goose Up
SET lock_timeout = '5s';

-- Who did it, and through which door. Ids only. request_id names the device
-- request, trace the HTTP request.
ALTER TABLE audit_events
	ADD COLUMN seq      bigint,
	ADD COLUMN actor_id text NOT NULL DEFAULT '',
	ADD COLUMN channel  text NOT NULL DEFAULT '',
	ADD COLUMN trace    text NOT NULL DEFAULT '',
	-- digest covers who (actor_id) and what (detail) under a salt. The chain
	-- covers the digest, so that one person's data can be erased on request and
	-- the chain still be verified.
	ADD COLUMN salt     bytea,
	ADD COLUMN digest   bytea,
	ADD COLUMN hash     bytea,
	-- json, not jsonb: the hash covers the very text that was written.
	ALTER COLUMN detail DROP DEFAULT,
	ALTER COLUMN detail TYPE json USING detail::text::json,
	ALTER COLUMN detail SET DEFAULT '{}';

-- The newest link of each Brand's chain. Only the trigger writes it.
CREATE TABLE audit_heads (
	brand_id text PRIMARY KEY REFERENCES brands,
	seq      bigint NOT NULL,
	hash     bytea NOT NULL
) WITH (fillfactor = 50); -- every fact updates it in place

-- A field is its length and its bytes, so that no two rows read alike.
CREATE FUNCTION audit_field(t text) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
	SELECT coalesce(int4send(octet_length(convert_to(t, 'UTF8'))) || convert_to(t, 'UTF8'), '\xffffffff'::bytea)
$$;

CREATE FUNCTION audit_digest(e audit_events) RETURNS bytea LANGUAGE sql STABLE AS $$
	SELECT sha256(e.salt || audit_field(e.actor_id) || audit_field(e.detail::text))
$$;

CREATE FUNCTION audit_hash(e audit_events, previous bytea) RETURNS bytea LANGUAGE sql STABLE AS $$
	SELECT sha256(previous || int8send(e.seq) || audit_field(e.brand_id)
	       || audit_field(to_char(e.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))
	       || audit_field(e.actor) || audit_field(e.channel) || audit_field(e.event)
	       || audit_field(e.request_id::text) || audit_field(e.grant_id::text) || audit_field(e.trace) || e.digest)
$$;

-- Chaining is the table's own business, so that no statement can write a fact
-- past the chain. Facts of one Brand come one after the other: the head stays
-- locked until the transaction ends, which is why facts are written last in it.
-- With the definer's rights, because the service itself must not touch a head.
-- +goose StatementBegin
CREATE FUNCTION audit_chain() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
	previous audit_heads;
BEGIN
	LOOP
		SELECT * INTO previous FROM audit_heads WHERE brand_id = NEW.brand_id FOR UPDATE;
		EXIT WHEN FOUND;
		INSERT INTO audit_heads VALUES (NEW.brand_id, 0, '') ON CONFLICT DO NOTHING;
	END LOOP;
	NEW.seq := previous.seq + 1;
	NEW.salt := uuid_send(gen_random_uuid());
	NEW.digest := audit_digest(NEW);
	NEW.hash := audit_hash(NEW, previous.hash);
	UPDATE audit_heads SET seq = NEW.seq, hash = NEW.hash WHERE brand_id = NEW.brand_id;
	IF NEW.event LIKE 'grant.%' THEN
		PERFORM pg_notify('countersign_grants', NEW.brand_id);
	END IF;
	RETURN NEW;
END
$$;
-- +goose StatementEnd

-- What was written before there was a chain becomes its beginning.
-- +goose StatementBegin
DO $$
DECLARE
	e audit_events;
	previous audit_heads;
BEGIN
	ALTER TABLE audit_events NO FORCE ROW LEVEL SECURITY;
	FOR e IN SELECT * FROM audit_events ORDER BY brand_id, id LOOP
		SELECT * INTO previous FROM audit_heads WHERE brand_id = e.brand_id;
		IF NOT FOUND THEN
			INSERT INTO audit_heads VALUES (e.brand_id, 0, '') RETURNING * INTO previous;
		END IF;
		e.seq := previous.seq + 1;
		e.salt := uuid_send(gen_random_uuid());
		e.digest := audit_digest(e);
		e.hash := audit_hash(e, previous.hash);
		UPDATE audit_events SET seq = e.seq, salt = e.salt, digest = e.digest, hash = e.hash
		 WHERE brand_id = e.brand_id AND id = e.id;
		UPDATE audit_heads SET seq = e.seq, hash = e.hash WHERE brand_id = e.brand_id;
	END LOOP;
	ALTER TABLE audit_events FORCE ROW LEVEL SECURITY;
END
$$;
-- +goose StatementEnd

ALTER TABLE audit_events
	DROP CONSTRAINT audit_events_pkey,
	DROP COLUMN id,
	ALTER COLUMN seq SET NOT NULL,
	ALTER COLUMN digest SET NOT NULL,
	ALTER COLUMN hash SET NOT NULL,
	ADD PRIMARY KEY (brand_id, seq);
CREATE TRIGGER audit_chain BEFORE INSERT ON audit_events FOR EACH ROW EXECUTE FUNCTION audit_chain();

-- Token Status List (IETF draft): one random index per version of a grant.
CREATE TABLE status_lists (
	brand_id text NOT NULL REFERENCES brands,
	list     integer NOT NULL,
	used     integer NOT NULL, -- indexes taken; a list is filled by half, so that a random one is soon found
	-- Counts every change of an answer in it.
	version  bigint NOT NULL,
	PRIMARY KEY (brand_id, list)
) WITH (fillfactor = 50);

CREATE TABLE status_entries (
	brand_id   text NOT NULL REFERENCES brands,
	list       integer NOT NULL,
	idx        integer NOT NULL,
	grant_id   uuid NOT NULL,
	invalid_at timestamptz, -- null: as good as its grant
	PRIMARY KEY (brand_id, list, idx),
	FOREIGN KEY (brand_id, list) REFERENCES status_lists (brand_id, list)
);
CREATE INDEX status_entries_by_grant ON status_entries (brand_id, grant_id);
CREATE INDEX status_entries_over ON status_entries (brand_id, invalid_at) WHERE invalid_at IS NOT NULL;

ALTER TABLE grants
	ADD COLUMN status_list integer,
	ADD COLUMN status_idx  integer,
	-- Per scope, the language and a digest of the words under which it was
	-- last ticked: words that changed since were never agreed to (B36).
	ADD COLUMN seen        jsonb NOT NULL DEFAULT '{}';
CREATE INDEX grants_by_agent ON grants (brand_id, agent, created_at);
CREATE INDEX grants_running_out ON grants (brand_id, expires_at) WHERE ended_at IS NULL;

-- What the person saw and answered, to be shown to an auditor. Its hash also
-- stands in the audit trail.
CREATE TABLE consents (
	brand_id   text NOT NULL REFERENCES brands,
	id         uuid NOT NULL,
	request_id uuid, -- null: changed on My agents
	grant_id   uuid,
	subject    text NOT NULL,
	at         timestamptz NOT NULL,
	answer     text NOT NULL CHECK (answer IN ('allowed', 'denied', 'emptied', 'continued')),
	record     json NOT NULL,
	hash       bytea NOT NULL,
	PRIMARY KEY (brand_id, id)
);
CREATE INDEX consents_by_grant ON consents (brand_id, grant_id, at);

-- A Brand's server may ask for more in the middle of a conversation (step-up).
-- Such a request has no device code: nobody polls for it, and approving it
-- widens the grant that the agent already holds.
ALTER TABLE device_requests
	ADD COLUMN kind             text NOT NULL DEFAULT 'device' CHECK (kind IN ('device', 'stepup')),
	ADD COLUMN expected_subject text,                     -- null: whoever logs in selects the grant
	ADD COLUMN reason           text NOT NULL DEFAULT '', -- the Brand's words
	ALTER COLUMN device_code_hash DROP NOT NULL,
	ADD CONSTRAINT device_requests_code_or_stepup CHECK ((kind = 'device') = (device_code_hash IS NOT NULL));
CREATE INDEX device_requests_stepups ON device_requests (brand_id, agent, agent_sub) WHERE kind = 'stepup' AND state = 'pending';

-- Owned by tenants: an agent that asks only for what it has may be let through
-- with one Continue, where the Brand wants that.
ALTER TABLE brands ADD COLUMN skip_consent boolean NOT NULL DEFAULT false;

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
	FOREACH t IN ARRAY ARRAY['audit_heads', 'status_lists', 'status_entries', 'consents'] LOOP
		EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
		EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
		EXECUTE format('CREATE POLICY brand_fence ON %I USING (brand_id = current_setting(''countersign.brand'', true))', t);
	END LOOP;
END
$$;
-- +goose StatementEnd

GRANT SELECT ON audit_heads TO countersign_app;
GRANT SELECT, INSERT, UPDATE ON status_lists TO countersign_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON status_entries TO countersign_app;
GRANT SELECT, INSERT ON consents TO countersign_app;
