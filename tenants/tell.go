package tenants

import (
	"context"
	"slices"

	"github.com/google/uuid"
)

// Telling is the Editor of whose edits every owner hears by mail: what an edit
// notes and the notices of it become true together. Where events are named, only
// those are told. An edit that notes nothing changed nothing, and tells nobody.
// by is the member who makes them.
func (edit Editor) Telling(by uuid.UUID, events ...string) Editor {
	return func(ctx context.Context, brand BrandID, fn func(*Edit) error) error {
		return edit(ctx, brand, func(e *Edit) error {
			var told []string
			note := e.Note
			e.Note = func(event string, detail map[string]any) {
				note(event, detail)
				if (len(events) == 0 || slices.Contains(events, event)) && !slices.Contains(told, event) {
					told = append(told, event)
				}
			}
			if err := fn(e); err != nil {
				return err
			}
			for _, event := range told {
				if err := (Act{Brand: brand, By: by, Event: event, Now: e.Now}).tellOwners(ctx, e.Tx); err != nil {
					return err
				}
			}
			return nil
		})
	}
}
