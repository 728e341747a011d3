package a2a

import (
	"context"
	"errors"
	"fmt"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/a2a/surface"
)

// bindTime is how long a reply waits for the receipt of its conversation.
const bindTime = 2 * time.Second

// keep writes the reply and keeps it. One in a conversation that ends with it, or has
// ended meanwhile, has the receipt of all that was countersigned there: the conversation
// is closed before that is bound, so that whatever settles later finds it closed.
func (h *Interface) keep(ctx context.Context, c call, x authority.Exchange, answer Answer, countersigned *surface.Receipt) (string, error) {
	var task *surface.Receipt
	keep := h.rules.KeepReply
	if answer.Done {
		if countersigned != nil {
			if err := h.rules.CloseTalk(ctx, c.brand.ID, x); err != nil {
				return "", err
			}
		}
		keep, task = h.rules.KeepLastReply, h.bound(ctx, c, x)
	}
	for {
		body, err := surface.LastReply(x.Context.String(), answer.Text, countersigned, task)
		if err != nil {
			return "", fmt.Errorf("write a reply: %w", err)
		}
		kept, err := keep(ctx, c.brand.ID, x, string(body))
		switch {
		case errors.Is(err, authority.ErrClosed):
			keep, task = h.rules.KeepLastReply, h.bound(ctx, c, x)
			continue
		case err != nil && countersigned == nil:
			// Who asks again will find none. This one has it.
			h.log.ErrorContext(ctx, "a reply could not be kept", "brand", string(c.brand.ID), "error", err)
			return string(body), nil
		}
		return kept, err
	}
}

// bound is the receipt of all that was countersigned in the conversation under this
// grant; nil: nothing was, or it cannot be had at once. The reply does not wait for
// it: whoever wants it later finds it at {issuer}/receipts/task.
func (h *Interface) bound(ctx context.Context, c call, x authority.Exchange) *surface.Receipt {
	if c.standing == nil { // nor was there before, or this one would be refused (M23)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, bindTime)
	defer cancel()
	got, err := h.bind(ctx, c.brand, c.standing.GrantID, x.Context.String())
	if err != nil {
		h.log.WarnContext(ctx, "a conversation ended without its task receipt", "brand", string(c.brand.ID), "grant", c.standing.GrantID, "error", err)
		return nil
	}
	return &surface.Receipt{JWS: got.JWS, Claims: got.Claims}
}
