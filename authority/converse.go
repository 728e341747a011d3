package authority

import (
	"context"
	"errors"
	"fmt"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Reasons that a message does not reach the Brand's agent.
var (
	ErrContext = errors.New("the conversation is unknown, or not the caller's") // says no more (M23)
	ErrNoReply = errors.New("the message came before, and has no reply")        // it may yet; or send another
	// ErrSpent is an ErrNoReply of a message that the Brand's agent was called with, and
	// that came to nothing: it may have acted, and there will be no reply.
	ErrSpent = fmt.Errorf("%w, nor will it have one", ErrNoReply)
	// So many answers wait for their receipts that no more are asked for. The same
	// message may come again.
	ErrBacklog = fmt.Errorf("%w: too many answers wait for their receipts", ErrUnavailable)
)

// How much one person's agent may say to a Brand, and at once.
const (
	turnsPerPerson   = 60
	turnWindow       = time.Minute
	runningPerPerson = 8
	// What one agent may say in a turnWindow for whoever shows no permission, all whom
	// it names together: it invents them as it likes, and each message is a row or two
	// for a month. Five thousand people of one agent who say seven things in the same
	// hour to the same Brand are within it. Those who have allowed the agent something
	// at the Brand are not counted, nor kept waiting by the others.
	strangersPerAgent = 600
	// Nobody waits that long: whoever ran it has died.
	runningLife = 3 * time.Minute
	// Answers of a Brand that wait for their receipts, whoever spoke: beyond it nothing
	// is done that may have none.
	waitingMost = 10_000
)

// Heard is a message of an agent to a Brand whose interface we serve.
type Heard struct {
	Who       Caller
	Context   uuid.UUID // zero: it begins a conversation, or began one before
	MessageID string    // 1 to 256 characters
	Subject   string    // the Brand user of the token beside it; empty: there is none
	Grant     uuid.UUID // that token's; zero: there is none
	Hash      string    // of the message's text, as receiptlog.HashText; may be empty
}

// Exchange is a message that has its place in a conversation.
type Exchange struct {
	Context   uuid.UUID
	MessageID string
	Began     time.Time // when the agent was first called with it, or is now
	Reply     string    // not empty: what it was answered; nobody is called again
	Answer    string    // not empty: what the Brand's agent said, not countersigned yet
	Claims    []byte    // of the token that the answer was given under; KeepAnswer keeps them
	Answered  time.Time // when the answer was kept
	// MessageHash is of the text that was answered; KeepAnswer keeps it with the answer.
	MessageHash string
}

// Admit says whether the agent may speak to the Brand now: ErrAgentDisabled or
// ErrPaused if not.
func (a *Authority) Admit(ctx context.Context, brand *tenants.Brand, who Caller) error {
	const q = `
		SELECT state = 'active' AS open,
		       coalesce((SELECT enabled FROM agent_standing WHERE brand_id = @brand AND issuer = @agent), false) AS known
		  FROM brands WHERE id = @brand`
	r, err := tenants.One[struct{ Open, Known bool }](ctx, a.db, brand.ID, q, pgx.NamedArgs{"brand": brand.ID, "agent": who.Agent})
	switch {
	case err != nil:
		return fmt.Errorf("admit to %s: %w", brand.ID, err)
	case !r.Known:
		return ErrAgentDisabled
	case !r.Open:
		return ErrPaused
	}
	return nil
}

// Hear gives the message its place. Of any number of calls with one message id
// in a conversation, at whatever instance, exactly one gets an Exchange without
// Reply and Answer: it calls the Brand's agent and says with Keep or Drop what
// came of it. A message that ended in a step-up is heard again.
//
// A message without a context begins a conversation, once: whoever lost the reply
// never learned the context, so the same message of the same caller has its place in
// the conversation that it began.
//
// A conversation that is not this caller's, or ran as another Brand user, is
// ErrContext (M23), and so is a new message in one that has ended. A message that is
// under way or came to nothing is ErrNoReply, as is one that began a conversation
// which is shut to the caller now; too many are a *LimitError. While too many answers
// of the Brand wait for their receipts, what would need one is ErrBacklog.
func (a *Authority) Hear(ctx context.Context, brand tenants.BrandID, m Heard) (Exchange, error) {
	for again := false; ; again = true {
		x, err := a.hear(ctx, brand, m)
		limit := new(LimitError)
		switch {
		case err == nil:
			return x, nil
		case errors.Is(err, errBegun) && !again:
			continue
		case errors.Is(err, errBegun), errors.Is(err, ErrContext) && m.Context == uuid.Nil:
			return Exchange{}, ErrNoReply
		case errors.As(err, &limit), errors.Is(err, ErrContext), errors.Is(err, ErrNoReply), errors.Is(err, ErrBacklog):
			return Exchange{}, err
		}
		return Exchange{}, fmt.Errorf("hear a message at %s: %w", brand, err)
	}
}

// errBegun: the same message began its conversation at this very moment.
var errBegun = errors.New("the message has begun a conversation meanwhile")

func (a *Authority) hear(ctx context.Context, brand tenants.BrandID, m Heard) (Exchange, error) {
	now := a.clock()
	out := Exchange{Context: m.Context, MessageID: m.MessageID, Began: now, MessageHash: m.Hash}
	args := pgx.NamedArgs{
		"brand": brand, "agent": m.Who.Agent, "sub": m.Who.Sub, "message": m.MessageID,
		"subject": null(m.Subject), "grant": m.Grant, "now": now,
		"since": now.Add(-turnWindow), "living": now.Add(-runningLife),
	}
	err := a.db.Tx(ctx, brand, func(tx pgx.Tx) error {
		if m.Context == uuid.Nil {
			var err error
			if out.Context, err = begunBy(ctx, tx, args); errors.Is(err, pgx.ErrNoRows) {
				out.Context = newID()
				args["id"] = out.Context
				if err := room(ctx, tx, args, m.Grant); err != nil {
					return err
				}
				return begin(ctx, tx, args)
			} else if err != nil {
				return err
			}
		}
		args["id"] = out.Context
		closed, err := own(ctx, tx, args, m.Subject)
		if err != nil {
			return err
		}
		fresh, err := out.recall(ctx, tx, args, m.Grant)
		if err != nil || !fresh {
			return err
		}
		if closed {
			return ErrContext
		}
		if err := modestTalk(ctx, tx, args); err != nil {
			return err
		}
		if err := room(ctx, tx, args, m.Grant); err != nil {
			return err
		}
		// From here on it runs as this Brand user.
		const touch = `
			UPDATE conversations SET subject = coalesce(subject, @subject), used_at = @now
			 WHERE brand_id = @brand AND id = @id`
		if _, err := tx.Exec(ctx, touch, args); err != nil {
			return err
		}
		return run(ctx, tx, args)
	})
	return out, err
}

// begunBy finds the conversation that the message began when it came before.
func begunBy(ctx context.Context, tx pgx.Tx, args pgx.NamedArgs) (id uuid.UUID, err error) {
	const q = `
		SELECT conversation_id FROM turns
		 WHERE brand_id = @brand AND agent = @agent AND agent_sub = @sub AND message_id = @message AND opens`
	err = tx.QueryRow(ctx, q, args).Scan(&id)
	return id, err
}

// begin begins a conversation with the message, or is errBegun.
func begin(ctx context.Context, tx pgx.Tx, args pgx.NamedArgs) error {
	if err := modestTalk(ctx, tx, args); err != nil {
		return err
	}
	// The constraint waits for whoever is at it, and has the last word.
	const q = `
		WITH begun AS (
			INSERT INTO conversations (brand_id, id, agent, agent_sub, subject, created_at, used_at)
			VALUES (@brand, @id, @agent, @sub, @subject, @now, @now))
		INSERT INTO turns (brand_id, conversation_id, message_id, agent, agent_sub, state, grant_id, began_at, opens)
		VALUES (@brand, @id, @message, @agent, @sub, 'running', nullif(@grant, '00000000-0000-0000-0000-000000000000'::uuid), @now, true)
		ON CONFLICT DO NOTHING`
	tag, err := tx.Exec(ctx, q, args)
	if err == nil && tag.RowsAffected() == 0 {
		return errBegun
	}
	return err
}

// room is ErrBacklog where what the message leads to would wait behind too much.
// Without a grant it needs no receipt.
func room(ctx context.Context, tx pgx.Tx, args pgx.NamedArgs, grant uuid.UUID) error {
	if grant == uuid.Nil {
		return nil
	}
	const q = `
		SELECT count(*) FROM (
		       SELECT FROM turns WHERE brand_id = @brand AND state = 'answered' AND settled_at IS NULL LIMIT @most) w`
	var waiting int
	err := tx.QueryRow(ctx, q, pgx.NamedArgs{"brand": args["brand"], "most": waitingMost}).Scan(&waiting)
	if err == nil && waiting >= waitingMost {
		err = ErrBacklog
	}
	return err
}

func null(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// own locks the conversation, so that its messages find their place one after the
// other, and reports whether it has ended.
func own(ctx context.Context, tx pgx.Tx, args pgx.NamedArgs, subject string) (closed bool, err error) {
	const q = `
		SELECT subject, closed_at IS NOT NULL FROM conversations
		 WHERE brand_id = @brand AND id = @id AND agent = @agent AND agent_sub = @sub
		   FOR UPDATE`
	var locked *string
	err = tx.QueryRow(ctx, q, args).Scan(&locked, &closed)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && locked != nil && *locked != subject {
		return false, ErrContext
	}
	return closed, err
}

// recall finds what came of the message before. It reports whether it may run.
func (x *Exchange) recall(ctx context.Context, tx pgx.Tx, args pgx.NamedArgs, grant uuid.UUID) (fresh bool, err error) {
	const q = `
		SELECT state, coalesce(grant_id, '00000000-0000-0000-0000-000000000000'::uuid), began_at,
		       coalesce(answer, ''), coalesce(reply, ''), claims, coalesce(answered_at, began_at), coalesce(message_hash, '')
		  FROM turns WHERE brand_id = @brand AND conversation_id = @id AND message_id = @message`
	var state string
	var under uuid.UUID
	began := x.Began
	var claims *string
	var hash string
	err = tx.QueryRow(ctx, q, args).Scan(&state, &under, &began, &x.Answer, &x.Reply, &claims, &x.Answered, &hash)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return true, nil
	case err != nil:
		return false, err
	case state == "stepup":
		return true, nil
	// What was said under one grant is countersigned under no other.
	case x.Reply != "", x.Answer != "" && under == grant:
		x.Began, x.MessageHash = began, hash // of what was answered, whatever it says now
		if claims != nil {
			x.Claims = []byte(*claims)
		}
		return false, nil
	case state == "failed":
		return false, ErrSpent
	}
	return false, ErrNoReply
}

// modestTalk is a *LimitError where the person's agent says too much, or without a
// permission the agent does for all its people together.
func modestTalk(ctx context.Context, tx pgx.Tx, args pgx.NamedArgs) error {
	const q = `
		SELECT coalesce(sum(runs) FILTER (WHERE began_at > @since), 0),
		       count(*) FILTER (WHERE state = 'running'),
		       CASE WHEN @grant = '00000000-0000-0000-0000-000000000000'::uuid THEN (
		            SELECT coalesce(sum(runs), 0) FROM turns
		             WHERE brand_id = @brand AND agent = @agent AND grant_id IS NULL AND began_at > @since)
		       ELSE 0 END
		  FROM turns
		 WHERE brand_id = @brand AND agent = @agent AND agent_sub = @sub AND began_at > @living`
	var recent, running, strangers int
	if err := tx.QueryRow(ctx, q, args).Scan(&recent, &running, &strangers); err != nil {
		return err
	}
	switch {
	case strangers >= strangersPerAgent:
		return &LimitError{What: "messages", RetryAfter: turnWindow}
	case recent >= turnsPerPerson:
		return &LimitError{What: "messages", RetryAfter: turnWindow}
	case running >= runningPerPerson:
		return &LimitError{What: "messages at once", RetryAfter: time.Second}
	}
	return nil
}

func run(ctx context.Context, tx pgx.Tx, args pgx.NamedArgs) error {
	const q = `
		INSERT INTO turns AS t (brand_id, conversation_id, message_id, agent, agent_sub, state, grant_id, began_at)
		VALUES (@brand, @id, @message, @agent, @sub, 'running', nullif(@grant, '00000000-0000-0000-0000-000000000000'::uuid), @now)
		ON CONFLICT (brand_id, conversation_id, message_id) DO UPDATE
		   SET state = 'running', grant_id = excluded.grant_id, began_at = excluded.began_at, runs = t.runs + 1
		 WHERE t.state = 'stepup'`
	tag, err := tx.Exec(ctx, q, args)
	if err == nil && tag.RowsAffected() == 0 {
		return ErrNoReply
	}
	return err
}
