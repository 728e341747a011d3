-- +goose NO TRANSACTION
-- Owned by package authority: what admins ask of a trail that has grown, and how
-- often Brands were asked.
-- +goose Up

-- Requests are purged soon after they are over, answered or not. What is left of
-- them is how many there were.
-- +goose StatementBegin
DO $$
BEGIN
	CREATE TABLE IF NOT EXISTS usage_days (
		brand_id text NOT NULL REFERENCES brands,
		day      date NOT NULL, -- of UTC, on which they were made
		asked    integer NOT NULL,
		stepups  integer NOT NULL,
		PRIMARY KEY (brand_id, day)
	);
	ALTER TABLE usage_days ENABLE ROW LEVEL SECURITY;
	ALTER TABLE usage_days FORCE ROW LEVEL SECURITY;
	DROP POLICY IF EXISTS brand_fence ON usage_days;
	CREATE POLICY brand_fence ON usage_days USING (brand_id = current_setting('countersign.brand', true));
	GRANT SELECT, INSERT, UPDATE ON usage_days TO countersign_app;
END
$$;
-- +goose StatementEnd

-- Facts go on being written while these are made, which is why there is no
-- transaction here. A migrator that died half-way leaves an index that is not
-- valid; the next one makes it anew.

-- When: to find a place in the trail by its time, and to count events by the day.
DROP INDEX CONCURRENTLY IF EXISTS audit_events_by_time;
CREATE INDEX CONCURRENTLY audit_events_by_time ON audit_events (brand_id, at, event);

-- What: so that a rare event is found among millions.
DROP INDEX CONCURRENTLY IF EXISTS audit_events_by_event;
CREATE INDEX CONCURRENTLY audit_events_by_event ON audit_events (brand_id, event, seq);

-- Who. Time itself has no id.
DROP INDEX CONCURRENTLY IF EXISTS audit_events_by_actor;
CREATE INDEX CONCURRENTLY audit_events_by_actor ON audit_events (brand_id, actor_id, seq) WHERE actor_id <> '';
