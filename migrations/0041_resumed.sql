-- +goose Up

-- While a Brand pauses no agent can come, and none has stayed away.
ALTER TABLE brands ADD COLUMN resumed_at timestamptz;
