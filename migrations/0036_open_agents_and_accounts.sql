-- Owned by packages tenants and authority/agent: Brands that are open to agents
-- nobody has registered, found through OIDC discovery (M2).
-- +goose Up
SET lock_timeout = '5s';

ALTER TABLE brands
	DROP CONSTRAINT brands_agents_check,
	ADD CONSTRAINT brands_agents_check CHECK (agents IN ('listed', 'registered', 'open'));

-- The operator has not looked at such an agent; its name is its host. Never a test
-- agent: those work with Brands that have proved nothing.
ALTER TABLE agents
	ADD COLUMN discovered boolean NOT NULL DEFAULT false,
	ADD CONSTRAINT agents_discovered CHECK (NOT (discovered AND test));

-- Strangers make these rows, so counting them must not read the others.
CREATE INDEX agents_by_discovery ON agents (created_at) WHERE discovered;

CREATE OR REPLACE VIEW agent_states AS SELECT issuer, name, enabled, jwks_uri, created_at, discovered FROM agents;

-- As before; one that was discovered may act only where the Brand is open now, and
-- no word of a Brand lets it in elsewhere: it is for the operator to register it.
CREATE OR REPLACE VIEW agent_standing AS
SELECT b.id AS brand_id, a.issuer, a.name, a.test,
       a.enabled AND (a.test OR b.proven)
       AND coalesce(l.allowed, b.agents <> 'listed')
       AND (b.agents = 'open' OR NOT a.discovered) AS enabled,
       a.discovered
  FROM brands b
  CROSS JOIN agents a
  LEFT JOIN brand_agents l ON l.brand_id = b.id AND l.issuer = a.issuer;

-- Owned by packages tenants and web: what somebody sees of their own account.
-- Where a passkey was made, as far as the browser said: Firefox, Linux.
ALTER TABLE passkeys ADD COLUMN name text NOT NULL DEFAULT '' CHECK (length(name) <= 80);

-- Whose a session is, so that its owner can see and end all of theirs; of the
-- browser nothing but its family.
ALTER TABLE browser_sessions
	ADD COLUMN owner   text NOT NULL DEFAULT '',
	ADD COLUMN browser text NOT NULL DEFAULT '' CHECK (length(browser) <= 40);
-- Those who are signed in now must be found too.
UPDATE browser_sessions
   SET owner = coalesce((convert_from(data, 'UTF8')::jsonb->>'record')::jsonb->>'person', '')
 WHERE kind = 'console';
CREATE INDEX browser_sessions_by_owner ON browser_sessions (owner) WHERE owner <> '';
