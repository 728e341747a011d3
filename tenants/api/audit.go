package api

import (
	"encoding/json"
	"math"
	"mime"
	"net/http"
	"strings"

	"countersign.dev/authority"
	"github.com/google/uuid"
)

// eventView is an event of the trail, to be read. The export has what proves it.
type eventView struct {
	Seq       int64           `json:"seq"`
	At        string          `json:"at"`
	Actor     string          `json:"actor"`
	ActorID   string          `json:"actor_id,omitempty"`
	Channel   string          `json:"channel,omitempty"`
	Event     string          `json:"event"`
	RequestID *string         `json:"request_id,omitempty"`
	GrantID   *string         `json:"grant_id,omitempty"`
	Trace     string          `json:"trace,omitempty"`
	Detail    json.RawMessage `json:"detail"`
}

func viewEvent(e authority.Entry) eventView {
	return eventView{
		Seq: e.Seq, At: e.At, Actor: e.Actor, ActorID: e.ActorID, Channel: e.Channel, Event: e.Event,
		RequestID: e.RequestID, GrantID: e.GrantID, Trace: e.Trace, Detail: json.RawMessage(e.Detail),
	}
}

type eventsReply struct {
	Events []eventView `json:"events"`
	Next   int64       `json:"next,omitempty"` // since of the next page
	Head   string      `json:"head,omitempty"` // SEQ:HASH, to be remembered elsewhere
}

const ndjson = "application/x-ndjson"

// largestExport bounds one export, so that it is done within a request's time.
const largestExport = 100_000

// audit is GET audit: a page to be read, or, where NDJSON is accepted, lines
// that can be verified.
func (h *Handler) audit(w http.ResponseWriter, r *http.Request, c caller) error {
	q, err := parameters(r, "event", "grant", "subject", "actor", "from", "until", "since", "limit")
	if err != nil {
		return err
	}
	which := authority.Events{Event: q.Get("event"), Subject: q.Get("subject"), Actor: q.Get("actor")}
	if which.From, which.Until, err = authority.Days(q.Get("from"), q.Get("until")); err != nil {
		return badParameter("from and until are days such as 2026-11-30")
	}
	if which.Since, err = number[int64](q, "since", 0, 0, math.MaxInt64); err != nil {
		return err
	}
	if q.Has("grant") {
		if which.Grant, err = uuid.Parse(q.Get("grant")); err != nil {
			return badParameter("grant is the id of a grant")
		}
	}
	if accepts(r, ndjson) {
		limit, err := number(q, "limit", 1, largestExport, largestExport)
		if err != nil {
			return err
		}
		return h.exportAudit(w, r, c, which, limit)
	}
	limit, err := number(q, "limit", 1, usualPage, largestPage)
	if err != nil {
		return err
	}
	head, err := h.Authority.TrailHead(r.Context(), c.ID)
	if err != nil {
		return err
	}
	body := eventsReply{Events: []eventView{}}
	if head.Seq > 0 {
		body.Head = head.String()
	}
	// One more tells whether there is another page.
	err = h.Authority.Trail(r.Context(), c.ID, which, limit+1, func(e authority.Entry) error {
		if len(body.Events) == limit {
			body.Next = body.Events[limit-1].Seq
			return nil
		}
		body.Events = append(body.Events, viewEvent(e))
		return nil
	})
	if err != nil {
		return err
	}
	write(w, http.StatusOK, "application/json", body)
	return nil
}

// exportAudit streams lines. Once the first is out, trouble can only be told by
// breaking off: half an answer must not look like a whole one.
func (h *Handler) exportAudit(w http.ResponseWriter, r *http.Request, c caller, which authority.Events, limit int) error {
	begun := false
	err := h.Authority.Trail(r.Context(), c.ID, which, limit, func(e authority.Entry) error {
		line, err := e.Line()
		if err != nil {
			return err
		}
		if !begun {
			w.Header().Set("Content-Type", ndjson)
			begun = true
		}
		_, err = w.Write(line)
		return err
	})
	switch {
	case err != nil && begun:
		h.Log.ErrorContext(r.Context(), "an export was broken off", "brand", string(c.ID), "error", err)
		panic(http.ErrAbortHandler)
	case err == nil && !begun:
		w.Header().Set("Content-Type", ndjson)
		w.WriteHeader(http.StatusOK)
	}
	return err
}

func accepts(r *http.Request, media string) bool {
	for _, header := range r.Header.Values("Accept") {
		for one := range strings.SplitSeq(header, ",") {
			if m, _, err := mime.ParseMediaType(one); err == nil && m == media {
				return true
			}
		}
	}
	return false
}
