package a2a

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"countersign.dev/authority"
	"countersign.dev/authority/a2a/surface"
)

// maxReason is how much of the agent's text the person reads on the page, in
// characters.
const maxReason = 300

// stepUp turns missing permissions into a task that waits for the person (M22).
// The link may be absent: where the grant holds what is missing and only the
// token does not, and where there are too many requests already. The agent's own
// device flow leads to the same grant.
func (h *Interface) stepUp(ctx context.Context, c call, x authority.Exchange, answer Answer) (string, error) {
	missing := answer.Missing
	if c.standing != nil {
		missing = slices.DeleteFunc(slices.Clone(missing), func(s string) bool { return slices.Contains(c.standing.Scopes, s) })
	}
	offered := func(s string) bool { _, ok := c.brand.Scope(s); return ok }
	if len(missing) == 0 || !c.brand.Delegation || slices.ContainsFunc(missing, func(s string) bool { return !offered(s) }) {
		// It asks for what it has, or what nobody can give.
		h.count.turns.WithLabelValues("failed").Inc()
		h.log.WarnContext(ctx, "a brand's agent asked for permissions that it has, or that are not on the card", "brand", string(c.brand.ID))
		return "", errors.Join(errAgent, h.rules.KeepFailure(ctx, c.brand.ID, x))
	}
	link, err := h.link(ctx, c, missing, answer.Text)
	if err != nil {
		// The agent asked and did nothing, so the message may come again.
		return "", errors.Join(err, h.rules.KeepStepUp(ctx, c.brand.ID, x))
	}
	body, err := surface.StepUp(x.Context.String(), answer.Text, missing, link, h.now())
	if err != nil {
		return "", fmt.Errorf("write a step-up: %w", err)
	}
	h.count.turns.WithLabelValues("stepup").Inc()
	return string(body), h.rules.KeepStepUp(ctx, c.brand.ID, x)
}

// link is where the person can allow what is missing; empty: nowhere.
func (h *Interface) link(ctx context.Context, c call, missing []string, said string) (string, error) {
	ask := authority.StepUp{Who: c.who, Token: c.payload, Scopes: missing, Reason: reason(said)}
	got, err := h.rules.StepUp(ctx, c.brand, ask)
	if limit := new(authority.LimitError); errors.As(err, &limit) {
		return "", nil
	}
	if err != nil || got.UserCode == "" {
		return "", err
	}
	return h.pages + string(c.brand.ID) + "/device?user_code=" + url.QueryEscape(got.UserCode.String()), nil
}

// reason is the Brand's text as the person may read it: one plain line, or
// nothing.
func reason(said string) string {
	said = strings.Join(strings.Fields(said), " ")
	odd := func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }
	if utf8.RuneCountInString(said) > maxReason || strings.ContainsFunc(said, odd) {
		return ""
	}
	return said
}
