package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"countersign.dev/authority/canonical"
	"countersign.dev/authority/receiptlog"
)

// ErrNoReceipts says that nothing was countersigned in the conversation.
var ErrNoReceipts = errors.New("the conversation has no receipts")

// CountersignTask has the authority bind the receipts that the conversation has under
// the caller's delegation, in their order, at its end (right receipts), and checks
// that it signed for this conversation. It goes into metadata["pact.taskReceipt"]. It
// may be asked for again, and after more turns binds those too. A conversation
// without receipts is ErrNoReceipts. TaskReceipt verifies it beside the receipts.
func (v *Verifier) CountersignTask(ctx context.Context, c Call, contextID string) (Countersigned, error) {
	if c.Delegation == nil || contextID == "" {
		return Countersigned{}, fmt.Errorf("%w: without a delegation and a context there is no receipt", ErrOptions)
	}
	var got Countersigned
	err := v.ask(ctx, "/receipts/task", map[string]string{"grantId": c.Delegation.Grant, "contextId": contextID}, &got)
	if answer := new(RefusedError); errors.As(err, &answer) && answer.Status == http.StatusNotFound {
		return Countersigned{}, fmt.Errorf("%w: %w", ErrNoReceipts, err)
	}
	if err != nil {
		return Countersigned{}, err
	}
	if err := v.checkTask(ctx, got, *c.Delegation, contextID); err != nil {
		return Countersigned{}, err
	}
	return got, nil
}

// checkTask makes sure that the Brand's key signed for this conversation, and that
// the claims beside it are the signed ones. What they bind, only who holds the
// receipts can tell.
func (v *Verifier) checkTask(ctx context.Context, got Countersigned, d Delegation, contextID string) error {
	e, err := open(got.JWS, maxToken)
	if err == nil {
		err = e.readHeader(got.JWS)
	}
	if err == nil {
		err = tokenType(e.header, "pact-task-receipt+jws")
	}
	if err == nil {
		err = v.keys.verify(ctx, &e)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrReceipt, err)
	}
	signed := payloadIn(got.JWS)
	var t receiptlog.Task
	err = json.Unmarshal(signed, &t)
	form, formErr := canonical.Of(t)
	beside, besideErr := canonical.JSON(got.Claims)
	_, isHash := receiptlog.Hash(t.Root)
	switch {
	case err != nil || formErr != nil || !bytes.Equal(form, signed) || !isHash || t.Count < 1:
		return fmt.Errorf("%w: not the claims of a task", ErrReceipt)
	case besideErr != nil || !bytes.Equal(beside, signed):
		return fmt.Errorf("%w: the claims beside it are not the signed ones", ErrReceipt)
	case t.GrantID != d.Grant || t.User != d.User || t.PA != d.Agent || t.Brand != v.audience || t.ContextID != contextID:
		return fmt.Errorf("%w: it is for another conversation", ErrReceipt)
	}
	if err := timely(t.TS, ReceiptOptions{Now: v.now()}); err != nil {
		return fmt.Errorf("%w: %w", ErrReceipt, err)
	}
	return nil
}

// MaxTurns is how many turns CountersignMany takes at once.
const MaxTurns = 100

// Served is a turn, and the call that it was served under.
type Served struct {
	Call Call
	Turn Turn
}

// Outcome is what became of one turn of several: Err is as Countersign returns it.
type Outcome struct {
	Receipt Countersigned
	Err     error
}

// CountersignMany is Countersign of up to MaxTurns turns; the outcomes are in the same
// order. Each turn fails alone. Where the whole call fails, none is known to have a
// receipt, and trying again is safe.
func (v *Verifier) CountersignMany(ctx context.Context, turns []Served) []Outcome {
	out, err := v.countersignMany(ctx, turns)
	for i := range out {
		if err != nil && out[i].Err == nil {
			out[i].Err = err
		}
	}
	return out
}

// countersignMany tells the failure of the whole call, which says nothing of any turn,
// from what became of each.
func (v *Verifier) countersignMany(ctx context.Context, turns []Served) ([]Outcome, error) {
	out := make([]Outcome, len(turns))
	var places []int
	var body struct {
		Turns []turnBody `json:"turns"`
	}
	for i, s := range turns {
		one, err := s.body()
		if len(turns) > MaxTurns {
			err = fmt.Errorf("%w: %d turns, more than %d", ErrOptions, len(turns), MaxTurns)
		}
		if out[i].Err = err; err == nil {
			places, body.Turns = append(places, i), append(body.Turns, one)
		}
	}
	if len(places) == 0 {
		return out, nil
	}
	type result struct {
		Receipt     Countersigned `json:"receipt"`
		Status      int           `json:"status"`
		Code        string        `json:"error"`
		Description string        `json:"error_description"`
	}
	var answer struct {
		Results []result `json:"results"`
	}
	// Each is there twice, in its JWS and beside it.
	if err := v.askAtLength(ctx, "/receipts/batch", body, &answer, len(places)*2*maxReceipt); err != nil {
		return out, err
	}
	if len(answer.Results) != len(places) {
		return out, fmt.Errorf("%w: %d results for %d turns", ErrReceipt, len(answer.Results), len(places))
	}
	signed := make(map[string]turnID, len(places))
	for n, i := range places {
		got, s := answer.Results[n], turns[i]
		if got.Status != http.StatusOK {
			var err error = &RefusedError{Status: got.Status, Code: got.Code, Description: got.Description}
			if got.Status == http.StatusConflict {
				err = fmt.Errorf("%w: %w", ErrConflict, err)
			}
			out[i].Err = err
			continue
		}
		err := v.checkReceipt(ctx, got.Receipt, *s.Call.Delegation, s.Turn)
		// Of turns that did the same, each has its own all the same.
		if of, there := signed[got.Receipt.JWS]; err == nil && there && of != s.id() {
			err = fmt.Errorf("%w: it is another turn's", ErrReceipt)
		}
		if out[i].Err = err; err == nil {
			out[i].Receipt, signed[got.Receipt.JWS] = got.Receipt, s.id()
		}
	}
	return out, nil
}

// turnID is what a turn is known by.
type turnID struct{ grant, context, message string }

func (s Served) id() turnID {
	return turnID{s.Call.Delegation.Grant, s.Turn.ContextID, s.Turn.MessageID}
}

// body is the turn as it is sent, if it may be.
func (s Served) body() (turnBody, error) {
	if s.Call.Delegation == nil || s.Call.token == "" {
		return turnBody{}, fmt.Errorf("%w: without a delegation there is no receipt", ErrOptions)
	}
	if missing := s.Call.Missing(s.Turn.ScopesUsed...); len(missing) > 0 {
		return turnBody{}, fmt.Errorf("%w: the turn used what was not allowed: %q", ErrScope, missing)
	}
	return s.Turn.body(s.Call)
}
