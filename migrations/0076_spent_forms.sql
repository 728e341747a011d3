-- Owned by package tenants: forms of the dashboard that made something.
-- Each step may be done twice.
-- +goose Up
SET lock_timeout = '2s';

-- What is shown a single time is made a single time, however often its form is
-- sent: the row is written with what the form makes. It holds a random number and
-- a time, so it is nobody's, and stays behind no Brand.
CREATE TABLE IF NOT EXISTS spent_forms (
	id       uuid PRIMARY KEY,
	spent_at timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS spent_forms_by_age ON spent_forms (spent_at);
GRANT SELECT, INSERT, DELETE ON spent_forms TO countersign_app;
