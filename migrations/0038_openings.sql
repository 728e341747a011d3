-- +goose NO TRANSACTION
-- Owned by package authority: where conversations begin, and that they end. Each step
-- may be done twice: what broke off goes on.
-- +goose Up
SET lock_timeout = '5s';

-- A conversation that the Brand's agent has ended hears nothing new.
ALTER TABLE conversations ADD COLUMN IF NOT EXISTS closed_at timestamptz;

-- The message that began a conversation is known without its contextId, which whoever
-- lost the reply never learned. Of those that came before this column nobody knows.
ALTER TABLE turns ADD COLUMN IF NOT EXISTS opens boolean NOT NULL DEFAULT false;

-- One message begins one conversation, however often and wherever it comes at once.
SET lock_timeout = 0; -- it waits for everybody who writes now, and keeps nobody waiting
DROP INDEX CONCURRENTLY IF EXISTS turns_opening;
CREATE UNIQUE INDEX CONCURRENTLY turns_opening ON turns (brand_id, agent, agent_sub, message_id) WHERE opens;
SET lock_timeout = '5s';
