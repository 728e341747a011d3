package oauth

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"countersign.dev/authority"
	"countersign.dev/authority/agent"
	"countersign.dev/authority/receiptlog"
	"countersign.dev/tenants"
	"golang.org/x/mod/sumdb/tlog"
)

// checkpoint is GET {issuer}/log/checkpoint: what the Brand's token key signed of
// the log of its receipts, a JWS that verifies from the JWKS. Like the keys it is
// served for as long as there is a log, whatever became of the Brand.
func (h *Handler) checkpoint(w http.ResponseWriter, r *http.Request, brand *tenants.Brand) {
	c, err := h.authority.Checkpoint(r.Context(), brand)
	if err == nil && c.Size == 0 && (!brand.Delegation || !brand.Exists()) {
		err = authority.ErrUnknown // it never delegated
	}
	if err != nil {
		h.failLog(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/jose")
	w.Header().Set("Cache-Control", fmt.Sprintf("public, max-age=%d", int(authority.CheckpointTTL.Seconds())))
	_, _ = io.WriteString(w, c.JWS)
}

// inclusion is GET {issuer}/log/inclusion?seq=N&size=M: the hashes that lead from
// the entry to the root of a log of that size. They say nothing of what was done, so
// everybody may have them; who has no entry can do nothing with them.
func (h *Handler) inclusion(w http.ResponseWriter, r *http.Request, brand *tenants.Brand) {
	h.proof(w, r, brand, "seq", "size", h.authority.Inclusion)
}

// consistency is GET {issuer}/log/consistency?from=N&to=M: the hashes that show the
// first log to be the beginning of the second.
func (h *Handler) consistency(w http.ResponseWriter, r *http.Request, brand *tenants.Brand) {
	h.proof(w, r, brand, "from", "to", h.authority.Consistency)
}

func (h *Handler) proof(w http.ResponseWriter, r *http.Request, brand *tenants.Brand, first, second string, prove func(context.Context, tenants.BrandID, int64, int64) ([]tlog.Hash, error)) {
	q := r.URL.Query()
	a, okA := whole(q, first)
	b, okB := whole(q, second)
	if !okA || !okB || len(q) != 2 {
		h.fail(w, r, nil, invalidRequest("Give "+first+" and "+second+", once each, as whole numbers."))
		return
	}
	hashes, err := prove(r.Context(), brand.ID, a, b)
	if err != nil {
		h.failLog(w, r, err)
		return
	}
	texts := make([]string, len(hashes))
	for i, hash := range hashes {
		texts[i] = receiptlog.Text(hash)
	}
	body, err := json.Marshal(map[string]any{first: a, second: b, "hashes": texts})
	if err != nil {
		h.fail(w, r, nil, fmt.Errorf("encode proof: %w", err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "public, max-age=86400, immutable") // a tree of one size never changes
	_, _ = w.Write(body)
}

func whole(q url.Values, name string) (int64, bool) {
	if len(q[name]) != 1 {
		return 0, false
	}
	return index(q[name][0])
}

// index reads a number as we write it.
func index(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n >= 0 && strconv.FormatInt(n, 10) == text
}

// logEntry is GET {issuer}/log/entries/{seq}: a line of the log, and the salt that
// ties it to its receipt. It says when something was done under which grant, so it
// is for the Brand's own server (right receipts) and for the agent that holds the
// grant (pa-jwt), and not for others' eyes.
func (h *Handler) logEntry(w http.ResponseWriter, r *http.Request) {
	brand, ok := h.brand(w, r)
	if !ok || !available(w, r, brand, http.MethodGet) {
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	seq, known := index(r.PathValue("seq"))
	var entry authority.LogEntry
	var err error
	if bearer, _ := agent.Bearer(r.Header.Values("Authorization")); strings.HasPrefix(bearer, "cs_") {
		if _, ok := h.credential(w, r, brand, tenants.RightReceipts); !ok {
			return
		}
		entry, err = h.authority.LogEntry(r.Context(), brand.ID, seq)
	} else {
		who, refused := h.caller(r, brand)
		if errors.Is(refused, agent.ErrRefused) {
			unauthorized(w)
			return
		}
		if refused != nil {
			h.fail(w, r, nil, refused)
			return
		}
		entry, err = h.authority.LogEntryOfAgent(r.Context(), brand.ID, who, seq)
	}
	if err == nil && !known {
		err = authority.ErrUnknown
	}
	if err != nil {
		h.failLog(w, r, err)
		return
	}
	answer := struct {
		Seq   int64  `json:"seq"`
		Entry string `json:"entry"` // the text that is hashed, byte for byte
		Salt  string `json:"salt,omitempty"`
	}{entry.Seq, string(entry.Entry), base64.RawURLEncoding.EncodeToString(entry.Salt)}
	writeJSON(w, http.StatusOK, answer)
}

// failLog is fail where what is not there is 404. A log that contradicts itself is
// an alarm, and nothing of it is served.
func (h *Handler) failLog(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, authority.ErrForked) {
		h.log.ErrorContext(r.Context(), "ALARM: the log of receipts contradicts its checkpoints", "error", err)
	}
	h.failGrant(w, r, err)
}
