-- Owned by package authority/agent: what a Brand may read of an agent before it
-- lets it in. Whom the operator can ask about it stays the operator's.
-- +goose Up
SET lock_timeout = '5s';

CREATE OR REPLACE VIEW agent_states AS SELECT issuer, name, enabled, jwks_uri, created_at FROM agents;
