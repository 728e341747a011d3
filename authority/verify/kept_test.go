package verify

import (
	"context"
	"errors"
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

// A clock that was put back says of nothing how old it is: what was fetched later than
// now is fetched anew, at once, and serves for nobody where it cannot be.
func TestAClockThatGoesBackMakesNothingYounger(t *testing.T) {
	t.Parallel()
	now, fetched := time.Now(), 0
	var broken error
	k := kept[int]{
		policy: policy{fresh: time.Minute, renew: time.Minute, most: time.Hour, pause: 2 * time.Second, patience: time.Minute},
		now:    func() time.Time { return now },
		fetch: func(context.Context, *int) (*int, error) {
			fetched++
			n := fetched
			return &n, broken
		},
	}
	gets := func(what string, want int) {
		t.Helper()
		if got, _, err := k.get(t.Context()); err != nil || *got != want {
			t.Errorf("%s: %v, %v, want %d", what, got, err, want)
		}
	}
	gets("at first", 1)
	now = now.Add(-time.Hour)
	gets("an hour back", 2)
	broken = errors.New("away")
	now = now.Add(-time.Hour)
	for range 2 { // by a fetch that fails, and in the pause after it
		if got, _, err := k.get(t.Context()); !errors.Is(err, broken) {
			t.Errorf("two hours back, while nothing can be fetched: %v, %v", got, err)
		}
	}
	if fetched != 3 {
		t.Errorf("%d fetches", fetched)
	}
	broken = nil
	now = now.Add(2 * time.Second)
	gets("when it can be fetched again", 4)
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
