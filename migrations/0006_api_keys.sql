-- Owned by package tenants: what a Brand's own servers authenticate with.
-- +goose Up
SET lock_timeout = '5s';

CREATE TABLE api_keys (
	brand_id    text NOT NULL REFERENCES brands,
	id          text NOT NULL CHECK (id ~ '^[a-z2-7]{12}$'),
	name        text NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
	rights      text[] NOT NULL CHECK (cardinality(rights) > 0 AND
	            rights <@ ARRAY['introspect', 'receipts', 'stepup', 'events', 'verify', 'admin']),
	-- Of the secret's 256 random bits; the key itself is shown once.
	secret_hash bytea NOT NULL,
	created_at  timestamptz NOT NULL,
	revoked_at  timestamptz,
	PRIMARY KEY (brand_id, id)
);
ALTER TABLE api_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE api_keys FORCE ROW LEVEL SECURITY;
CREATE POLICY brand_fence ON api_keys
	USING (brand_id = current_setting('countersign.brand', true));

GRANT SELECT, INSERT, UPDATE ON api_keys TO countersign_app;
