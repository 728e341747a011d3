package console

import (
	"slices"
	"time"

	"countersign.dev/authority/events"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"countersign.dev/web/ui"
)

// How far back the first screen looks for trouble.
const (
	alarmDays = 24 * time.Hour
	// A delivery is tried for three days before it is given up, and since then a
	// week has not passed.
	deadDays = 10 * 24 * time.Hour
	// Upkeep changes a key within minutes; one that is older by days is stuck.
	keyGrace = 3 * 24 * time.Hour
)

// troubles is what went wrong by itself, the worst first, each with the way to
// where one sees more.
func (v *visit) troubles() ([]ui.Notice, error) {
	alarms, err := v.h.Authority.Alarms(v.ctx(), v.brand.ID, v.now.Add(-alarmDays))
	if err != nil {
		return nil, err
	}
	dead, err := events.Dead(v.ctx(), v.h.DB, v.brand.ID, v.now.Add(-deadDays))
	if err != nil {
		return nil, err
	}
	keys, err := v.h.Keys.List(v.ctx(), v.brand.ID)
	if err != nil {
		return nil, err
	}
	var out []ui.Notice
	add := func(n ui.Notice, more ui.Link) {
		if more.Href != "" {
			n.Text = append(n.Text, ui.Span{Text: " "}, ui.Span{Text: more.Label.String(), Href: more.Href})
		}
		out = append(out, n)
	}
	if alarms > 0 {
		add(v.warning("console.usage.wrong.reuse", "count", alarms),
			v.link("console.usage.wrong.look", v.inQuery("trail", "event", "grant.reuse_detected")))
	}
	if key := v.keyTrouble(keys); key != "" {
		add(v.warning(key), ui.Link{})
	}
	if dead > 0 {
		add(v.warning("console.usage.wrong.dead", "count", dead), ui.Link{})
	}
	return out, nil
}

// keyTrouble says what is wrong with the Brand's keys; empty: nothing.
func (v *visit) keyTrouble(keys []signing.KeyInfo) string {
	if v.brand.State == tenants.Pending {
		return "" // told already
	}
	i := slices.IndexFunc(keys, func(k signing.KeyInfo) bool { return k.State == "current" })
	switch {
	case i < 0:
		return "console.usage.wrong.nokey"
	case v.now.Sub(keys[i].ChangedAt) > v.h.Policy(v.brand).Every+signing.PublishWait+keyGrace:
		return "console.usage.wrong.oldkey"
	}
	return ""
}
