-- Owned by package migrations: how far a database is.
-- +goose Up
SET lock_timeout = '2s';

-- An instance of the next version that starts before the database is there waits
-- for it; so the service may read how far it is.
GRANT SELECT ON goose_db_version TO countersign_app;
