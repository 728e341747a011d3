package verify

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// silence is how long an idle stream may say nothing: it says every 15 seconds
	// that it lives.
	silence = 40 * time.Second
	// maxLine bounds an event.
	maxLine = 64 << 10
	// Between attempts to connect.
	firstRest, longestRest = time.Second, 30 * time.Second
)

// Follow listens to {issuer}/events until ctx ends, so that what ends or becomes
// narrower is known within a second. It comes again by itself where it left off. It
// needs a Credential with the right events; run it in a goroutine of its own:
//
//	go v.Follow(ctx)
//
// It is faster than the status list and no substitute: a suspended person or a
// disabled agent is in the list alone, and while nobody listens, so is the rest.
// Follow returns the context's error, or ErrCredential, which trying again does not
// mend.
func (v *Verifier) Follow(ctx context.Context) error {
	if v.credential == "" {
		return fmt.Errorf("%w: Credential must be given", ErrOptions)
	}
	rest, place := firstRest, ""
	for {
		began := time.Now()
		err := v.listen(ctx, &place)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrCredential):
			v.log.ErrorContext(ctx, "the stream of events is closed to us", "error", err)
			return err
		}
		v.log.InfoContext(ctx, "the stream of events broke off", "reason", err)
		if time.Since(began) > longestRest {
			rest = firstRest
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(rest):
		}
		rest = min(2*rest, longestRest)
	}
}

// listen follows one connection until it ends, from the place on, which it keeps.
func (v *Verifier) listen(ctx context.Context, place *string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := time.AfterFunc(silence, func() { cancel(errors.New("it says nothing")) })
	defer quiet.Stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, v.issuer+"/events", nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Authorization", "Bearer "+v.credential)
	if *place != "" {
		r.Header.Set("Last-Event-ID", *place)
	}
	endless := *v.client
	endless.Timeout = 0
	resp, err := endless.Do(r)
	if err != nil {
		return bare(err)
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%w: status %d", ErrCredential, resp.StatusCode)
	case http.StatusBadRequest:
		*place = "" // of a time before a backup was put back
		return errors.New("the place is not one of this stream")
	default:
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	if *place == "" {
		v.revoked.ended.anew()
	}
	return v.hear(bufio.NewScanner(resp.Body), place, func() { quiet.Reset(silence) })
}

// hear reads server-sent events (HTML §9.2.6): of their fields, id and data.
func (v *Verifier) hear(lines *bufio.Scanner, place *string, alive func()) error {
	lines.Buffer(nil, maxLine)
	var id, data string
	for lines.Scan() {
		alive()
		line := lines.Text()
		if line == "" {
			if id != "" {
				*place = id
			}
			if data != "" {
				v.take(data)
			}
			id, data = "", ""
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "id":
			if _, err := strconv.ParseUint(value, 10, 63); err == nil {
				id = value
			}
		case "data":
			data += value
			if len(data) > maxLine {
				return errors.New("an event is too long")
			}
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return errors.New("it ended")
}

// event is what becomes of a grant.
type event struct {
	Type string          `json:"type"`
	At   json.RawMessage `json:"timestamp"`
	Data struct {
		Grant  string   `json:"grant_id"`
		Scopes []string `json:"scopes"`
		Seq    int64    `json:"seq"`
	} `json:"data"`
}

// take takes down what an event takes away. An event of a kind that is not known
// says nothing about what holds.
func (v *Verifier) take(data string) {
	var e event
	if err := json.Unmarshal([]byte(data), &e); err != nil || e.Data.Grant == "" {
		return
	}
	var at time.Time
	_ = json.Unmarshal(e.At, &at) // what has ended has ended, though nobody can read when
	switch e.Type {
	case "grant.revoked", "grant.expired", "grant.reuse_detected":
		v.revoked.ended.hear(e.Data.Grant, nil, e.Data.Seq, at)
	case "grant.narrowed", "grant.widened":
		v.revoked.ended.hear(e.Data.Grant, e.Data.Scopes, e.Data.Seq, at)
	}
}
