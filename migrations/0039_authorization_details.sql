-- Authorization details (RFC 9396): what a scope allows, said more exactly by the
-- agent, in the terms of a type that the Brand registered.
-- +goose Up
SET lock_timeout = '5s';

-- Owned by package tenants.
CREATE TABLE detail_types (
	brand_id text NOT NULL REFERENCES brands,
	type     text NOT NULL CHECK (type ~ '^[A-Za-z0-9][A-Za-z0-9:/._~-]{0,99}$'),
	-- Never changes: what a person agreed to beside one scope must not come to
	-- stand beside another.
	scope    text NOT NULL,
	-- JSON Schema of the members beside type, closed on every level.
	schema   jsonb NOT NULL,
	-- Up to {amount} {currency}[ at {shop}]; translations in texts, {"zh-Hant": …}.
	words    text NOT NULL CHECK (words <> ''),
	texts    jsonb NOT NULL DEFAULT '{}',
	PRIMARY KEY (brand_id, type),
	FOREIGN KEY (brand_id, scope) REFERENCES brand_scopes (brand_id, id)
);
ALTER TABLE detail_types ENABLE ROW LEVEL SECURITY;
ALTER TABLE detail_types FORCE ROW LEVEL SECURITY;
CREATE POLICY brand_fence ON detail_types
	USING (brand_id = current_setting('countersign.brand', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON detail_types TO countersign_app;

-- Owned by package authority: what was asked for, and what was allowed. Each is
-- [{"scope": …, "detail": {"type": …}}], so that a grant says by itself which of
-- its scopes an entry belongs to, also when the Brand has no such type any more.
ALTER TABLE device_requests ADD COLUMN details jsonb NOT NULL DEFAULT '[]';
ALTER TABLE grants ADD COLUMN details jsonb NOT NULL DEFAULT '[]';

-- As before; what somebody wanted goes with who they were.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION erase_person(person text) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
	brand text := current_setting('countersign.brand');
	n bigint;
	total bigint := 0;
BEGIN
	IF coalesce(person, '') = '' OR EXISTS (
	   SELECT FROM grants WHERE brand_id = brand AND subject = person AND ended_at IS NULL) THEN
		RAISE EXCEPTION 'a person is named, and has no living grant';
	END IF;
	-- Before grants and consents, which say whose requests they were.
	UPDATE device_requests r
	   SET agent_sub = tombstone(), reason = '', details = '[]',
	       expected_subject = CASE WHEN expected_subject IS NOT NULL THEN tombstone() END
	 WHERE r.brand_id = brand
	   AND (r.expected_subject = person
	    OR r.grant_id IN (SELECT id FROM grants WHERE brand_id = brand AND subject = person)
	    OR r.id IN (SELECT request_id FROM consents WHERE brand_id = brand AND subject = person));
	GET DIAGNOSTICS n = ROW_COUNT; total := total + n;
	-- The hash of what they saw also stands in the trail.
	UPDATE consents SET subject = tombstone(), record = '{}' WHERE brand_id = brand AND subject = person;
	GET DIAGNOSTICS n = ROW_COUNT; total := total + n;
	UPDATE grants SET subject = tombstone(), agent_sub = tombstone(), seen = '{}', details = '[]' WHERE brand_id = brand AND subject = person;
	GET DIAGNOSTICS n = ROW_COUNT; total := total + n;
	DELETE FROM suspended_users WHERE brand_id = brand AND subject = person;
	GET DIAGNOSTICS n = ROW_COUNT; total := total + n;
	DELETE FROM code_attempts
	 WHERE brand_id = brand AND kind = 'user' AND key = sha256('user'::bytea || '\x00'::bytea || convert_to(person, 'UTF8'));
	GET DIAGNOSTICS n = ROW_COUNT; total := total + n;
	DELETE FROM journeys WHERE brand_id = brand AND subject = person;
	GET DIAGNOSTICS n = ROW_COUNT; total := total + n;
	-- Answers that are kept for whoever lost them.
	DELETE FROM api_replies
	 WHERE brand_id = brand
	   AND CASE WHEN status < 300 AND content_type = 'application/json'
	            THEN convert_from(body, 'UTF8')::json->>'subject' = person ELSE false END;
	GET DIAGNOSTICS n = ROW_COUNT; total := total + n;
	-- The login in a browser; logins at other Brands stay.
	UPDATE browser_sessions s
	   SET data = convert_to(jsonb_set(v.held, '{logins}', to_jsonb(((v.held->>'logins')::jsonb - brand)::text))::text, 'UTF8')
	  FROM (SELECT id_hash, convert_from(data, 'UTF8')::jsonb AS held FROM browser_sessions WHERE kind = 'page') v
	 WHERE s.id_hash = v.id_hash AND (v.held->>'logins')::jsonb->brand->>'subject' = person;
	GET DIAGNOSTICS n = ROW_COUNT;
	RETURN total + n;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION empty_brand(most integer, now timestamptz) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
	brand text := current_setting('countersign.brand');
	t text;
	n bigint;
BEGIN
	IF NOT brand_is_over(now) THEN
		RAISE EXCEPTION 'only a brand that was closed long ago is emptied';
	END IF;
	-- Their private halves go: they sign no more, and verify for ever.
	UPDATE signing_keys SET state = 'retired', changed_at = now WHERE brand_id = brand AND state IN ('current', 'next');
	GET DIAGNOSTICS n = ROW_COUNT;
	IF n > 0 THEN RETURN n; END IF;
	FOREACH t IN ARRAY ARRAY[ -- what names another stands before it
		'local_keys', 'api_keys', 'login_connections', 'webhook_deliveries', 'webhook_lines', 'webhook_endpoints',
		'pending_changes', 'api_replies', 'journeys', 'refresh_tokens', 'device_requests', 'consents', 'suspended_users',
		'code_attempts', 'status_entries', 'status_lists', 'notices', 'recoveries', 'invitations', 'memberships',
		'brand_logos', 'brand_domains', 'brand_agents'] LOOP
		EXECUTE format('DELETE FROM %1$I WHERE brand_id = $1 AND ctid = ANY (ARRAY(SELECT ctid FROM %1$I WHERE brand_id = $1 LIMIT $2))', t)
		  USING brand, most;
		GET DIAGNOSTICS n = ROW_COUNT;
		IF n > 0 THEN RETURN n; END IF;
	END LOOP;
	DELETE FROM one_time_links WHERE data->>'brand' = brand;
	GET DIAGNOSTICS n = ROW_COUNT;
	IF n > 0 THEN RETURN n; END IF;
	-- Grants stay without their people: the trail and receipts name them.
	UPDATE grants SET subject = tombstone(), agent_sub = tombstone(), seen = '{}', details = '[]', status_list = NULL, status_idx = NULL
	 WHERE brand_id = brand AND id IN (
	       SELECT id FROM grants WHERE brand_id = brand AND ended_at IS NOT NULL AND subject NOT LIKE 'erased:%' LIMIT most);
	GET DIAGNOSTICS n = ROW_COUNT;
	IF n > 0 THEN RETURN n; END IF;
	UPDATE brands SET name = id, organisation = '', description = '', support_url = '', privacy_url = '', connected_url = ''
	 WHERE id = brand AND (name, organisation, description, support_url, privacy_url, connected_url) <> (id, '', '', '', '', '');
	GET DIAGNOSTICS n = ROW_COUNT;
	RETURN n;
END
$$;
-- +goose StatementEnd
