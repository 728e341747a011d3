package verify

import (
	"context"
	"os"
	"testing"
	"time"
)

// The tests' documents are had, however slow the machine is.
func TestMain(m *testing.M) {
	lateAfter = time.Minute
	keyPolicy.patience, placePolicy.patience = lateAfter, lateAfter
	os.Exit(m.Run())
}

// A document whose server has become slow serves as it was; the new one is taken
// when it comes.
func TestAnOlderDocumentServesWhileTheNewOneIsLate(t *testing.T) {
	t.Parallel()
	now := time.Now()
	old, next := "old", "new"
	comes := make(chan struct{})
	k := kept[string]{
		policy: policy{fresh: time.Second, renew: time.Second, most: time.Hour, patience: 10 * time.Millisecond},
		now:    func() time.Time { return now },
		fetch: func(ctx context.Context, last *string) (*string, error) {
			if last == nil {
				return &old, nil
			}
			<-comes
			return &next, nil
		},
	}
	get := func() string {
		t.Helper()
		got, _, err := k.get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return *got
	}
	if got := get(); got != old {
		t.Fatal(got)
	}
	now = now.Add(2 * time.Second)
	if got := get(); got != old {
		t.Errorf("%s, before it came", got)
	}
	k.mu.Lock()
	running := k.running
	k.mu.Unlock()
	close(comes)
	<-running
	if got := get(); got != next {
		t.Errorf("%s, after the new one came", got)
	}
	// One that is too old to serve is waited for, however late.
	now = now.Add(2 * time.Hour)
	if got := get(); got != next {
		t.Error(got)
	}
}
