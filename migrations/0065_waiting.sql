-- +goose NO TRANSACTION
-- Owned by package authority: turns that wait for their receipts, and what a line of
-- the log says of them. Each step may be done twice: what broke off goes on.
-- +goose Up
SET lock_timeout = '2s';

-- A Brand's own server hands a turn in, and what a receipt is made of is kept until
-- one can be signed: whoever handed it in need not come again. Without it (versions
-- before this one keep none) only the same call again can be countersigned.
CREATE SEQUENCE IF NOT EXISTS turns_accepted_n;
GRANT USAGE ON SEQUENCE turns_accepted_n TO countersign_app;
ALTER TABLE turns_accepted
	ADD COLUMN IF NOT EXISTS n        bigint,                              -- the order in which they came; none, of those before
	ADD COLUMN IF NOT EXISTS turn     text,                                -- JSON; never the token's signature
	ADD COLUMN IF NOT EXISTS tries    integer NOT NULL DEFAULT 0,          -- that failed while others did not
	ADD COLUMN IF NOT EXISTS retry_at timestamptz;                         -- not before
-- Apart from its column, which would be filled in all rows at once.
ALTER TABLE turns_accepted ALTER COLUMN n SET DEFAULT nextval('turns_accepted_n');
GRANT UPDATE (n, turn, tries, retry_at) ON turns_accepted TO countersign_app; -- n and turn: of those before

-- An answer is settled when its receipt is written, though nobody has come for it yet.
ALTER TABLE turns
	ADD COLUMN IF NOT EXISTS message_hash text,        -- of the message's text; gone with the answer
	ADD COLUMN IF NOT EXISTS settled_at   timestamptz, -- when its receipt was found written
	ADD COLUMN IF NOT EXISTS tries        integer NOT NULL DEFAULT 0,
	ADD COLUMN IF NOT EXISTS retry_at     timestamptz;

SET lock_timeout = 0; -- it waits for everybody who writes now, and keeps nobody waiting
DROP INDEX CONCURRENTLY IF EXISTS turns_accepted_in_order;
CREATE INDEX CONCURRENTLY turns_accepted_in_order ON turns_accepted (brand_id, n);
DROP INDEX CONCURRENTLY IF EXISTS turns_unsettled;
CREATE INDEX CONCURRENTLY turns_unsettled ON turns (brand_id, answered_at, conversation_id, message_id) WHERE state = 'answered' AND settled_at IS NULL;
-- What was begun and never ended.
DROP INDEX CONCURRENTLY IF EXISTS turns_running;
CREATE INDEX CONCURRENTLY turns_running ON turns (brand_id, began_at) WHERE state = 'running';
-- Versions before this one look for what waits without it, once a minute.
DROP INDEX CONCURRENTLY IF EXISTS turns_waiting;
SET lock_timeout = '2s';
