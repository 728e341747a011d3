package a2a

import (
	"context"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/a2a/surface"
)

// bindTime is how long a last reply waits for the receipt of its conversation.
const bindTime = 2 * time.Second

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
