-- +goose Up

-- An answer that waits for its receipt is countersigned by what the turn was made
-- with, and as of then: the same message may come again with a token that holds less
-- by now, or long after the first one's end. Nullable: versions before this one keep
-- an answer without them.
ALTER TABLE turns
	ADD COLUMN claims      text,        -- of the delegation token beside the message, never its signature; gone with the answer
	ADD COLUMN answered_at timestamptz; -- when the answer was kept
