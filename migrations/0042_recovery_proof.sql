-- A mailbox and three quiet days are not enough to become an owner: who comes
-- back by the wait publishes this line on a domain of the Brand's while it lasts.
-- +goose Up
SET lock_timeout = '5s';

-- Waits that are under way get a line too, each its own; so do those that an instance
-- of the version before begins.
ALTER TABLE recoveries ADD COLUMN token text NOT NULL
	DEFAULT 'countersign-recovery=' || replace(gen_random_uuid()::text, '-', '');

CREATE OR REPLACE VIEW person_recoveries AS
	SELECT r.person_id, r.brand_id, r.id, r.due_at, r.token
	  FROM recoveries r
	 WHERE r.person_id::text = current_setting('countersign.person', true)
	   AND r.cancelled_at IS NULL AND r.done_at IS NULL;
