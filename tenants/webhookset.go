package tenants

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"countersign.dev/tenants/egress"
	"github.com/jackc/pgx/v5"
)

// The kinds of change of webhooks that wait for an owner: where a Brand's events
// go, and who can make them.
const (
	ChangeHookNew    = "webhook.create"
	ChangeHookRotate = "webhook.rotate"
)

// mostWebhooks bounds the deliveries that one event can become.
const mostWebhooks = 10

// WebhookDraft is an endpoint as it is asked for. No events are all events, and no
// format is FormatJSON.
type WebhookDraft struct {
	URL    string   `json:"url"`
	Events []string `json:"events"`
	Format string   `json:"format,omitempty"`
}

// Check returns every mistake in the draft.
func (d WebhookDraft) Check(site Site) Problems {
	const longest = 2000
	var p Problems
	switch err := egress.CheckURL(d.URL, site.AllowLoopback); {
	case d.URL == "":
		p.add("url", "is missing", "write the https address that is to be called")
		p.kind(Missing)
	case len(d.URL) > longest:
		p.add("url", "is too long", "use "+count(longest)+" characters at most")
		p.kind(TooLong, count(longest))
	case err != nil:
		_, why, _ := strings.Cut(err.Error(), ": ")
		p.add("url", "is no address that we call: "+why, "give a public https address without user, port or fragment")
		p.kind(NotCalled)
	}
	if d.Format != "" {
		p.oneOf("format", d.Format, FormatJSON, FormatSET)
	}
	for i, e := range d.Events {
		p.oneOf("events", e, WebhookEvents()...)
		if slices.Contains(d.Events[:i], e) {
			p.add("events", "hold "+e+" twice", "take one away")
			p.kind(Twice, e)
		}
	}
	return p
}

// CreateWebhook makes an endpoint and returns it with the secret that its receiver
// checks signatures with, for the only time. That the URL's name leads to a public
// address is seen at each call. What is wrong with the draft is Problems.
func CreateWebhook(ctx context.Context, edit Editor, sealer Sealer, site Site, brand BrandID, d WebhookDraft) (Webhook, string, error) {
	if p := d.Check(site); len(p) > 0 {
		return Webhook{}, "", p
	}
	if len(d.Events) == 0 {
		d.Events = WebhookEvents()
	}
	w := Webhook{
		ID: strings.ToLower(rand.Text()[:webhookIDSize]), URL: d.URL, Events: d.Events, Enabled: true,
		Format: cmp.Or(d.Format, FormatJSON),
	}
	// Sealing may ask a key store, and no transaction waits for one.
	secret, sealed, err := newWebhookSecret(ctx, sealer, brand, w.ID)
	if err != nil {
		return Webhook{}, "", err
	}
	const q = `
		INSERT INTO webhook_endpoints (brand_id, id, url, events, format, secret_sealed, enabled, created_at)
		SELECT @brand, @id, @url, @events, @format, @sealed, true, @now
		 WHERE (SELECT count(*) FROM webhook_endpoints WHERE brand_id = @brand AND enabled) < @most`
	// The URL may hold something secret, so the trail has the id alone,
	// as it has of what an owner is asked (OfWebhook).
	err = edit.change(ctx, brand, "create webhook", func(e *Edit) error {
		w.CreatedAt = e.Now
		tag, err := e.Exec(ctx, q, pgx.NamedArgs{
			"brand": brand, "id": w.ID, "url": w.URL, "events": w.Events, "format": w.Format, "sealed": sealed, "now": e.Now, "most": mostWebhooks,
		})
		if err == nil && tag.RowsAffected() == 0 {
			return Problems{{Field: "url", Say: "would be one endpoint too many", Mend: "turn another off; " + count(mostWebhooks) + " may be on", Mistake: ManyHooks, About: [2]string{count(mostWebhooks)}}}
		}
		e.Note("webhook.created", map[string]any{"endpoint": w.ID, "events": w.Events, "format": w.Format})
		return err
	})
	if err != nil {
		return Webhook{}, "", err
	}
	return w, secret, nil
}

// RotateWebhook gives the endpoint a new secret and returns it, for the only
// time. For the overlap both secrets sign, so that the receiver can change at
// leisure; an overlap of zero is for a secret that somebody else may hold.
func RotateWebhook(ctx context.Context, edit Editor, sealer Sealer, brand BrandID, id string, overlap time.Duration) (string, error) {
	secret, sealed, err := newWebhookSecret(ctx, sealer, brand, id)
	if err != nil {
		return "", err
	}
	const q = `
		UPDATE webhook_endpoints
		   SET former_sealed = CASE WHEN @until::timestamptz > @now THEN secret_sealed END,
		       former_until = CASE WHEN @until::timestamptz > @now THEN @until::timestamptz END,
		       secret_sealed = @sealed
		 WHERE brand_id = @brand AND id = @id`
	err = edit.change(ctx, brand, "rotate webhook secret", func(e *Edit) error {
		tag, err := e.Exec(ctx, q, pgx.NamedArgs{
			"brand": brand, "id": id, "sealed": sealed, "until": e.Now.Add(overlap), "now": e.Now,
		})
		if err == nil && tag.RowsAffected() == 0 {
			return ErrNoWebhook
		}
		e.Note("webhook.secret_rotated", map[string]any{"endpoint": id, "former_signs_for": overlap.String()})
		return err
	})
	if err != nil {
		return "", err
	}
	return secret, nil
}

// EnableWebhook turns an endpoint on or off in somebody's name. The note says why
// it is off. Twice is once.
func EnableWebhook(ctx context.Context, edit Editor, brand BrandID, id string, on bool, note string) error {
	return edit.change(ctx, brand, "switch webhook", func(e *Edit) error { return e.switchWebhook(ctx, id, on, note) })
}

// switchShown is EnableWebhook of the endpoint as somebody saw it; one that was switched
// since is ErrChangeStale.
func switchShown(ctx context.Context, edit Editor, brand BrandID, shown hookSwitch, on bool, note string) error {
	const q = `
		SELECT EXISTS (SELECT FROM webhook_endpoints
		                WHERE brand_id = @brand AND id = @id AND enabled <> @on AND switches <> @switches)`
	return edit.change(ctx, brand, "switch webhook", func(e *Edit) error {
		var other bool
		err := e.QueryRow(ctx, q, pgx.NamedArgs{"brand": brand, "id": shown.ID, "on": on, "switches": shown.Switches}).Scan(&other)
		if err == nil && other {
			err = ErrChangeStale
		}
		if err != nil {
			return err
		}
		return e.switchWebhook(ctx, shown.ID, on, note)
	})
}

// hookSwitch is an endpoint that is to be turned on or off.
type hookSwitch struct {
	ID       string `json:"id" db:"id"`
	Switches int    `json:"switches"` // how often it was, so far
}

func toSwitch(ctx context.Context, db *DB, brand BrandID, id string) (hookSwitch, error) {
	const q = `SELECT id, switches FROM webhook_endpoints WHERE brand_id = @brand AND id = @id`
	h, err := One[hookSwitch](ctx, db, brand, q, pgx.NamedArgs{"brand": brand, "id": id})
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoWebhook
	}
	return h, err
}

func (e *Edit) switchWebhook(ctx context.Context, id string, on bool, note string) error {
	const q = `
		UPDATE webhook_endpoints w
		   SET enabled = @on, note = @note, switches = switches + CASE WHEN o.before = @on THEN 0 ELSE 1 END
		  FROM (SELECT id, enabled AS before FROM webhook_endpoints WHERE brand_id = @brand AND id = @id FOR UPDATE) o
		 WHERE w.brand_id = @brand AND w.id = o.id
		   AND (NOT @on OR o.before OR
		        (SELECT count(*) FROM webhook_endpoints WHERE brand_id = @brand AND enabled) < @most)
		RETURNING o.before`
	event := "webhook.disabled"
	if on {
		event = "webhook.enabled"
	}
	var before bool
	args := pgx.NamedArgs{"brand": e.Brand, "id": id, "on": on, "note": note, "most": mostWebhooks}
	err := e.QueryRow(ctx, q, args).Scan(&before)
	if errors.Is(err, pgx.ErrNoRows) {
		return e.unswitched(ctx, args)
	}
	if err == nil && before != on {
		e.Note(event, map[string]any{"endpoint": id})
	}
	return err
}

// unswitched tells an endpoint that is not there from one too many.
func (e *Edit) unswitched(ctx context.Context, args pgx.NamedArgs) error {
	const q = `SELECT EXISTS (SELECT FROM webhook_endpoints WHERE brand_id = @brand AND id = @id)`
	var there bool
	if err := e.QueryRow(ctx, q, args).Scan(&there); err != nil {
		return err
	}
	if there {
		return ErrTooManyWebhooks
	}
	return ErrNoWebhook
}

// ErrTooManyWebhooks is returned where one more endpoint would be on than may be.
var ErrTooManyWebhooks = errors.New("too many webhook endpoints are on already")

// WebhookAppliers apply the changes of webhooks that an owner allowed. What they
// return is the secret, for the owner to hand on.
func WebhookAppliers(sealer Sealer, site Site) map[string]Applier {
	return map[string]Applier{
		ChangeHookNew: func(ctx context.Context, edit Editor, brand BrandID, payload []byte) (string, error) {
			var d WebhookDraft
			if err := json.Unmarshal(payload, &d); err != nil {
				return "", fmt.Errorf("read change: %w", err)
			}
			_, secret, err := CreateWebhook(ctx, edit, sealer, site, brand, d)
			return secret, err
		},
		ChangeHookRotate: func(ctx context.Context, edit Editor, brand BrandID, payload []byte) (string, error) {
			var p struct {
				ID string `json:"id"`
			}
			if err := json.Unmarshal(payload, &p); err != nil {
				return "", fmt.Errorf("read change: %w", err)
			}
			return RotateWebhook(ctx, edit, sealer, brand, p.ID, WebhookOverlap)
		},
	}
}

// AskWebhook asks for a new endpoint: events name people and what agents may do
// for them, so where they go is an owner's word.
func (a *Asks) AskWebhook(ctx context.Context, edit Editor, site Site, brand BrandID, d WebhookDraft, by, channel string) (PendingChange, error) {
	if p := d.Check(site); len(p) > 0 {
		return PendingChange{}, p
	}
	return a.Ask(ctx, edit, brand, Ask{Kind: ChangeHookNew, By: by, Channel: channel, Diff: map[string]any{"after": d}, Payload: d})
}

// AskWebhookSecret asks for an endpoint's secret to be replaced.
func (a *Asks) AskWebhookSecret(ctx context.Context, edit Editor, brand BrandID, id, by, channel string) (PendingChange, error) {
	w, err := webhookNow(ctx, a.DB, brand, id)
	if err != nil {
		return PendingChange{}, err
	}
	return a.Ask(ctx, edit, brand, Ask{
		Kind: ChangeHookRotate, By: by, Channel: channel,
		Diff:    map[string]any{"webhook": id, "url": w.URL},
		Payload: map[string]string{"id": id},
	})
}

func webhookNow(ctx context.Context, db *DB, brand BrandID, id string) (Webhook, error) {
	all, err := Webhooks(ctx, db, brand)
	if err != nil {
		return Webhook{}, err
	}
	i := slices.IndexFunc(all, func(w Webhook) bool { return w.ID == id })
	if i < 0 {
		return Webhook{}, ErrNoWebhook
	}
	return all[i], nil
}
