-- Owned by package authority/signing: each Brand's keys.
-- +goose Up
SET lock_timeout = '5s';

-- Public halves, kept for ever: receipts are verified long after their key
-- has stopped signing and even after the key store has lost it.
CREATE TABLE signing_keys (
	brand_id   text NOT NULL REFERENCES brands,
	kid        text NOT NULL,               -- RFC 7638 thumbprint
	backend    text NOT NULL,               -- who holds the private half
	version    integer NOT NULL,            -- the backend's name for it
	alg        text NOT NULL CHECK (alg IN ('ES256', 'RS256')),
	state      text NOT NULL CHECK (state IN ('next', 'current', 'retired', 'revoked')),
	public_jwk jsonb NOT NULL,
	created_at timestamptz NOT NULL,
	changed_at timestamptz NOT NULL,
	PRIMARY KEY (brand_id, kid),
	UNIQUE (brand_id, backend, version)
);
CREATE UNIQUE INDEX signing_keys_one_current ON signing_keys (brand_id) WHERE state = 'current';

-- The development keyring's private halves, sealed under a key that is not in
-- the database.
CREATE TABLE local_keys (
	brand_id text NOT NULL REFERENCES brands,
	version  integer NOT NULL,
	alg      text NOT NULL,
	sealed   bytea NOT NULL,
	PRIMARY KEY (brand_id, version)
);

ALTER TABLE signing_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE signing_keys FORCE ROW LEVEL SECURITY;
CREATE POLICY brand_fence ON signing_keys
	USING (brand_id = current_setting('countersign.brand', true));
ALTER TABLE local_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE local_keys FORCE ROW LEVEL SECURITY;
CREATE POLICY brand_fence ON local_keys
	USING (brand_id = current_setting('countersign.brand', true));

GRANT SELECT, INSERT, UPDATE ON signing_keys TO countersign_app;
GRANT SELECT, INSERT ON local_keys TO countersign_app;
