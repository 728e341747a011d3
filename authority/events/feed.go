package events

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"countersign.dev/authority"
	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5"
)

// channel is where the trail's trigger tells that a Brand's grants changed.
const channel = "countersign_grants"

const (
	// suspicion is after how long a silent connection is asked whether it lives.
	suspicion = 500 * time.Millisecond
	// glance is how old a Brand's place may be that followers look at when no
	// notification came: what a lost one costs.
	glance = time.Second
)

// Feed wakes those who follow Brands' trails. All of an instance's followers
// share one connection that listens; where it fails they look for themselves.
type Feed struct {
	db     *tenants.DB
	places tenants.Memo[tenants.BrandID, int64]
	log    *slog.Logger
	done   chan struct{}

	mu        sync.Mutex
	followers map[tenants.BrandID]map[*Follower]struct{}
}

// NewFeed returns a Feed that is silent until Run.
func NewFeed(db *tenants.DB, log *slog.Logger) *Feed {
	f := &Feed{db: db, log: log, done: make(chan struct{}), followers: make(map[tenants.BrandID]map[*Follower]struct{})}
	f.places = tenants.Memo[tenants.BrandID, int64]{
		Fresh: glance, Now: time.Now, // the network's time, not the rules'
		Load: func(ctx context.Context, brand tenants.BrandID) (int64, error) {
			return authority.LastPlace(ctx, db, brand)
		},
	}
	return f
}

// Done is closed when no more will come, because the service stops.
func (f *Feed) Done() <-chan struct{} { return f.done }

// Run listens until ctx ends.
func (f *Feed) Run(ctx context.Context) {
	defer close(f.done)
	const pause = time.Second
	for ctx.Err() == nil {
		if err := f.listen(ctx); err != nil && ctx.Err() == nil {
			f.log.WarnContext(ctx, "the connection that listens for events ended", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// listen wakes followers for as long as one connection lasts.
func (f *Feed) listen(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, f.db.Pool().Config().ConnConfig)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return err
	}
	f.wakeAll() // what was told before we listened
	for {
		brand, err := f.hear(ctx, conn)
		if err != nil {
			return err
		}
		if brand != "" {
			f.wake(brand)
		}
	}
}

// hear returns the Brand that something is told of, or none after a while in
// which the connection proved to be alive.
func (f *Feed) hear(ctx context.Context, conn *pgx.Conn) (tenants.BrandID, error) {
	quiet, cancel := context.WithTimeout(ctx, suspicion)
	n, err := conn.WaitForNotification(quiet)
	cancel()
	if err == nil {
		return tenants.BrandID(n.Payload), nil
	}
	if quiet.Err() == nil || ctx.Err() != nil {
		return "", err
	}
	alive, cancel := context.WithTimeout(ctx, suspicion)
	defer cancel()
	return "", conn.Ping(alive)
}

func (f *Feed) wake(brand tenants.BrandID) {
	f.places.Forget(brand)
	f.mu.Lock()
	defer f.mu.Unlock()
	for follower := range f.followers[brand] {
		follower.nudge()
	}
}

func (f *Feed) wakeAll() {
	f.mu.Lock()
	brands := make([]tenants.BrandID, 0, len(f.followers))
	for brand := range f.followers {
		brands = append(brands, brand)
	}
	f.mu.Unlock()
	for _, brand := range brands {
		f.wake(brand)
	}
}

// Follower is one who follows a Brand's trail. Nothing is kept for it: it reads
// when it can take more.
type Follower struct {
	feed  *Feed
	brand tenants.BrandID
	news  chan struct{}
}

// Follow takes in a follower of the Brand's trail, unless there are as many as
// may be. Leave lets it go.
func (f *Feed) Follow(brand tenants.BrandID, most int) (*Follower, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.followers[brand]
	if len(all) >= most {
		return nil, false
	}
	if all == nil {
		all = make(map[*Follower]struct{})
		f.followers[brand] = all
	}
	w := &Follower{feed: f, brand: brand, news: make(chan struct{}, 1)}
	all[w] = struct{}{}
	return w, true
}

// Leave ends it.
func (w *Follower) Leave() {
	w.feed.mu.Lock()
	defer w.feed.mu.Unlock()
	delete(w.feed.followers[w.brand], w)
	if len(w.feed.followers[w.brand]) == 0 {
		delete(w.feed.followers, w.brand)
	}
}

func (w *Follower) nudge() {
	select {
	case w.news <- struct{}{}:
	default: // it has not looked yet since the last
	}
}

// News is ready when there may be something to read.
func (w *Follower) News() <-chan struct{} { return w.news }

// Now is where the trail ends.
func (w *Follower) Now(ctx context.Context) (int64, error) {
	return authority.LastPlace(ctx, w.feed.db, w.brand)
}

// Place is where the trail ended, a second ago at the earliest.
func (w *Follower) Place(ctx context.Context) (int64, error) {
	return w.feed.places.Get(ctx, w.brand)
}

// Read returns what is told after a place, oldest first, and no more than most.
func (w *Follower) Read(ctx context.Context, after int64, most int) ([]authority.Event, error) {
	return authority.Told(ctx, w.feed.db, w.brand, after, most)
}
