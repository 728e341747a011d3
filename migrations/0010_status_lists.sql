-- Owned by package authority: reading a status list must not cost more where a
-- Brand has more grants.
-- +goose Up
SET lock_timeout = '5s';

-- What of a list's grants has run out, and which is the next.
CREATE INDEX grants_by_list ON grants (brand_id, status_list, expires_at) WHERE ended_at IS NULL;
-- What of a list has been voided.
CREATE INDEX status_entries_void ON status_entries (brand_id, list) INCLUDE (idx) WHERE invalid_at IS NOT NULL;
