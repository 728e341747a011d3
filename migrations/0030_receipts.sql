-- Owned by package authority: receipts of what was done under grants, and the log
-- of each Brand in which they stand in order.
-- +goose Up
SET lock_timeout = '5s';

-- Where a Brand's log stands. Its row is locked while something is appended, and
-- by nothing else, so that Brands do not wait for one another.
CREATE TABLE log_heads (
	brand_id text PRIMARY KEY REFERENCES brands,
	size     bigint NOT NULL CHECK (size >= 0),
	edge     bytea NOT NULL, -- roots of the complete subtrees, the largest first
	last     bytea NOT NULL, -- the last leaf's hash; empty: nothing was logged yet
	last_at  timestamptz     -- when that was logged
) WITH (fillfactor = 50);

-- A line of the log and the receipt that it is of. Entry and hashes are for ever;
-- what names a person or a conversation goes when that is erased, and then the
-- entry says nothing of it any more. No foreign key to grants, which are never
-- deleted: it would make the log wait for whoever locks a grant.
CREATE TABLE receipts (
	brand_id   text NOT NULL REFERENCES brands,
	seq        bigint NOT NULL CHECK (seq >= 0), -- the leaf's index
	grant_id   uuid NOT NULL,
	context_id text,
	message_id text,
	content    bytea,                            -- digest of what a retry must repeat
	at         timestamptz NOT NULL,             -- the receipt's ts
	late       boolean NOT NULL,
	jws        text,
	salt       bytea,
	entry      text NOT NULL,
	hashes     bytea NOT NULL,                   -- of the tree, that this leaf completed, upwards from its own
	PRIMARY KEY (brand_id, seq),
	CHECK (num_nulls(context_id, message_id, content, jws, salt) IN (0, 5))
);
-- A turn has one receipt, and no two turns of a grant have the same claims.
CREATE UNIQUE INDEX receipts_once ON receipts (brand_id, grant_id, context_id, message_id);
CREATE UNIQUE INDEX receipts_apart ON receipts (brand_id, grant_id, at);

-- What the log was at every size that was ever signed. That there is one root for
-- one size is the key; who signed it, and when, may be several.
CREATE TABLE log_roots (
	brand_id text NOT NULL REFERENCES brands,
	size     bigint NOT NULL CHECK (size >= 0),
	root     bytea NOT NULL CHECK (octet_length(root) = 32),
	PRIMARY KEY (brand_id, size)
);
CREATE TABLE log_checkpoints (
	brand_id  text NOT NULL REFERENCES brands,
	size      bigint NOT NULL,
	kid       text NOT NULL,
	signed_at timestamptz NOT NULL,
	jws       text NOT NULL,
	PRIMARY KEY (brand_id, size, kid),
	FOREIGN KEY (brand_id, size) REFERENCES log_roots (brand_id, size)
);

-- The receipts of a conversation, bound together: one for every number of them at
-- which somebody asked.
CREATE TABLE task_receipts (
	brand_id   text NOT NULL REFERENCES brands,
	grant_id   uuid NOT NULL,
	context_id text NOT NULL,
	count      bigint NOT NULL CHECK (count > 0),
	at         timestamptz NOT NULL,
	jws        text NOT NULL,
	PRIMARY KEY (brand_id, grant_id, context_id, count)
);

-- Turns that were good when their Brand came with them, while nothing could be
-- signed: who comes again with the same is not told that it is too late by now.
CREATE TABLE turns_accepted (
	brand_id    text NOT NULL REFERENCES brands,
	grant_id    uuid NOT NULL,
	context_id  text NOT NULL,
	message_id  text NOT NULL,
	content     bytea NOT NULL,
	accepted_at timestamptz NOT NULL,
	PRIMARY KEY (brand_id, grant_id, context_id, message_id)
);
CREATE INDEX turns_accepted_by_age ON turns_accepted (brand_id, accepted_at);

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
	FOREACH t IN ARRAY ARRAY['log_heads', 'receipts', 'log_roots', 'log_checkpoints', 'task_receipts', 'turns_accepted'] LOOP
		EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
		EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
		EXECUTE format('CREATE POLICY brand_fence ON %I USING (brand_id = current_setting(''countersign.brand'', true))', t);
	END LOOP;
END
$$;
-- +goose StatementEnd

-- A log only grows, whoever writes to it.
-- +goose StatementBegin
CREATE FUNCTION log_grows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.brand_id <> OLD.brand_id OR NEW.size <= OLD.size THEN
		RAISE EXCEPTION 'a log only grows';
	END IF;
	RETURN NEW;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER log_grows BEFORE UPDATE ON log_heads FOR EACH ROW EXECUTE FUNCTION log_grows();

GRANT SELECT, INSERT, UPDATE ON log_heads TO countersign_app;
GRANT SELECT, INSERT ON receipts, log_roots, log_checkpoints, task_receipts TO countersign_app; -- append only
GRANT SELECT, INSERT, DELETE ON turns_accepted TO countersign_app;

-- Takes what names a person or a conversation out of one user's receipts, and
-- returns how many those were. To be called before erase_person, which forgets
-- whose grants they are.
-- +goose StatementBegin
CREATE FUNCTION erase_receipts(person text) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
	brand text := current_setting('countersign.brand');
	n bigint;
	total bigint := 0;
BEGIN
	IF coalesce(person, '') = '' THEN
		RAISE EXCEPTION 'a person is named';
	END IF;
	UPDATE receipts SET context_id = NULL, message_id = NULL, content = NULL, jws = NULL, salt = NULL
	 WHERE brand_id = brand AND jws IS NOT NULL
	   AND grant_id IN (SELECT id FROM grants WHERE brand_id = brand AND subject = person);
	GET DIAGNOSTICS n = ROW_COUNT; total := total + n;
	DELETE FROM task_receipts
	 WHERE brand_id = brand AND grant_id IN (SELECT id FROM grants WHERE brand_id = brand AND subject = person);
	GET DIAGNOSTICS n = ROW_COUNT; total := total + n;
	DELETE FROM turns_accepted
	 WHERE brand_id = brand AND grant_id IN (SELECT id FROM grants WHERE brand_id = brand AND subject = person);
	GET DIAGNOSTICS n = ROW_COUNT;
	RETURN total + n;
END
$$;
-- +goose StatementEnd

-- The same of a Brand that was closed long ago, up to most at a time; 0: nothing
-- is left.
-- +goose StatementBegin
CREATE FUNCTION empty_receipts(most integer, now timestamptz) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
	brand text := current_setting('countersign.brand');
	n bigint;
BEGIN
	IF NOT brand_is_over(now) THEN
		RAISE EXCEPTION 'only a brand that was closed long ago is emptied';
	END IF;
	UPDATE receipts SET context_id = NULL, message_id = NULL, content = NULL, jws = NULL, salt = NULL
	 WHERE brand_id = brand AND seq IN (SELECT seq FROM receipts WHERE brand_id = brand AND jws IS NOT NULL LIMIT most);
	GET DIAGNOSTICS n = ROW_COUNT;
	IF n > 0 THEN RETURN n; END IF;
	DELETE FROM task_receipts
	 WHERE brand_id = brand AND ctid = ANY (ARRAY(SELECT ctid FROM task_receipts WHERE brand_id = brand LIMIT most));
	GET DIAGNOSTICS n = ROW_COUNT;
	IF n > 0 THEN RETURN n; END IF;
	DELETE FROM turns_accepted
	 WHERE brand_id = brand AND ctid = ANY (ARRAY(SELECT ctid FROM turns_accepted WHERE brand_id = brand LIMIT most));
	GET DIAGNOSTICS n = ROW_COUNT;
	RETURN n;
END
$$;
-- +goose StatementEnd

REVOKE EXECUTE ON FUNCTION erase_receipts, empty_receipts FROM PUBLIC;
GRANT EXECUTE ON FUNCTION erase_receipts, empty_receipts TO countersign_app;
