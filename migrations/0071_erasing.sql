-- Owned by package authority: a turn that comes again while its person is erased is not
-- written down a second time.
-- +goose Up
SET lock_timeout = '2s';

-- What is emptied piece by piece is not missed meanwhile: such a grant gives nothing.
ALTER TABLE grants ADD COLUMN IF NOT EXISTS erasing boolean NOT NULL DEFAULT false;
