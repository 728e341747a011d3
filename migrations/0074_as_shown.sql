-- What an owner allows is what they read: that a Brand goes on, or an endpoint, is
-- allowed for the stop that was there when it was asked for, and for no later one.
-- +goose Up
SET lock_timeout = '2s';

ALTER TABLE brands ADD COLUMN pauses integer NOT NULL DEFAULT 0;               -- how often it was paused
ALTER TABLE webhook_endpoints ADD COLUMN switches integer NOT NULL DEFAULT 0;  -- how often it was turned on or off
