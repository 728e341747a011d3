-- +goose NO TRANSACTION
-- Owned by package authority: what every receipt and every proof runs through,
-- cheaper. Each step may be done twice: what broke off goes on.
-- +goose Up
SET lock_timeout = '5s';

-- The head of a log refers to its Brand, and no line is without a head. Asking again
-- for every line locks the Brand's one row, and that row is everybody's.
ALTER TABLE receipts DROP CONSTRAINT IF EXISTS receipts_brand_id_fkey;

-- A proof needs some twenty hashes from all over the log, each beside a receipt of
-- more than a thousand bytes: twenty pages that nobody else reads. In the index a
-- hundred lie together.
SET lock_timeout = 0; -- it waits for everybody who writes now, and keeps nobody waiting
DROP INDEX CONCURRENTLY IF EXISTS receipts_tree;
CREATE UNIQUE INDEX CONCURRENTLY receipts_tree ON receipts (brand_id, seq) INCLUDE (hashes);
SET lock_timeout = '5s';
ALTER TABLE receipts DROP CONSTRAINT receipts_pkey, ADD CONSTRAINT receipts_pkey PRIMARY KEY USING INDEX receipts_tree;
