-- +goose NO TRANSACTION
-- Owned by package authority: answers that wait for their receipts. Each step may be
-- done twice: what broke off goes on.
-- +goose Up
SET lock_timeout = '5s';

-- An answer that waits for its receipt is countersigned by what the turn was made
-- with, and as of then: the same message may come again with a token that holds less
-- by now, or long after the first one's end. Nullable: versions before this one keep
-- an answer without them.
ALTER TABLE turns
	ADD COLUMN IF NOT EXISTS claims      text,        -- of the delegation token beside the message, never its signature; gone with the answer
	ADD COLUMN IF NOT EXISTS answered_at timestamptz; -- when the answer was kept

-- What waits is looked for every minute, among a day of replies.
SET lock_timeout = 0; -- it waits for everybody who writes now, and keeps nobody waiting
DROP INDEX CONCURRENTLY IF EXISTS turns_waiting;
CREATE INDEX CONCURRENTLY turns_waiting ON turns (brand_id, answered_at, conversation_id, message_id) WHERE state = 'answered';
SET lock_timeout = '5s';
