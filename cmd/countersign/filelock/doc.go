// Package filelock lets one process at a time work on a file of somebody's own.
//
// It promises that a lock ends with its process, where the system can tell. Start
// at [Take].
package filelock

import (
	"context"
	"time"
)

// Take waits until nobody else holds the lock whose file is at path, or ctx is over.
// The file is the lock's own and holds nothing.
func Take(ctx context.Context, path string) (release func(), err error) { return lock(ctx, path) }

// pause is between two tries.
func pause(ctx context.Context) error {
	t := time.NewTimer(20 * time.Millisecond)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
