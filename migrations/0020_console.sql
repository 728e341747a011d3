-- Owned by package tenants: the people who run a Brand, how they prove who they
-- are, and what they may do. browser_sessions is package web's.
-- +goose Up
SET lock_timeout = '5s';

-- A person may belong to several Brands, so none of these four tables belongs
-- to a Brand. There are no passwords.
CREATE TABLE people (
	id            uuid PRIMARY KEY,
	email         text NOT NULL UNIQUE CHECK (email = lower(email) AND email <> ''),
	email_typed   text NOT NULL, -- as its owner writes it
	name          text NOT NULL,
	language      text NOT NULL, -- for mail that nobody's browser asked for
	-- The recovery codes were shown, and the person said that they are kept.
	codes_kept_at timestamptz,
	-- All passkeys were lost, and a Brand vouched for this person. That binds only
	-- that Brand: memberships that were not confirmed since then rest.
	restored_at   timestamptz,
	created_at    timestamptz NOT NULL
);

CREATE TABLE passkeys (
	id         bytea PRIMARY KEY, -- the credential's id, chosen by the authenticator
	person_id  uuid NOT NULL REFERENCES people,
	data       json NOT NULL,     -- the public key and all that checking needs
	-- Rises with every use, where the authenticator counts. One that falls back
	-- is a copy's.
	sign_count bigint NOT NULL,
	created_at timestamptz NOT NULL,
	used_at    timestamptz
);
CREATE INDEX passkeys_by_person ON passkeys (person_id);

CREATE TABLE recovery_codes (
	person_id uuid NOT NULL REFERENCES people,
	hash      bytea NOT NULL,
	used_at   timestamptz,
	PRIMARY KEY (person_id, hash)
);

-- What is mailed is a secret of 256 bits; here is only its hash.
CREATE TABLE one_time_links (
	hash       bytea PRIMARY KEY,
	purpose    text NOT NULL CHECK (purpose IN ('signup', 'invitation', 'recovery', 'restore', 'demo')),
	email      text NOT NULL CHECK (email = lower(email)),
	data       jsonb NOT NULL,
	created_at timestamptz NOT NULL,
	expires_at timestamptz NOT NULL,
	used_at    timestamptz
);
CREATE INDEX one_time_links_by_age ON one_time_links (expires_at);

CREATE TABLE memberships (
	brand_id     text NOT NULL REFERENCES brands,
	person_id    uuid NOT NULL REFERENCES people,
	role         text NOT NULL CHECK (role IN ('owner', 'security', 'support', 'viewer')),
	since        timestamptz NOT NULL,
	confirmed_at timestamptz NOT NULL, -- that it is this person: see people.restored_at
	PRIMARY KEY (brand_id, person_id)
);
CREATE INDEX memberships_by_person ON memberships (person_id);

CREATE TABLE invitations (
	brand_id     text NOT NULL REFERENCES brands,
	id           uuid NOT NULL,
	email        text NOT NULL CHECK (email = lower(email)),
	role         text NOT NULL CHECK (role IN ('owner', 'security', 'support', 'viewer')),
	invited_by   uuid NOT NULL REFERENCES people,
	created_at   timestamptz NOT NULL,
	expires_at   timestamptz NOT NULL,
	accepted_at  timestamptz,
	withdrawn_at timestamptz,
	PRIMARY KEY (brand_id, id)
);
CREATE UNIQUE INDEX invitations_one_open ON invitations (brand_id, email) WHERE accepted_at IS NULL AND withdrawn_at IS NULL;

-- An owner without passkeys and without codes, and nobody to vouch: everybody
-- is told, and has 72 hours to say no.
CREATE TABLE recoveries (
	brand_id     text NOT NULL REFERENCES brands,
	id           uuid NOT NULL,
	person_id    uuid NOT NULL REFERENCES people,
	asked_at     timestamptz NOT NULL,
	due_at       timestamptz NOT NULL,
	cancelled_at timestamptz,
	cancelled_by uuid REFERENCES people,
	done_at      timestamptz,
	PRIMARY KEY (brand_id, id),
	CHECK (cancelled_at IS NULL OR done_at IS NULL),
	CHECK (due_at >= asked_at + interval '72 hours')
);
CREATE UNIQUE INDEX recoveries_one_open ON recoveries (brand_id, person_id) WHERE cancelled_at IS NULL AND done_at IS NULL;

-- Mail that protects somebody is written in the transaction that makes it due
-- and sent later, so that no crash can swallow it. It never holds a secret.
CREATE TABLE notices (
	brand_id   text NOT NULL REFERENCES brands,
	id         uuid NOT NULL,
	person_id  uuid NOT NULL REFERENCES people,
	kind       text NOT NULL,
	detail     jsonb NOT NULL,
	created_at timestamptz NOT NULL,
	claimed_at timestamptz, -- somebody is sending it
	sent_at    timestamptz,
	PRIMARY KEY (brand_id, id)
);
CREATE INDEX notices_waiting ON notices (brand_id, created_at) WHERE sent_at IS NULL;

-- Who stands behind the Brand, as told at sign-up.
ALTER TABLE brands ADD COLUMN organisation text NOT NULL DEFAULT '';

-- A Brand is pending until its signing key was made and tried: to agents it does
-- not exist.
ALTER TABLE brands DROP CONSTRAINT brands_state_check;
ALTER TABLE brands ADD CONSTRAINT brands_state_check CHECK (state IN ('pending', 'active', 'paused', 'closed'));

-- The dashboard's sessions stand apart from the people's pages': a cookie of the
-- one opens nothing of the other.
ALTER TABLE browser_sessions
	ADD COLUMN kind       text NOT NULL DEFAULT 'page' CHECK (kind IN ('page', 'console')),
	ADD COLUMN idle_until timestamptz;
CREATE INDEX browser_sessions_idle ON browser_sessions (idle_until) WHERE idle_until IS NOT NULL;

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
	FOREACH t IN ARRAY ARRAY['memberships', 'invitations', 'recoveries', 'notices'] LOOP
		EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
		EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
		EXECUTE format('CREATE POLICY brand_fence ON %I USING (brand_id = current_setting(''countersign.brand'', true))', t);
	END LOOP;
END
$$;
-- +goose StatementEnd

-- One person's Brands, across the fence. The views run with their owner's rights,
-- whom the first policies let read; the service itself sees only the rows of the
-- person it named.
CREATE POLICY own_rows ON memberships FOR SELECT TO CURRENT_USER USING (true);
CREATE POLICY own_rows ON recoveries FOR SELECT TO CURRENT_USER USING (true);
CREATE VIEW person_brands AS
	SELECT m.person_id, m.brand_id, m.role, b.name, b.state,
	       coalesce(p.restored_at > m.confirmed_at, false) AS held
	  FROM memberships m
	  JOIN people p ON p.id = m.person_id
	  JOIN brands b ON b.id = m.brand_id
	 WHERE m.person_id::text = current_setting('countersign.person', true);
CREATE VIEW person_recoveries AS
	SELECT r.person_id, r.brand_id, r.id, r.due_at
	  FROM recoveries r
	 WHERE r.person_id::text = current_setting('countersign.person', true)
	   AND r.cancelled_at IS NULL AND r.done_at IS NULL;

GRANT SELECT, INSERT, UPDATE ON people TO countersign_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON passkeys, recovery_codes, one_time_links, memberships, notices TO countersign_app;
GRANT SELECT, INSERT, UPDATE ON invitations, recoveries TO countersign_app;
GRANT SELECT ON person_brands, person_recoveries TO countersign_app;
