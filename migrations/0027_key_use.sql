-- Owned by package tenants: when an API key last opened something, to the
-- minute. A key that nobody has used for months is one to revoke.
-- +goose Up
SET lock_timeout = '5s';

ALTER TABLE api_keys ADD COLUMN last_used_at timestamptz;
