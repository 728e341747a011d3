-- Owned by package authority, but for the columns of brands and for brand_urls,
-- which are tenants': a Brand goes for good, and one person's data is erased. What
-- the service may do here and nowhere else, it does through these functions.
-- +goose Up
SET lock_timeout = '5s';

ALTER TABLE brands
	ADD COLUMN closed_at  timestamptz, -- set: it is closed, and that is final
	ADD COLUMN emptied_at timestamptz, -- set: nothing personal is left of it
	ADD CONSTRAINT brands_emptied_after_closing CHECK (emptied_at IS NULL OR closed_at IS NOT NULL);
UPDATE brands SET closed_at = now() WHERE state = 'closed';

-- Every interface URL and issuer that a Brand ever had. Signed things name them
-- for ever, so nobody else may have them after it, whether it moved or closed.
CREATE TABLE brand_urls (
	url      text PRIMARY KEY,
	brand_id text NOT NULL REFERENCES brands
);
ALTER TABLE brand_urls ENABLE ROW LEVEL SECURITY;
ALTER TABLE brand_urls FORCE ROW LEVEL SECURITY;
CREATE POLICY brand_fence ON brand_urls
	USING (brand_id = current_setting('countersign.brand', true));
-- The trigger must see other Brands' rows; it runs with its owner's rights.
CREATE POLICY own_rows ON brand_urls TO CURRENT_USER USING (true);
INSERT INTO brand_urls SELECT interface_url, id FROM brands UNION SELECT issuer, id FROM brands;
GRANT SELECT ON brand_urls TO countersign_app;

-- +goose StatementBegin
CREATE FUNCTION brand_urls_stay() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
	INSERT INTO brand_urls VALUES (NEW.interface_url, NEW.id), (NEW.issuer, NEW.id) ON CONFLICT (url) DO NOTHING;
	IF EXISTS (SELECT FROM brand_urls WHERE url IN (NEW.interface_url, NEW.issuer) AND brand_id <> NEW.id) THEN
		RAISE unique_violation USING MESSAGE = 'another brand has, or had, this URL';
	END IF;
	RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER brand_urls_stay AFTER INSERT OR UPDATE OF interface_url, issuer ON brands
	FOR EACH ROW EXECUTE FUNCTION brand_urls_stay();

-- A name that leads back to nobody, another one for each row.
CREATE FUNCTION tombstone() RETURNS text LANGUAGE sql VOLATILE AS $$ SELECT 'erased:' || gen_random_uuid() $$;

-- Takes a person's data out of everything but the trail, in whichever package's
-- table it stands, and returns how many rows that were. Their grants have ended
-- before, in the same transaction.
-- +goose StatementBegin
CREATE FUNCTION erase_person(person text) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
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
	   SET agent_sub = tombstone(), reason = '',
	       expected_subject = CASE WHEN expected_subject IS NOT NULL THEN tombstone() END
	 WHERE r.brand_id = brand
	   AND (r.expected_subject = person
	    OR r.grant_id IN (SELECT id FROM grants WHERE brand_id = brand AND subject = person)
	    OR r.id IN (SELECT request_id FROM consents WHERE brand_id = brand AND subject = person));
	GET DIAGNOSTICS n = ROW_COUNT; total := total + n;
	-- The hash of what they saw also stands in the trail.
	UPDATE consents SET subject = tombstone(), record = '{}' WHERE brand_id = brand AND subject = person;
	GET DIAGNOSTICS n = ROW_COUNT; total := total + n;
	UPDATE grants SET subject = tombstone(), agent_sub = tombstone(), seen = '{}' WHERE brand_id = brand AND subject = person;
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

-- The one way in which a written fact changes: who and what go, of facts about
-- this person between two places, and the line that says so is written with it.
-- It names the places and not the person. It returns how many they were.
-- +goose StatementBegin
CREATE FUNCTION audit_erase(person text, after bigint, upto bigint, at timestamptz, actor text, actor_id text, channel text, trace text)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
	brand text := current_setting('countersign.brand');
	places bigint[];
BEGIN
	IF coalesce(person, '') = '' THEN
		RAISE EXCEPTION 'a person is named';
	END IF;
	WITH gone AS (
		UPDATE audit_events e SET actor_id = '', detail = '{}', salt = NULL
		 WHERE e.brand_id = brand AND e.seq > after AND e.seq <= upto AND e.salt IS NOT NULL
		   AND (e.actor = 'user' AND e.actor_id = person OR e.detail->>'subject' = person)
		RETURNING e.seq
	)
	SELECT array_agg(g.seq ORDER BY g.seq) INTO places FROM gone g;
	IF places IS NOT NULL THEN
		INSERT INTO audit_events (brand_id, at, actor, actor_id, channel, event, trace, detail)
		VALUES (brand, audit_erase.at, audit_erase.actor, audit_erase.actor_id, audit_erase.channel, 'user.erased',
		        audit_erase.trace, json_build_object('seqs', places));
	END IF;
	RETURN coalesce(cardinality(places), 0);
END
$$;
-- +goose StatementEnd

-- Whether the Brand is closed for so long that its data goes.
CREATE FUNCTION brand_is_over(now timestamptz) RETURNS boolean LANGUAGE sql STABLE AS $$
	SELECT EXISTS (SELECT FROM brands
	                WHERE id = current_setting('countersign.brand') AND state = 'closed'
	                  AND closed_at <= now - interval '30 days' AND emptied_at IS NULL)
$$;

-- Empties up to most rows of the first table in which there are some, and returns
-- how many; 0: nothing is left. Public keys, the trail, what the Brand offered and
-- its own row stay: nothing that was ever signed loses its sense.
-- +goose StatementBegin
CREATE FUNCTION empty_brand(most integer, now timestamptz) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
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
	UPDATE grants SET subject = tombstone(), agent_sub = tombstone(), seen = '{}', status_list = NULL, status_idx = NULL
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

-- Who and what go from the trail of such a Brand, between two places.
-- +goose StatementBegin
CREATE FUNCTION audit_empty(after bigint, upto bigint, now timestamptz) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
	n bigint;
BEGIN
	IF NOT brand_is_over(now) THEN
		RAISE EXCEPTION 'only the trail of a brand that was closed long ago is emptied';
	END IF;
	UPDATE audit_events SET actor_id = '', detail = '{}', salt = NULL
	 WHERE brand_id = current_setting('countersign.brand') AND seq > after AND seq <= upto AND salt IS NOT NULL;
	GET DIAGNOSTICS n = ROW_COUNT;
	RETURN n;
END
$$;
-- +goose StatementEnd

REVOKE EXECUTE ON FUNCTION erase_person, audit_erase, empty_brand, audit_empty FROM PUBLIC;
GRANT EXECUTE ON FUNCTION erase_person, audit_erase, empty_brand, audit_empty TO countersign_app;
