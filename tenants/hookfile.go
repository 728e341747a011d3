package tenants

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// The kinds of change of webhooks that files alone ask for.
const (
	// ChangeHookEvents waits for an owner: what is told to a place decides who learns it.
	ChangeHookEvents = "webhook.events"
	// ChangeHookOff waits where the same file wants something new of webhooks: a place
	// that takes over from another is told nothing before an owner's yes, and until then
	// the Brand would hear nothing at all.
	ChangeHookOff = "webhook.disable"
)

const noPartOfFile = "no part of the Brand's file"

type hookEvents struct {
	ID     string   `json:"id"`
	Before []string `json:"before"`
	After  []string `json:"after"`
}

// SetWebhookEvents has the endpoint told of other events. Where it was told of others
// than before says, that is ErrChangeStale.
func SetWebhookEvents(ctx context.Context, edit Editor, brand BrandID, id string, before, after []string) error {
	return edit.change(ctx, brand, "set events of webhook", func(e *Edit) error {
		const q = `SELECT events FROM webhook_endpoints WHERE brand_id = @brand AND id = @id FOR UPDATE`
		var now []string
		err := e.QueryRow(ctx, q, pgx.NamedArgs{"brand": brand, "id": id}).Scan(&now)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return ErrNoWebhook
		case err != nil:
			return err
		case sameEvents(now, after):
			return nil
		case !sameEvents(now, before):
			return ErrChangeStale
		}
		e.Note("webhook.events", map[string]any{"endpoint": id, "before": now, "after": after})
		const set = `UPDATE webhook_endpoints SET events = @events WHERE brand_id = @brand AND id = @id`
		_, err = e.Exec(ctx, set, pgx.NamedArgs{"brand": brand, "id": id, "events": after})
		return err
	})
}

func sameEvents(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// AskWebhookEvents asks an owner to have an endpoint told of other events.
func (a *Asks) AskWebhookEvents(ctx context.Context, edit Editor, brand BrandID, id string, events []string, by, channel string) (PendingChange, error) {
	w, err := webhookNow(ctx, a.DB, brand, id)
	if err != nil {
		return PendingChange{}, err
	}
	return a.Ask(ctx, edit, brand, Ask{
		Kind: ChangeHookEvents, By: by, Channel: channel,
		Diff: map[string]any{
			"before": map[string]any{"url": w.URL, "events": w.Events}, "after": map[string]any{"url": w.URL, "events": events},
		},
		Payload: hookEvents{id, w.Events, events},
	})
}

// AskWebhookOff asks an owner to turn an endpoint off, for a file that does not name
// it any more and names others. Whoever turns one off by itself waits for nobody. One
// that is off is ErrHookOff.
func (a *Asks) AskWebhookOff(ctx context.Context, edit Editor, brand BrandID, id, by, channel string) (PendingChange, error) {
	w, err := webhookNow(ctx, a.DB, brand, id)
	if err == nil && !w.Enabled {
		err = ErrHookOff
	}
	if err != nil {
		return PendingChange{}, err
	}
	shown, err := toSwitch(ctx, a.DB, brand, id)
	if err != nil {
		return PendingChange{}, err
	}
	return a.Ask(ctx, edit, brand, Ask{
		Kind: ChangeHookOff, By: by, Channel: channel, Diff: map[string]any{"webhook": id, "url": w.URL}, Payload: shown,
	})
}

// ErrHookOff is returned for the wish to turn an endpoint off that is off.
var ErrHookOff = errors.New("the webhook endpoint is off already")

// hookWishes goes by the URL and the format, which never changes: an endpoint that is on comes before one that is off.
func (f File) hookWishes(ctx context.Context, db *DB, site Site, _ time.Time) ([]Wish, error) {
	if f.Webhooks == nil {
		return nil, nil
	}
	if on := countOn(f.Webhooks, FileWebhook.on); on > mostWebhooks {
		return nil, Problems{{Field: "webhooks", Say: "are " + count(on) + " that would be on", Mend: count(mostWebhooks) + " may be", Mistake: ManyHooks, About: [2]string{count(mostWebhooks)}}}
	}
	left, err := Webhooks(ctx, db, f.Brand)
	if err != nil {
		return nil, err
	}
	room := mostWebhooks - countOn(left, func(h Webhook) bool { return h.Enabled })
	slices.SortStableFunc(left, func(a, b Webhook) int {
		return map[bool]int{true: 0, false: 1}[a.Enabled] - map[bool]int{true: 0, false: 1}[b.Enabled]
	})
	var out, offs []Wish
	more := 0 // that will be on
	for _, w := range f.Webhooks {
		d := WebhookDraft{URL: w.URL, Events: w.events(), Format: cmp.Or(w.Format, FormatJSON)}
		if p := d.Check(site); len(p) > 0 {
			for i := range p {
				p[i].Field = "webhooks." + p[i].Field
			}
			return nil, p
		}
		i := slices.IndexFunc(left, func(h Webhook) bool { return h.URL == w.URL && h.Format == d.Format })
		switch {
		case i >= 0:
			switch h := left[i]; {
			case w.on() && !h.Enabled:
				more++
			case h.Enabled && !w.on():
				offs = append(offs, f.hookOff(h))
			}
			out = append(out, f.hookChanges(left[i], w)...)
			left = slices.Delete(left, i, i+1)
		case !w.on():
			return nil, Problems{{Field: "webhooks", Say: w.URL + " would be made only to be off", Mend: "leave it out, or have it on"}}
		default:
			more++
			out = append(out, f.hookNew(site, d))
		}
	}
	asks := slices.ContainsFunc(out, func(w Wish) bool { return w.Ask != nil })
	for _, h := range left {
		if h.Enabled {
			off := f.hookOff(h)
			if asks {
				off = f.hookOffLater(off, h)
			}
			offs = append(offs, off)
		}
	}
	// What takes over comes first, so that the Brand misses nothing, unless there is no
	// room for it before another is off.
	if more > room {
		return append(offs, out...), nil
	}
	return append(out, offs...), nil
}

func countOn[T any](all []T, on func(T) bool) int {
	n := 0
	for _, one := range all {
		if on(one) {
			n++
		}
	}
	return n
}

func (f File) hookNew(site Site, d WebhookDraft) Wish {
	return Wish{
		Say: "webhook " + d.URL + ": made, for " + strings.Join(d.Events, " ") + ", as " + d.Format,
		Ask: func(ctx context.Context, a *Asks, edit Editor, by, channel string) (PendingChange, error) {
			return a.AskWebhook(ctx, edit, site, f.Brand, d, by, channel)
		},
		Do: func(ctx context.Context, a *Asks, edit Editor) (string, error) {
			w, secret, err := CreateWebhook(ctx, edit, a.Sealer, site, f.Brand, d)
			return w.ID + " " + secret, err
		},
	}
}

func (f File) hookOff(h Webhook) Wish {
	return Wish{Say: "webhook " + h.URL + ": off", Do: func(ctx context.Context, _ *Asks, edit Editor) (string, error) {
		return "", EnableWebhook(ctx, edit, f.Brand, h.ID, false, noPartOfFile)
	}}
}

// hookOffLater has the endpoint told until an owner says that it is off.
func (f File) hookOffLater(off Wish, h Webhook) Wish {
	off.Say += ", once an owner says so: others are asked for"
	off.Ask = func(ctx context.Context, a *Asks, edit Editor, by, channel string) (PendingChange, error) {
		return a.AskWebhookOff(ctx, edit, f.Brand, h.ID, by, channel)
	}
	return off
}

func (f File) hookChanges(h Webhook, w FileWebhook) []Wish {
	var out []Wish
	if events := w.events(); !sameEvents(h.Events, events) {
		out = append(out, Wish{
			Say: "webhook " + h.URL + ": for " + strings.Join(h.Events, " ") + " → " + strings.Join(events, " "),
			Ask: func(ctx context.Context, a *Asks, edit Editor, by, channel string) (PendingChange, error) {
				return a.AskWebhookEvents(ctx, edit, f.Brand, h.ID, events, by, channel)
			},
			Do: func(ctx context.Context, _ *Asks, edit Editor) (string, error) {
				return "", SetWebhookEvents(ctx, edit, f.Brand, h.ID, h.Events, events)
			},
		})
	}
	if !h.Enabled && w.on() {
		out = append(out, Wish{
			Say: "webhook " + h.URL + ": on",
			Ask: func(ctx context.Context, a *Asks, edit Editor, by, channel string) (PendingChange, error) {
				return a.AskWebhookOn(ctx, edit, f.Brand, h.ID, by, channel)
			},
			Do: func(ctx context.Context, _ *Asks, edit Editor) (string, error) {
				return "", EnableWebhook(ctx, edit, f.Brand, h.ID, true, "")
			},
		})
	}
	return out
}
