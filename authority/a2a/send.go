package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/a2a/surface"
	"countersign.dev/authority/receiptlog"
	"countersign.dev/web"
	"github.com/google/uuid"
)

// send is POST {interface}/message:send.
func (h *Interface) send(w http.ResponseWriter, r *http.Request, c call) error {
	m, err := surface.ReadMessage(w, r)
	if err != nil {
		return err
	}
	stranger := c.standing == nil
	if !h.busy.begin(c.brand.ID, c.who, stranger) {
		return &authority.LimitError{What: "messages to this Brand", RetryAfter: time.Second}
	}
	defer h.busy.end(c.brand.ID, c.who, stranger)
	// An agent may take longer than other answers do.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(h.caller.patience + settleTime))

	heard := authority.Heard{Who: c.who, Context: m.Context, MessageID: m.ID, Hash: receiptlog.HashText(m.Text)}
	if c.standing != nil {
		heard.Subject, heard.Grant = c.standing.Subject, c.standing.GrantID
	}
	x, err := h.rules.Hear(r.Context(), c.brand.ID, heard)
	if err != nil {
		return err
	}
	// From here on the Brand's agent may act. Whoever sent the message may go
	// away: he comes again with the same and finds the reply.
	ctx := context.WithoutCancel(web.Lasting(r))
	reply, err := h.reply(ctx, c, x, m.Text)
	if err != nil {
		return err
	}
	surface.Write(w, http.StatusOK, []byte(reply))
	return nil
}

// settleTime bounds what we do ourselves once the Brand's agent has answered.
const settleTime = 10 * time.Second

// reply is what the message is answered, from memory or by the Brand's agent.
func (h *Interface) reply(ctx context.Context, c call, x authority.Exchange, text string) (string, error) {
	var answer Answer
	var err error
	switch {
	case x.Reply != "":
		h.count.turns.WithLabelValues("repeated").Inc()
		return x.Reply, nil
	case x.Answer != "":
		if answer, err = ParseAnswer([]byte(x.Answer)); err != nil {
			return "", fmt.Errorf("read what was kept: %w", err)
		}
	default:
		if answer, err = h.ask(ctx, c, x, text); err != nil {
			return "", err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	if len(answer.Missing) > 0 {
		return h.stepUp(ctx, c, x, answer)
	}
	return h.served(ctx, c, x, answer)
}

// ask calls the Brand's agent.
func (h *Interface) ask(ctx context.Context, c call, x authority.Exchange, text string) (Answer, error) {
	t := Turn{
		Type: "turn", ContextID: x.Context.String(), MessageID: x.MessageID, Text: text,
		Agent: Speaker{Issuer: c.who.Agent, Host: host(c.who.Agent), Sub: c.who.Sub},
	}
	if s := c.standing; s != nil {
		t.User, t.Scopes = &User{Sub: s.Subject, GrantID: s.GrantID.String()}, s.Scopes
		t.Details = s.Details.Values()
	}
	began := time.Now()
	answer, err := h.caller.call(ctx, c.brand.ID, t)
	h.count.took.Observe(time.Since(began).Seconds())
	if err == nil {
		return answer, nil
	}
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	if !errors.Is(err, errSpent) {
		// Nothing was sent, so the same message may come again.
		h.count.turns.WithLabelValues("unsent").Inc()
		h.log.WarnContext(ctx, "a brand's agent was not called", "brand", string(c.brand.ID), "error", err)
		return Answer{}, errors.Join(unsent(err), h.rules.Drop(ctx, c.brand.ID, x))
	}
	h.count.turns.WithLabelValues("failed").Inc()
	h.log.WarnContext(ctx, "a brand's agent failed", "brand", string(c.brand.ID), "error", err)
	return Answer{}, errors.Join(errAgent, h.rules.KeepFailure(ctx, c.brand.ID, x))
}

var (
	errAgent = surface.Internal("The Brand's agent gave no good answer. It may have acted; this message is not sent again.")
	errLost  = surface.Internal("The Brand's agent has answered, and that could not be kept. It may have acted; this message is not sent again.")
	errReach = surface.Internal("The Brand's agent could not be reached. Nothing was sent to it.")
)

// unsent is what is said where nothing was sent: our own trouble stays that.
func unsent(err error) error {
	if errors.Is(err, errUnsent) {
		return errReach
	}
	return err
}

// host is the host of an issuer, which its key has proved to be its own.
func host(issuer string) string {
	u, err := url.Parse(issuer)
	if err != nil {
		return ""
	}
	return u.Host
}

// served turns the answer into a reply, under a token with its receipt (M24).
func (h *Interface) served(ctx context.Context, c call, x authority.Exchange, answer Answer) (string, error) {
	if x.Answer == "" { // what was kept was judged before, by what was allowed then
		if err := h.exceeded(ctx, c, x, answer); err != nil {
			return "", err
		}
	}
	var countersigned *surface.Receipt
	if c.standing != nil {
		receipt, err := h.receipt(ctx, c, x, answer)
		if err != nil {
			return "", err
		}
		countersigned = &surface.Receipt{JWS: receipt.JWS, Claims: receipt.Claims}
	}
	kept, err := h.keep(ctx, c, x, answer, countersigned)
	if err == nil {
		h.count.turns.WithLabelValues("replied").Inc()
	}
	return kept, err
}

// exceeded is an incident where the agent says it used more than the token
// allows: there is no reply, and no receipt.
func (h *Interface) exceeded(ctx context.Context, c call, x authority.Exchange, answer Answer) error {
	var allowed []string
	var grant uuid.UUID
	if c.standing != nil {
		allowed, grant = c.standing.Scopes, c.standing.GrantID
	}
	beyond := slices.DeleteFunc(slices.Clone(answer.ScopesUsed), func(s string) bool { return slices.Contains(allowed, s) })
	if len(beyond) == 0 {
		return nil
	}
	h.count.turns.WithLabelValues("exceeded").Inc()
	h.log.WarnContext(ctx, "a brand's agent used more than was allowed", "brand", string(c.brand.ID), "grant", grant)
	return errors.Join(errAgent, h.rules.Exceeded(ctx, c.brand, x, c.who, grant, beyond))
}

// receipt countersigns the answer, by what the turn was made with. Where that cannot
// be done now, both are kept, and the same message gets its receipt when it comes
// again, with whatever token of the grant.
func (h *Interface) receipt(ctx context.Context, c call, x authority.Exchange, answer Answer) (authority.Receipt, error) {
	if x.Answer == "" {
		kept, err := json.Marshal(answer)
		if err != nil {
			return authority.Receipt{}, fmt.Errorf("write an answer: %w", err)
		}
		x.Claims = c.payload
		if err := h.rules.KeepAnswer(ctx, c.brand.ID, &x, string(kept)); err != nil {
			h.count.turns.WithLabelValues("failed").Inc()
			h.log.ErrorContext(ctx, "an answer could not be kept", "brand", string(c.brand.ID), "error", err)
			return authority.Receipt{}, errLost
		}
	}
	if x.Claims == nil { // an earlier version kept the answer alone
		x.Claims, x.Began = c.payload, latest(x.Began, c.standing.Issued)
	}
	receipt, err := h.countersign(ctx, c.brand, answer.turn(c.who.Agent, x))
	if !authority.IsRefusal(err) { // it may have its receipt yet
		return receipt, err
	}
	h.count.turns.WithLabelValues("failed").Inc()
	h.log.WarnContext(ctx, "a turn could not be countersigned", "brand", string(c.brand.ID), "error", err)
	return authority.Receipt{}, errors.Join(errAgent, h.rules.KeepRefusal(ctx, c.brand.ID, x, c.standing.GrantID, c.who.Agent, err))
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
