-- +goose NO TRANSACTION
-- Owned by package authority: a person of many receipts is erased, and a checkpoint is
-- kept under every name that its log had. Each step may be done twice: what broke off
-- goes on.
-- +goose Up
SET lock_timeout = '5s';

-- What erase_receipts does, up to most at a time; 0: nothing is left. In one
-- statement a person with a hundred thousand receipts outlasts the time that a
-- statement has, every time anew, and is never erased. erase_receipts stays for
-- those who still run the version before.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION erase_some_receipts(person text, most integer) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
	brand text := current_setting('countersign.brand');
	theirs uuid[];
	n bigint;
BEGIN
	IF coalesce(person, '') = '' THEN
		RAISE EXCEPTION 'a person is named';
	END IF;
	theirs := ARRAY(SELECT id FROM grants WHERE brand_id = brand AND subject = person);
	-- By context_id, which goes with the rest: it stands in the index receipts_once,
	-- so that a batch does not read again what the former ones emptied.
	UPDATE receipts SET context_id = NULL, message_id = NULL, content = NULL, jws = NULL, salt = NULL
	 WHERE brand_id = brand AND seq = ANY (ARRAY(
	       SELECT seq FROM receipts WHERE brand_id = brand AND grant_id = ANY (theirs) AND context_id IS NOT NULL LIMIT most));
	GET DIAGNOSTICS n = ROW_COUNT;
	IF n > 0 THEN RETURN n; END IF;
	DELETE FROM task_receipts
	 WHERE brand_id = brand AND ctid = ANY (ARRAY(SELECT ctid FROM task_receipts WHERE brand_id = brand AND grant_id = ANY (theirs) LIMIT most));
	GET DIAGNOSTICS n = ROW_COUNT;
	IF n > 0 THEN RETURN n; END IF;
	DELETE FROM turns_accepted
	 WHERE brand_id = brand AND ctid = ANY (ARRAY(SELECT ctid FROM turns_accepted WHERE brand_id = brand AND grant_id = ANY (theirs) LIMIT most));
	GET DIAGNOSTICS n = ROW_COUNT;
	RETURN n;
END
$$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION erase_some_receipts FROM PUBLIC;
GRANT EXECUTE ON FUNCTION erase_some_receipts TO countersign_app;

-- The name of the log, which a checkpoint is signed with; empty: it was kept before
-- this column, or by a version that does not know it, and only the JWS says it. When
-- a Brand moves, the log is named anew, and the same key signs the same root again.
ALTER TABLE log_checkpoints ADD COLUMN IF NOT EXISTS log text NOT NULL DEFAULT '';
SET lock_timeout = 0; -- it waits for everybody who writes now, and keeps nobody waiting
DROP INDEX CONCURRENTLY IF EXISTS log_checkpoints_named;
CREATE UNIQUE INDEX CONCURRENTLY log_checkpoints_named ON log_checkpoints (brand_id, size, kid, log);
SET lock_timeout = '5s';
ALTER TABLE log_checkpoints DROP CONSTRAINT log_checkpoints_pkey, ADD CONSTRAINT log_checkpoints_pkey PRIMARY KEY USING INDEX log_checkpoints_named;
