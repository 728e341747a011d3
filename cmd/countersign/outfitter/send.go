package outfitter

import (
	"context"
	"errors"
	"net/http"
	"time"

	"countersign.dev/authority/a2a/surface"
	"countersign.dev/authority/verify"
	"github.com/google/uuid"
)

// send is POST message:send, behind the door: who calls is known.
func (s *Shop) send(w http.ResponseWriter, r *http.Request) error {
	m, err := surface.ReadMessage(w, r)
	if err != nil {
		return err
	}
	c, _ := verify.CallFrom(r.Context())
	id, one, err := s.talks.hear(c, m)
	if err != nil {
		return err
	}
	// Whoever sent the message may go away: it comes again and finds the reply.
	reply, err := s.answer(context.WithoutCancel(r.Context()), c, id, one, m)
	if err != nil {
		return err
	}
	surface.Write(w, http.StatusOK, reply)
	return nil
}

// answer is what the message is answered, from memory or anew. What was done is
// done: when the same message comes again it is countersigned as it was, whatever
// the message says by now, or the person.
func (s *Shop) answer(ctx context.Context, c verify.Call, id uuid.UUID, one *turn, m surface.Message) ([]byte, error) {
	done := s.talks.look(one)
	switch done.state {
	case replied:
		return done.reply, nil
	case acted:
	default:
		does, asked := understand(m.Text)
		if asked {
			if missing := c.Missing(does.scope); len(missing) > 0 {
				return s.askBack(ctx, c, id, one, does, missing)
			}
		}
		if err := s.mayAct(ctx, c, one); err != nil {
			return nil, err
		}
		// Here a real shop does it.
		done = s.talks.acted(one, c, does, m.Text)
	}
	var receipt *surface.Receipt
	if c.Delegation != nil {
		got, err := s.countersign(ctx, done.served(id, m.ID))
		if err != nil {
			return nil, err
		}
		receipt = &surface.Receipt{JWS: got.JWS, Claims: got.Claims}
	}
	reply, err := surface.Reply(id.String(), done.says.text, receipt)
	if err != nil {
		return nil, err
	}
	return s.talks.replied(one, reply), nil
}

// askBack has the person asked for what is missing (M22). Where no link is to be
// had the agent's own device flow leads to the same grant.
func (s *Shop) askBack(ctx context.Context, c verify.Call, id uuid.UUID, one *turn, does skill, missing []string) ([]byte, error) {
	defer s.talks.waits(one)
	more, err := s.door.StepUp(ctx, c, does.reason, missing...)
	if err != nil {
		s.Log.WarnContext(ctx, "no link for the person", "error", err)
	}
	return surface.StepUp(id.String(), "I can do that once you have allowed it.", missing, more.Link, time.Now())
}

// mayAct keeps to it that what is done under a delegation has a receipt: where no more
// may wait for theirs, nothing is done, and the message is heard again.
func (s *Shop) mayAct(ctx context.Context, c verify.Call, one *turn) error {
	if c.Delegation == nil {
		return nil
	}
	if err := s.pending.Ready(); err != nil {
		s.talks.waits(one)
		s.Log.WarnContext(ctx, "nothing is done until receipts are to be had", "error", err)
		return surface.ErrAway
	}
	return nil
}

// served is what was done as it is countersigned.
func (t turn) served(id uuid.UUID, message string) verify.Served {
	out := verify.Served{Call: t.under, Turn: verify.Turn{ContextID: id.String(), MessageID: message, Began: t.began, MessageHash: t.heard.hash(), ReplyHash: t.says.hash()}}
	if does := t.does; does.scope != "" {
		out.Turn.ScopesUsed = []string{does.scope}
		out.Turn.Acts = []verify.Act{{Tool: does.tool, Args: map[string]string{"customer": t.under.Delegation.User}}}
	}
	return out
}

// countersign makes the receipt of what was done (M24); asking again for the same
// turn gives the same. Where it cannot be had now the turn waits for it.
func (s *Shop) countersign(ctx context.Context, done verify.Served) (verify.Countersigned, error) {
	got, err := s.pending.Countersign(ctx, done.Call, done.Turn)
	if errors.Is(err, verify.ErrUnavailable) {
		s.Log.WarnContext(ctx, "a turn waits for its receipt", "error", err)
		return got, surface.ErrAway
	}
	return got, err
}

// settled hears what became of a turn that waited: the message that comes again finds
// its reply, with the receipt.
func (s *Shop) settled(ctx context.Context, done verify.Served, o verify.Outcome) {
	if o.Err != nil {
		s.Log.ErrorContext(ctx, "what was done has no receipt for good", "grant", done.Call.Delegation.Grant, "error", o.Err)
		return
	}
	id, err := uuid.Parse(done.Turn.ContextID)
	if err != nil {
		return // no conversation of ours
	}
	one := s.talks.find(id, done.Turn.MessageID)
	if one == nil {
		return // forgotten meanwhile; the log has its receipt
	}
	reply, err := surface.Reply(id.String(), s.talks.look(one).says.text, &surface.Receipt{JWS: o.Receipt.JWS, Claims: o.Receipt.Claims})
	if err != nil {
		s.Log.ErrorContext(ctx, "no reply with a receipt that came late", "error", err)
		return
	}
	s.talks.replied(one, reply)
}
