-- +goose NO TRANSACTION
-- Owned by package authority: what one agent says for whoever shows no permission is
-- bounded, all whom it names together. May be done twice: what broke off goes on.
-- +goose Up
SET lock_timeout = 0; -- it waits for everybody who writes now, and keeps nobody waiting
DROP INDEX CONCURRENTLY IF EXISTS turns_of_strangers;
CREATE INDEX CONCURRENTLY turns_of_strangers ON turns (brand_id, agent, began_at) WHERE grant_id IS NULL;
SET lock_timeout = '2s';
