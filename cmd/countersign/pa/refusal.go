package pa

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"countersign.dev/cmd/countersign/pa/discovery"
)

// How a journey can end without a token. Callers test with errors.Is.
var (
	ErrDenied     = errors.New("the person said no")                       // ask again only when they want it
	ErrExpired    = errors.New("nobody answered before the link ran out")  // start again
	ErrEnded      = errors.New("the delegation has ended or is suspended") // log in again
	ErrNoToken    = errors.New("no token stored")                          // log in first
	ErrBadAnswer  = errors.New("the Brand's answer makes no sense")        // tell the Brand
	ErrNoIdentity = errors.New("this agent has no identity to sign with")  // dev, or --key
	ErrAmbiguous  = errors.New("more than one token fits")                 // name --sub
)

// Refusal is an OAuth error answer (RFC 6749 §5.2), or a bare HTTP one.
type Refusal struct {
	Status      int
	Code        string // empty when the answer had no OAuth error in it
	Description string
	RetryAfter  time.Duration
}

func (r Refusal) Error() string {
	switch {
	case r.Code != "" && r.Description != "":
		return fmt.Sprintf("%s (%s)", r.Code, r.Description)
	case r.Code != "":
		return r.Code
	}
	return fmt.Sprintf("%d %s", r.Status, http.StatusText(r.Status))
}

// refusal reads an answer that is not a success.
func refusal(a discovery.Answer) Refusal {
	var body struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	_ = json.Unmarshal(a.Body, &body) // PACT's plain 401 has no body at all (M7)
	r := Refusal{Status: a.Status, Code: printable(body.Error), Description: printable(body.Description)}
	if seconds, err := strconv.Atoi(a.Header.Get("Retry-After")); err == nil && seconds > 0 {
		// Bounded, so that a wrong header does not put the agent to sleep for good.
		r.RetryAfter = min(time.Duration(seconds)*time.Second, 2*time.Minute)
	}
	return r
}

// printable takes out what could move the cursor or recolour a terminal: these
// texts come from strangers and end on a person's screen.
func printable(s string) string {
	clean := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
	if runes := []rune(clean); len(runes) > 300 {
		return string(runes[:300]) + "…"
	}
	return clean
}
