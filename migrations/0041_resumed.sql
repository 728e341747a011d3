-- +goose Up

-- Whoever was kept out has not stayed away: since when the Brand lets agents come
-- again, after a pause or by another rule about agents, and since when the operator
-- lets an agent.
ALTER TABLE brands ADD COLUMN resumed_at timestamptz;
ALTER TABLE agents ADD COLUMN enabled_at timestamptz;
