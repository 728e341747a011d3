-- Owned by package tenants: how long an agent may stay away (R49). A grant that
-- nobody uses is forgotten by the person, and worth most to a thief.
-- +goose Up
SET lock_timeout = '5s';

ALTER TABLE brands ADD COLUMN idle_days integer NOT NULL DEFAULT 30 CHECK (idle_days BETWEEN 1 AND 366);
