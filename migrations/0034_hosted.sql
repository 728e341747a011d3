-- Where a hosted Brand's own agent is called, and what is said through us.
-- +goose Up
SET lock_timeout = '5s';

-- Owned by package tenants.
CREATE TABLE agent_endpoints (
	brand_id      text PRIMARY KEY REFERENCES brands,
	url           text NOT NULL CHECK (url ~ '^https?://' AND length(url) <= 2000),
	secret_sealed bytea NOT NULL,
	-- Until then the agent may still be checking with the former secret, so both
	-- sign.
	former_sealed bytea,
	former_until  timestamptz,
	changed_at    timestamptz NOT NULL,
	CHECK ((former_sealed IS NULL) = (former_until IS NULL))
);
ALTER TABLE agent_endpoints ENABLE ROW LEVEL SECURITY;
ALTER TABLE agent_endpoints FORCE ROW LEVEL SECURITY;
CREATE POLICY brand_fence ON agent_endpoints
	USING (brand_id = current_setting('countersign.brand', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON agent_endpoints TO countersign_app;

-- Owned by package authority, as turns are: a conversation belongs to one agent
-- and person and, once it ran as a Brand user, to that one (M23).
CREATE TABLE conversations (
	brand_id   text NOT NULL REFERENCES brands,
	id         uuid NOT NULL, -- the contextId
	agent      text NOT NULL,
	agent_sub  text NOT NULL,
	subject    text,          -- null: it never ran under a delegation token
	created_at timestamptz NOT NULL,
	used_at    timestamptz NOT NULL,
	PRIMARY KEY (brand_id, id)
);
CREATE INDEX conversations_by_age ON conversations (brand_id, used_at);
CREATE INDEX conversations_by_person ON conversations (brand_id, agent, agent_sub);
CREATE INDEX conversations_by_subject ON conversations (brand_id, subject) WHERE subject IS NOT NULL;
ALTER TABLE conversations ENABLE ROW LEVEL SECURITY;
ALTER TABLE conversations FORCE ROW LEVEL SECURITY;
CREATE POLICY brand_fence ON conversations
	USING (brand_id = current_setting('countersign.brand', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON conversations TO countersign_app;

-- A message, and what came of it. The Brand's agent may have acted as soon as it
-- was called, so it is called once: 'running' ends in one of the others, or in
-- nothing when nothing was sent, and whoever died on the way leaves it for ever.
CREATE TABLE turns (
	brand_id        text NOT NULL,
	conversation_id uuid NOT NULL,
	message_id      text NOT NULL CHECK (length(message_id) BETWEEN 1 AND 256),
	agent           text NOT NULL, -- the conversation's, for the limit
	agent_sub       text NOT NULL,
	state           text NOT NULL CHECK (state IN ('running', 'stepup', 'answered', 'replied', 'failed')),
	grant_id        uuid,          -- under whose token; null: there was none
	runs            integer NOT NULL DEFAULT 1,
	began_at        timestamptz NOT NULL,
	answer          text,          -- the Brand's, until it is countersigned
	reply           text,          -- as it was sent; null again after a day
	PRIMARY KEY (brand_id, conversation_id, message_id),
	FOREIGN KEY (brand_id, conversation_id) REFERENCES conversations (brand_id, id) ON DELETE CASCADE,
	CHECK ((answer IS NOT NULL) = (state = 'answered')),
	CHECK (reply IS NULL OR state = 'replied')
);
CREATE INDEX turns_by_person ON turns (brand_id, agent, agent_sub, began_at);
CREATE INDEX turns_by_age ON turns (brand_id, began_at) WHERE reply IS NOT NULL OR answer IS NOT NULL;
ALTER TABLE turns ENABLE ROW LEVEL SECURITY;
ALTER TABLE turns FORCE ROW LEVEL SECURITY;
CREATE POLICY brand_fence ON turns
	USING (brand_id = current_setting('countersign.brand', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON turns TO countersign_app;
