-- Owned by package authority: what the trail knows only the digests of.
-- +goose Up
SET lock_timeout = '5s';

-- The values of authorization_details that a Brand is told of a grant. They may say
-- what a person wanted, and the trail can be edited by nobody, so it holds their
-- types and salted digests; the values stand here, for webhooks and the stream, and
-- go when the fact no longer says who and what. Facts of before hold their values.
CREATE TABLE event_details (
	brand_id text   NOT NULL REFERENCES brands,
	seq      bigint NOT NULL,
	salt     bytea  NOT NULL CHECK (octet_length(salt) = 16),
	details  jsonb  NOT NULL CHECK (jsonb_typeof(details) = 'array'),
	PRIMARY KEY (brand_id, seq)
);
ALTER TABLE event_details ENABLE ROW LEVEL SECURITY;
ALTER TABLE event_details FORCE ROW LEVEL SECURITY;
CREATE POLICY brand_fence ON event_details
	USING (brand_id = current_setting('countersign.brand', true));
GRANT SELECT, INSERT ON event_details TO countersign_app;

-- Whatever way who and what are taken out of a fact, its values go with them.
-- +goose StatementBegin
CREATE FUNCTION forget_event_details() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
	DELETE FROM event_details d USING emptied e
	 WHERE e.salt IS NULL AND d.brand_id = e.brand_id AND d.seq = e.seq;
	RETURN NULL;
END
$$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION forget_event_details FROM PUBLIC;
CREATE TRIGGER forget_event_details AFTER UPDATE ON audit_events
	REFERENCING NEW TABLE AS emptied FOR EACH STATEMENT EXECUTE FUNCTION forget_event_details();
