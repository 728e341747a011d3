-- browser_sessions is owned by package web, journeys by package consent.
-- +goose Up
SET lock_timeout = '5s';

-- The cookie holds a random id, this table only its hash: a copy of the
-- database opens nobody's session.
CREATE TABLE browser_sessions (
	id_hash    bytea PRIMARY KEY,
	data       bytea NOT NULL,
	created_at timestamptz NOT NULL,
	expires_at timestamptz NOT NULL
);
CREATE INDEX browser_sessions_by_age ON browser_sessions (expires_at);

-- One person's way through one request, in one browser: several may run in
-- several tabs at once, and none can touch another's.
CREATE TABLE journeys (
	brand_id      text NOT NULL REFERENCES brands,
	id            text NOT NULL,           -- opaque handle, stands in our URLs
	browser       bytea NOT NULL,          -- hash of the browser's own secret
	-- What this login leads to: a request to decide, or (null) the agents page.
	request_id    uuid,
	-- The login under way. The nonce and the PKCE verifier are derived from the
	-- state under a key outside the database, so nothing here can finish it.
	state_hash    bytea,
	state_used    boolean NOT NULL DEFAULT false, -- a callback counts once
	fresh         boolean NOT NULL DEFAULT false,
	login_began   timestamptz,
	logins        integer NOT NULL DEFAULT 0,
	trouble       text,                    -- how the last login failed
	-- Set by a verified login in this journey.
	subject       text,
	account       text,
	logged_in_at  timestamptz,
	-- What this person ticked when a lapsed login or a changed page interrupted.
	ticked        text[],
	days          integer,
	ui_locales    text NOT NULL DEFAULT '',
	-- How it ended here, for the closing page; the decision itself is authority's.
	outcome       text CHECK (outcome IN ('allowed', 'denied', 'emptied')),
	allowed       text[],                  -- scopes allowed, as they then were
	allowed_until timestamptz,
	ended         text[],                  -- scopes held before and unticked now
	created_at    timestamptz NOT NULL,
	expires_at    timestamptz NOT NULL,
	PRIMARY KEY (brand_id, id)
);
CREATE UNIQUE INDEX journeys_by_state ON journeys (brand_id, state_hash) WHERE state_hash IS NOT NULL;
CREATE INDEX journeys_by_age ON journeys (expires_at);

ALTER TABLE journeys ENABLE ROW LEVEL SECURITY;
ALTER TABLE journeys FORCE ROW LEVEL SECURITY;
CREATE POLICY brand_fence ON journeys
	USING (brand_id = current_setting('countersign.brand', true));

GRANT SELECT, INSERT, UPDATE, DELETE ON browser_sessions, journeys TO countersign_app;
