-- Owned by package consent: a journey may also end by one Continue, which
-- changed nothing; its closing page says so.
-- +goose Up
SET lock_timeout = '5s';

ALTER TABLE journeys
	DROP CONSTRAINT journeys_outcome_check,
	ADD CONSTRAINT journeys_outcome_check CHECK (outcome IN ('allowed', 'denied', 'emptied', 'continued'));
