-- Owned by package tenants, but for the columns of agents: everything a Brand
-- sets by itself.
-- +goose Up
SET lock_timeout = '5s';

ALTER TABLE providers
	-- The operator's own: its audience is shared by hosted Brands of many
	-- organisations, because a hosted Brand never sees a pa-jwt. A fronted or
	-- split one does, and could send it on to whoever shares its audience.
	ADD COLUMN shared  boolean NOT NULL DEFAULT false,
	-- The Brand that created it, and that alone may move itself there.
	ADD COLUMN founder text REFERENCES brands;
UPDATE providers p SET shared = true
 WHERE EXISTS (SELECT FROM brands b WHERE b.provider_id = p.id AND b.mode = 'hosted');

ALTER TABLE brands
	ADD COLUMN connected_url text NOT NULL DEFAULT '',
	-- In these the Brand has promised its words for every scope, beside its own.
	ADD COLUMN languages     text[] NOT NULL DEFAULT '{}',
	ADD COLUMN agents        text NOT NULL DEFAULT 'registered' CHECK (agents IN ('listed', 'registered')),
	-- Whoever signs up could call himself a bank on our origin: until the Brand
	-- has proved a domain, only test agents work with it. Those that stand here
	-- already were let in by the operator.
	ADD COLUMN proven        boolean NOT NULL DEFAULT true;
ALTER TABLE brands ALTER COLUMN proven SET DEFAULT false;

-- What we made of the picture a Brand gave us; never its own bytes.
CREATE TABLE brand_logos (
	brand_id   text PRIMARY KEY REFERENCES brands,
	png        bytea NOT NULL CHECK (octet_length(png) BETWEEN 1 AND 1048576),
	hash       text NOT NULL,
	changed_at timestamptz NOT NULL
);

CREATE TABLE brand_domains (
	brand_id      text NOT NULL REFERENCES brands,
	host          text NOT NULL CHECK (host = lower(host) AND length(host) BETWEEN 1 AND 253),
	token         text NOT NULL, -- no secret: it is to be published
	added_at      timestamptz NOT NULL,
	proven_at     timestamptz,
	method        text CHECK (method IN ('file', 'dns')),
	checked_at    timestamptz,
	-- Since when a proof that was there is gone.
	failing_since timestamptz,
	trouble       text NOT NULL DEFAULT '',
	PRIMARY KEY (brand_id, host),
	CHECK ((proven_at IS NULL) = (method IS NULL))
);

ALTER TABLE agents
	-- For trying things out: it works with Brands that have proved nothing yet.
	ADD COLUMN test    boolean NOT NULL DEFAULT false,
	ADD COLUMN contact text NOT NULL DEFAULT '' CHECK (length(contact) <= 320);

-- What a Brand thinks of single agents. Absent: what the Brand's rule says.
CREATE TABLE brand_agents (
	brand_id text NOT NULL REFERENCES brands,
	issuer   text NOT NULL REFERENCES agents,
	allowed  boolean NOT NULL,
	noted_at timestamptz NOT NULL,
	PRIMARY KEY (brand_id, issuer)
);

ALTER TABLE login_connections
	ADD COLUMN auth       text NOT NULL DEFAULT 'secret' CHECK (auth IN ('secret', 'private_key_jwt')),
	-- The public half of the key that stands sealed in place of a secret.
	ADD COLUMN public_jwk jsonb,
	ADD COLUMN prompt     text NOT NULL DEFAULT '' CHECK (prompt IN ('', 'login', 'consent', 'select_account')),
	ADD COLUMN max_age    integer CHECK (max_age BETWEEN 0 AND 2592000),
	ADD COLUMN ended_at   timestamptz,
	ADD CONSTRAINT login_connections_key CHECK ((auth = 'private_key_jwt') = (public_jwk IS NOT NULL));
ALTER TABLE login_connections NO FORCE ROW LEVEL SECURITY;
-- Those that were replaced are over, and nobody needs their secrets.
UPDATE login_connections SET ended_at = created_at, client_secret_sealed = '' WHERE NOT live;
ALTER TABLE login_connections FORCE ROW LEVEL SECURITY;
ALTER TABLE login_connections ADD CONSTRAINT login_connections_over CHECK (NOT live OR ended_at IS NULL);
-- One that is tried beside the live one (B62), and no crowd of them.
CREATE UNIQUE INDEX login_connections_one_candidate ON login_connections (brand_id) WHERE NOT live AND ended_at IS NULL;

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
	FOREACH t IN ARRAY ARRAY['brand_logos', 'brand_domains', 'brand_agents'] LOOP
		EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
		EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
		EXECUTE format('CREATE POLICY brand_fence ON %I USING (brand_id = current_setting(''countersign.brand'', true))', t);
	END LOOP;
END
$$;
-- +goose StatementEnd

-- What the rules ask inside their own statements, naming both: whether this
-- agent may act at this Brand now. No agent without a row is enabled.
CREATE VIEW agent_standing AS
SELECT b.id AS brand_id, a.issuer, a.name, a.test,
       a.enabled AND (a.test OR b.proven) AND coalesce(l.allowed, b.agents = 'registered') AS enabled
  FROM brands b
  CROSS JOIN agents a
  LEFT JOIN brand_agents l ON l.brand_id = b.id AND l.issuer = a.issuer;

GRANT SELECT, INSERT, UPDATE, DELETE ON brand_logos, brand_domains, brand_agents TO countersign_app;
GRANT SELECT ON agent_standing TO countersign_app;
