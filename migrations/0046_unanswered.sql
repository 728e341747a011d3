-- Owned by package authority: retries of a refresh that met an outage.
-- +goose Up
SET lock_timeout = '5s';

-- When a retry came in time and could not be answered, since nothing could be signed:
-- the next one may come later than the window. Null, mostly.
ALTER TABLE refresh_tokens
	ADD COLUMN unanswered_at timestamptz,
	ADD COLUMN answered_at   timestamptz; -- when that one was answered: the window runs from here, once
