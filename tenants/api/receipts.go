package api

import (
	"encoding/json"
	"net/http"
	"time"

	"countersign.dev/authority"
)

// receiptView is one thing that was done under a grant: a receipt as it was
// answered, and what it answers.
type receiptView struct {
	Seq       int64           `json:"seq"` // in the Brand's log
	At        time.Time       `json:"at"`
	Late      bool            `json:"late,omitempty"` // token or grant had ended
	ContextID string          `json:"context_id"`
	MessageID string          `json:"message_id"`
	JWS       string          `json:"jws"`
	Claims    json.RawMessage `json:"claims"`
}

type receiptsReply struct {
	Receipts []receiptView `json:"receipts"`
	Next     string        `json:"next,omitempty"` // the cursor of the next page
}

// listReceipts is GET grants/{grant}/receipts, the latest first.
func (h *Handler) listReceipts(w http.ResponseWriter, r *http.Request, c caller) error {
	id, err := grantID(r)
	if err != nil {
		return err
	}
	q, err := parameters(r, "cursor", "limit")
	if err != nil {
		return err
	}
	limit, err := number(q, "limit", 1, usualPage, largestPage)
	if err != nil {
		return err
	}
	var before time.Time
	if q.Has("cursor") {
		if before, err = time.Parse(time.RFC3339Nano, q.Get("cursor")); err != nil {
			return badParameter("cursor is the next of the page before")
		}
	}
	if _, err := h.Authority.Look(r.Context(), c.ID, id); err != nil {
		return err
	}
	done, err := h.Authority.Done(r.Context(), c.ID, id, before, limit+1)
	if err != nil {
		return err
	}
	body := receiptsReply{Receipts: []receiptView{}}
	if len(done) > limit {
		done = done[:limit]
		body.Next = done[limit-1].At.Format(time.RFC3339Nano)
	}
	for _, d := range done {
		body.Receipts = append(body.Receipts, viewReceipt(d))
	}
	write(w, http.StatusOK, "application/json", body)
	return nil
}

func viewReceipt(d authority.Done) receiptView {
	return receiptView{d.Seq, d.At, d.Late, d.ContextID, d.MessageID, d.JWS, d.Claims}
}
