package api

import (
	"net/http"
	"strconv"
	"time"

	"countersign.dev/tenants"
)

type dayReply struct {
	Date     string `json:"date"` // of UTC
	Asked    int    `json:"asked"`
	StepUps  int    `json:"step_ups"`
	Approved int    `json:"approved"`
	Denied   int    `json:"denied"`
	Revoked  int    `json:"revoked"`
	Reused   int    `json:"reuse_detected"`
}

type usageReply struct {
	Days []dayReply `json:"days"`
}

// usage counts the last days, 30 unless the query says otherwise.
func (h *Handler) usage(w http.ResponseWriter, r *http.Request, c caller) error {
	const usual, most = 30, 366
	days := usual
	if text := r.URL.Query().Get("days"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > most {
			return tenants.Problems{{Field: "days", Say: "is no number of days that can be counted", Mend: "use 1 to " + strconv.Itoa(most)}}
		}
		days = n
	}
	all, err := h.Authority.Usage(r.Context(), c.ID, days)
	if err != nil {
		return err
	}
	out := usageReply{Days: make([]dayReply, len(all))}
	for i, d := range all {
		out.Days[i] = dayReply{d.Date.Format(time.DateOnly), d.Asked, d.StepUps, d.Approved, d.Denied, d.Revoked, d.Reused}
	}
	write(w, http.StatusOK, "application/json", out)
	return nil
}

var exampleUsage = usageReply{Days: []dayReply{{Date: "2026-11-30", Asked: 12, StepUps: 1, Approved: 9, Denied: 2, Revoked: 1}}}
