-- Owned by package authority/agent: the pictures of agents. Each is one of our own
-- making, whatever was sent.
-- +goose Up
SET lock_timeout = '5s';

CREATE TABLE agent_logos (
	issuer     text PRIMARY KEY REFERENCES agents ON DELETE CASCADE,
	png        bytea NOT NULL,
	hash       text NOT NULL CHECK (length(hash) = 43),
	changed_at timestamptz NOT NULL
);
-- Pages name a picture by its hash.
CREATE INDEX agent_logos_by_hash ON agent_logos (hash);
GRANT SELECT, INSERT, UPDATE, DELETE ON agent_logos TO countersign_app;

-- What the operator approves is what is shown then, and nobody is shown it before.
ALTER TABLE agent_applications
	ADD COLUMN logo_png  bytea,
	ADD COLUMN logo_hash text NOT NULL DEFAULT '',
	ADD CONSTRAINT agent_applications_logo CHECK ((logo_png IS NULL) = (logo_hash = '')) NOT VALID;

CREATE OR REPLACE VIEW agent_states AS
SELECT a.issuer, a.name, a.enabled, a.jwks_uri, a.created_at, a.discovered, coalesce(p.hash, '') AS logo
  FROM agents a
  LEFT JOIN agent_logos p ON p.issuer = a.issuer;

-- As before, with the picture. Whoever asks for the rest only does not read it:
-- PostgreSQL leaves the join out.
CREATE OR REPLACE VIEW agent_standing AS
SELECT b.id AS brand_id, a.issuer, a.name, a.test,
       a.enabled AND (a.test OR b.proven)
       AND coalesce(l.allowed, b.agents <> 'listed')
       AND (b.agents = 'open' OR NOT a.discovered) AS enabled,
       a.discovered, coalesce(p.hash, '') AS logo
  FROM brands b
  CROSS JOIN agents a
  LEFT JOIN brand_agents l ON l.brand_id = b.id AND l.issuer = a.issuer
  LEFT JOIN agent_logos p ON p.issuer = a.issuer;

-- The pictures themselves, for the pages of Brands.
CREATE VIEW agent_pictures AS SELECT hash, png FROM agent_logos;
GRANT SELECT ON agent_pictures TO countersign_app;
