package tenants

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Telling is the Editor of whose edits every owner hears by mail: what an edit
// notes and the notices of it become true together. Where events are named, only
// those are told. An edit that notes nothing changed nothing, and tells nobody.
// by is the member who makes them.
func (edit Editor) Telling(by uuid.UUID, events ...string) Editor {
	return edit.telling(events, func(ctx context.Context, e *Edit, event string) error {
		return Act{Brand: e.Brand, By: by, Event: event, Now: e.Now}.tellOwners(ctx, e.Tx)
	})
}

// TellingFor is Telling for somebody who is no member.
func (edit Editor) TellingFor(by Asker, events ...string) Editor {
	return edit.telling(events, func(ctx context.Context, e *Edit, event string) error {
		return by.TellOwners(ctx, e.Tx, e.Brand, event, e.Now)
	})
}

func (edit Editor) telling(events []string, tell func(ctx context.Context, e *Edit, event string) error) Editor {
	return func(ctx context.Context, brand BrandID, fn func(*Edit) error) error {
		return edit(ctx, brand, func(e *Edit) error {
			var told []string
			note := e.Note
			e.Note = func(event string, detail map[string]any) {
				note(event, detail)
				if (len(events) == 0 || slices.Contains(events, event) && heard(event, detail)) && !slices.Contains(told, event) {
					told = append(told, event)
				}
			}
			if err := fn(e); err != nil {
				return err
			}
			for _, event := range told {
				if err := tell(ctx, e, event); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// heard reports whether owners hear of the event by its name: of the settings, only
// who may ask is that much, and which keys sign for how long.
func heard(event string, detail map[string]any) bool {
	if event != "brand.settings" {
		return true
	}
	changed, _ := detail["changed"].(map[string]Difference)
	for _, field := range []string{"agents", "signing_alg", "rotation_days"} {
		if _, differs := changed[field]; differs {
			return true
		}
	}
	return false
}

// Asker is whoever changes a Brand, or asks for it, and is no member.
type Asker struct {
	Name    string // an API key's id, or operator
	Channel string // api or cli
}

// OwnersHear are the events that owners hear of when it was no owner who made them
// true: those of which they hear when another owner does it on the dashboard. Of the
// settings they hear where the rule changes which agents may ask, or which keys sign
// for how long. Of what becomes of signing keys and of the Brand's end, package
// authority has them hear.
func OwnersHear() []string {
	return []string{
		"brand.paused", "brand.resumed", "brand.interface", "brand.settings", "provider.made", "provider.named", "scope.retired", "scope.restored",
		"domain.added", "domain.removed", "login.candidate", "login.live", "login.removed",
		"apikey.created", "apikey.rotated", "apikey.revoked",
		"webhook.created", "webhook.events", "webhook.secret_rotated", "webhook.enabled", "webhook.disabled",
		"agent_endpoint.set", "agent_endpoint.removed", "agent_endpoint.secret_rotated",
		EventWithdrawn, EventRecoveryCancelled, EventExported, "change.rejected", "change.applied",
	}
}

// countedEvents are those of them that an API key can bring about again and again
// by itself. Of these an owner gets a bounded number of letters; what tells of keys
// and members, or of what an owner allowed, is never left out.
func countedEvents() []string {
	return []string{
		"brand.paused", "brand.resumed", "scope.retired", "scope.restored", "login.candidate", "login.removed",
		"webhook.events", "webhook.secret_rotated", "webhook.enabled", "webhook.disabled",
		"agent_endpoint.set", "agent_endpoint.removed", "agent_endpoint.secret_rotated",
		EventExported, "change.rejected",
	}
}

// TellOwners has every owner hear of the event by mail, in the transaction that
// makes it true. Of what an API key can repeat without end they hear mostAsked times
// an hour.
func (by Asker) TellOwners(ctx context.Context, tx pgx.Tx, brand BrandID, event string, now time.Time) error {
	most := 0
	if by.Channel == "api" && slices.Contains(countedEvents(), event) {
		most = mostAsked
	}
	return by.tell(ctx, tx, brand, event, map[string]any{}, most, now)
}

// mostAsked bounds the letters about one kind of event in an hour: whoever has taken
// a key can ask without end, and twenty letters have said it.
const mostAsked = 20

// EventAsked is the fact that a change waits for an owner.
const EventAsked = "change.asked"

func (by Asker) tellAsked(ctx context.Context, tx pgx.Tx, brand BrandID, kind string, now time.Time) error {
	return by.tell(ctx, tx, brand, EventAsked, map[string]any{"change": kind}, mostAsked, now)
}

// tell writes the notices; most, where it is not zero, is how many of the event
// one owner hears of within an hour. Where a program repeats what an owner is about to
// hear of word for word, one letter says it. by is nobody's id: a member did not do it.
func (by Asker) tell(ctx context.Context, tx pgx.Tx, brand BrandID, event string, detail map[string]any, most int, now time.Time) error {
	const q = `
		INSERT INTO notices (brand_id, id, person_id, kind, detail, created_at)
		SELECT m.brand_id, gen_random_uuid(), m.person_id, @event, @detail, @now
		  FROM memberships m
		 WHERE m.brand_id = @brand AND m.role = 'owner'
		   AND (@most = 0 OR (SELECT count(*) FROM notices n
		                       WHERE n.brand_id = @brand AND n.person_id = m.person_id
		                         AND n.kind = @event AND n.created_at > @hour) < @most)
		   AND (@channel <> 'api' OR NOT EXISTS (
		       SELECT FROM notices n
		        WHERE n.brand_id = @brand AND n.person_id = m.person_id AND n.kind = @event AND n.detail = @detail
		          AND n.sent_at IS NULL AND n.claimed_at IS NULL))`
	detail["asked_by"], detail["channel"] = by.Name, by.Channel
	_, err := tx.Exec(ctx, q, pgx.NamedArgs{
		"brand": brand, "event": event, "detail": detail, "now": now, "most": most, "hour": now.Add(-time.Hour), "channel": by.Channel,
	})
	return err
}
