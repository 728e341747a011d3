-- Owned by package tenants: who the Brands are and what they offer.
-- +goose Up
SET lock_timeout = '5s';

-- The service logs in as a member of this role. It owns nothing and cannot
-- bypass row-level security, so a query that forgets its Brand sees no rows.
-- +goose StatementBegin
DO $$
BEGIN
	CREATE ROLE countersign_app NOLOGIN NOBYPASSRLS;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
	NULL; -- roles belong to the whole cluster; another database made it
END
$$;
-- +goose StatementEnd

CREATE TABLE providers (
	id         text PRIMARY KEY CHECK (id ~ '^[a-z0-9][a-z0-9-]{0,39}$'),
	name       text NOT NULL CHECK (name <> ''),
	-- What pa-jwts name in aud. Two Providers never share one: a pa-jwt can be
	-- sent again anywhere within its audience.
	audience   text NOT NULL UNIQUE CHECK (audience <> ''),
	created_at timestamptz NOT NULL
);

CREATE TABLE brands (
	-- Stands in every URL and in every issuer; never changed, never reused, so
	-- that a token of a closed Brand can never come alive for another.
	id                 text PRIMARY KEY CHECK (id ~ '^[a-z0-9][a-z0-9-]{0,39}$'),
	provider_id        text NOT NULL REFERENCES providers,
	name               text NOT NULL CHECK (name <> ''),
	mode               text NOT NULL CHECK (mode IN ('hosted', 'fronted', 'split')),
	state              text NOT NULL CHECK (state IN ('active', 'paused', 'closed')),
	delegation         boolean NOT NULL,
	interface_url      text NOT NULL UNIQUE CHECK (interface_url ~ '^https?://[^?#]+[^/?#]$'),
	issuer             text NOT NULL UNIQUE CHECK (issuer ~ '^https?://[^?#]+[^/?#]$'),
	description        text NOT NULL DEFAULT '',
	identity_scheme    text NOT NULL DEFAULT 'paJwt' CHECK (identity_scheme IN ('paJwt', 'platformJwt')),
	colour             text NOT NULL DEFAULT '#1f3a5f' CHECK (colour ~ '^#[0-9a-f]{6}$'),
	support_url        text NOT NULL DEFAULT '',
	privacy_url        text NOT NULL DEFAULT '',
	-- Bounded here as well as in Go: a setting of 0 or 10^12 has made other
	-- servers' clients spin or their tokens immortal.
	token_seconds      integer NOT NULL DEFAULT 900 CHECK (token_seconds BETWEEN 60 AND 3600),
	grace_seconds      integer NOT NULL DEFAULT 30 CHECK (grace_seconds BETWEEN 0 AND 120),
	grant_days         integer[] NOT NULL DEFAULT '{7,30,90}' CHECK (
	                   cardinality(grant_days) BETWEEN 1 AND 6 AND 1 <= ALL (grant_days) AND 366 >= ALL (grant_days)),
	grant_days_default integer NOT NULL DEFAULT 30 CHECK (grant_days_default BETWEEN 1 AND 366),
	signing_alg        text NOT NULL DEFAULT 'ES256' CHECK (signing_alg IN ('ES256', 'RS256')),
	created_at         timestamptz NOT NULL,
	CHECK (grant_days_default = ANY (grant_days))
);

CREATE TABLE brand_scopes (
	brand_id    text NOT NULL REFERENCES brands,
	-- RFC 6749 scope-token characters.
	id          text NOT NULL CHECK (id ~ '^[\x21\x23-\x5b\x5d-\x7e]{1,100}$'),
	position    integer NOT NULL,
	description text NOT NULL CHECK (description <> ''),
	effect      text NOT NULL CHECK (effect IN ('sees', 'changes', 'pays')),
	impact      text NOT NULL CHECK (impact IN ('low', 'medium', 'high')),
	undo        text NOT NULL DEFAULT '',
	-- Brand-written translations, {"zh-Hant": {"description": …, "undo": …}}.
	texts       jsonb NOT NULL DEFAULT '{}',
	-- Retired: no longer offered, and dropped from tokens at the next redemption.
	retired_at  timestamptz,
	PRIMARY KEY (brand_id, id),
	UNIQUE (brand_id, position)
);

CREATE TABLE login_connections (
	brand_id             text NOT NULL REFERENCES brands,
	id                   uuid NOT NULL,
	issuer               text NOT NULL,
	client_id            text NOT NULL,
	client_secret_sealed bytea NOT NULL,
	subject_claim        text NOT NULL DEFAULT 'sub',
	scopes               text[] NOT NULL DEFAULT '{openid}',
	live                 boolean NOT NULL,
	created_at           timestamptz NOT NULL,
	PRIMARY KEY (brand_id, id)
);
CREATE UNIQUE INDEX login_connections_one_live ON login_connections (brand_id) WHERE live;

ALTER TABLE brands ENABLE ROW LEVEL SECURITY;
CREATE POLICY brand_fence ON brands
	USING (id = current_setting('countersign.brand', true));
-- Upkeep walks over all Brands by id; this view, run with its owner's rights, is
-- the one hole in the fence, and the reason why brands itself is not FORCEd.
CREATE VIEW brand_ids AS SELECT id, state FROM brands;
ALTER TABLE brand_scopes ENABLE ROW LEVEL SECURITY;
ALTER TABLE brand_scopes FORCE ROW LEVEL SECURITY;
CREATE POLICY brand_fence ON brand_scopes
	USING (brand_id = current_setting('countersign.brand', true));
ALTER TABLE login_connections ENABLE ROW LEVEL SECURITY;
ALTER TABLE login_connections FORCE ROW LEVEL SECURITY;
CREATE POLICY brand_fence ON login_connections
	USING (brand_id = current_setting('countersign.brand', true));

GRANT SELECT, INSERT, UPDATE ON providers, brands, brand_scopes, login_connections TO countersign_app;
GRANT SELECT ON brand_ids TO countersign_app;
