-- Owned by package tenants: what a webhook is sent.
-- +goose Up
SET lock_timeout = '5s';

-- json: our own JSON, signed with the endpoint's secret (Standard Webhooks).
-- set: a Security Event Token (RFC 8417), signed with the Brand's key as well, which a
-- receiver of the Shared Signals Framework takes as it is (CAEP, RFC 8935).
ALTER TABLE webhook_endpoints ADD COLUMN format text NOT NULL DEFAULT 'json' CHECK (format IN ('json', 'set'));
