-- +goose Up
-- Owned by package consent: who vouched for the login that was made in a journey, an
-- OpenID provider or the Brand's own page, as its issuer.
ALTER TABLE journeys ADD COLUMN vouched_by text;
