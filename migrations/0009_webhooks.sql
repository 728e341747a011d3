-- A Brand is told of every change of a grant: by webhook, or on a stream.
-- +goose Up
SET lock_timeout = '5s';

-- Owned by package tenants: where a Brand wants to be told.
CREATE TABLE webhook_endpoints (
	brand_id      text NOT NULL REFERENCES brands,
	id            text NOT NULL CHECK (id ~ '^[a-z2-7]{12}$'),
	url           text NOT NULL CHECK (url ~ '^https?://' AND length(url) <= 2000),
	events        text[] NOT NULL CHECK (cardinality(events) > 0 AND
	              events <@ ARRAY['grant.created', 'grant.widened', 'grant.narrowed', 'grant.revoked', 'grant.expired',
	                              'grant.reuse_detected']),
	secret_sealed bytea NOT NULL,
	-- Until then the receiver may still be checking with the former secret, so
	-- both sign.
	former_sealed bytea,
	former_until  timestamptz,
	enabled       boolean NOT NULL,
	note          text NOT NULL DEFAULT '', -- why it is not enabled
	created_at    timestamptz NOT NULL,
	PRIMARY KEY (brand_id, id),
	CHECK ((former_sealed IS NULL) = (former_until IS NULL))
);

-- Owned by package authority/events: the outbox. A row is written in the
-- transaction of the fact that it is about, and holds no word of it: what is
-- sent is read from the trail, where a person's data can be erased.
CREATE TABLE webhook_deliveries (
	brand_id      text NOT NULL,
	id            uuid NOT NULL, -- the webhook-id, the same at every attempt
	endpoint_id   text NOT NULL,
	seq           bigint NOT NULL,
	state         text NOT NULL CHECK (state IN ('pending', 'delivered', 'dead')),
	attempts      integer NOT NULL DEFAULT 0, -- in all
	tries         integer NOT NULL DEFAULT 0, -- since it was written or last replayed
	since         timestamptz NOT NULL,       -- when that was
	due_at        timestamptz NOT NULL,       -- not before
	claimed_until timestamptz,                -- somebody is at it, unless he died
	last_at       timestamptz,
	last_status   integer,                    -- null: there was no answer
	last_error    text NOT NULL DEFAULT '',   -- our words, never the receiver's
	PRIMARY KEY (brand_id, id),
	FOREIGN KEY (brand_id, endpoint_id) REFERENCES webhook_endpoints (brand_id, id),
	FOREIGN KEY (brand_id, seq) REFERENCES audit_events (brand_id, seq)
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (brand_id, endpoint_id, due_at, seq) WHERE state = 'pending';
CREATE INDEX webhook_deliveries_over ON webhook_deliveries (brand_id, since) WHERE state <> 'pending';

-- How an endpoint fares. Many rows change often, and none of them is settings.
CREATE TABLE webhook_lines (
	brand_id    text NOT NULL,
	endpoint_id text NOT NULL,
	failures    integer NOT NULL DEFAULT 0, -- in a row
	rest_until  timestamptz,                -- it failed; it is not tried before
	wake_at     timestamptz,                -- a job is set for then
	PRIMARY KEY (brand_id, endpoint_id),
	FOREIGN KEY (brand_id, endpoint_id) REFERENCES webhook_endpoints (brand_id, id)
) WITH (fillfactor = 50);

-- What a stream reads when it goes on from a place far back.
CREATE INDEX audit_events_told ON audit_events (brand_id, seq) WHERE event LIKE 'grant.%';

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
	FOREACH t IN ARRAY ARRAY['webhook_endpoints', 'webhook_deliveries', 'webhook_lines'] LOOP
		EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
		EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
		EXECUTE format('CREATE POLICY brand_fence ON %I USING (brand_id = current_setting(''countersign.brand'', true))', t);
	END LOOP;
END
$$;
-- +goose StatementEnd

GRANT SELECT, INSERT, UPDATE ON webhook_endpoints, webhook_lines TO countersign_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON webhook_deliveries TO countersign_app;
