package oauth

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"countersign.dev/authority"
	"countersign.dev/tenants"
)

// statusMaxAge is how long caches may keep a status list: what is revoked is to
// be known in seconds.
const statusMaxAge = 5 * time.Second

// statusList is GET {issuer}/status/{n} (Token Status List). Like the keys, it is
// served even when the Brand's delegation is off or it is gone: tokens that name
// it may live, and the list is where their bearers' counterpart learns that they
// are worth nothing.
func (h *Handler) statusList(w http.ResponseWriter, r *http.Request, brand *tenants.Brand) {
	// We keep no former lists, and today's must not be taken for one.
	if r.URL.Query().Has("time") {
		http.Error(w, "Former status lists are not kept", http.StatusNotImplemented)
		return
	}
	number, ok := listNumber(r.PathValue("list"))
	if !ok {
		http.NotFound(w, r)
		return
	}
	list, err := h.authority.StatusList(r.Context(), brand.ID, number)
	if errors.Is(err, authority.ErrUnknown) {
		http.NotFound(w, r)
		return
	}
	if err != nil {
		h.fail(w, r, nil, err)
		return
	}
	w.Header().Set("Content-Type", "application/statuslist+jwt")
	w.Header().Set("Cache-Control", fmt.Sprintf("public, max-age=%d", int(statusMaxAge.Seconds())))
	// So that nobody takes the moment of the fetch for that of the list.
	w.Header().Set("Age", strconv.Itoa(int(list.Age.Seconds())))
	w.Header().Set("ETag", list.ETag)
	if etagMatches(r.Header.Get("If-None-Match"), list.ETag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = io.WriteString(w, list.JWS)
}

// listNumber reads a list's number as we write it: one list has one URI.
func listNumber(text string) (int, bool) {
	n, err := strconv.ParseInt(text, 10, 32)
	return int(n), err == nil && n >= 0 && strconv.FormatInt(n, 10) == text
}

// statusLists names all the Brand's lists, for verifiers that fetch them ahead
// of the tokens.
func (h *Handler) statusLists(w http.ResponseWriter, r *http.Request, brand *tenants.Brand) {
	numbers, err := h.authority.StatusLists(r.Context(), brand.ID)
	if err != nil {
		h.fail(w, r, nil, err)
		return
	}
	if len(numbers) == 0 && (!brand.Delegation || !brand.Exists()) {
		http.NotFound(w, r) // it never delegated
		return
	}
	lists := struct {
		URIs []string `json:"status_lists"`
	}{make([]string, len(numbers))}
	for i, n := range numbers {
		lists.URIs[i] = brand.StatusListURI(n)
	}
	body, err := json.Marshal(lists)
	if err != nil {
		h.fail(w, r, nil, fmt.Errorf("encode status lists of %s: %w", brand.ID, err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "public, max-age=60")
	_, _ = w.Write(body)
}
