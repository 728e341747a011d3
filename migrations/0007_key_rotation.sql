-- Owned by package authority/signing: keys change while verifiers look on.
-- +goose Up
SET lock_timeout = '5s';

-- A compromised key leaves the JWKS at once and stands in the archive with the
-- time from which nothing it signed may be believed by itself (wire.md §2).
ALTER TABLE signing_keys ADD COLUMN reason text;
ALTER TABLE signing_keys ADD CONSTRAINT signing_keys_revoked_says_why
	CHECK ((state = 'revoked') = (reason IS NOT NULL));
CREATE UNIQUE INDEX signing_keys_one_next ON signing_keys (brand_id) WHERE state = 'next';

-- How often a Brand's key changes by itself. Bounded: faster than a day would
-- fill every JWKS, never would leave a leaked key good for ever.
ALTER TABLE brands ADD COLUMN rotation_days integer NOT NULL DEFAULT 90 CHECK (rotation_days BETWEEN 1 AND 366);
