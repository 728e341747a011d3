package events

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"sync"
	"time"

	"countersign.dev/authority"
	"countersign.dev/tenants"
	"countersign.dev/tenants/egress"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
)

const (
	// workers bounds how many endpoints one instance serves at once. A worker
	// waits for others most of its time.
	workers = 500
	// width is how many requests one instance has under way to one endpoint.
	width = 4
	// slice is how long one job serves one endpoint before it makes room.
	slice = 20 * time.Second
	// farewell is how long attempts under way may go on when the service stops.
	farewell = 8 * time.Second
)

// Courier delivers what stands in the outbox. Safe for use by any number of
// instances over one database.
type Courier struct {
	*Outbox
	receivers *tenants.Receivers
	http      *http.Client
	log       *slog.Logger
	count     counters
	edit      tenants.Editor
	signer    authority.Signer
	work      *river.Client[pgx.Tx]
	stopping  chan struct{}

	mu   sync.Mutex
	busy map[line]bool // who is being served; true: and was rung for meanwhile
}

// line is an endpoint of a Brand.
type line struct {
	brand    tenants.BrandID
	endpoint string
}

// Config is what a Courier needs.
type Config struct {
	DB     *tenants.DB
	Sealer tenants.Sealer
	// Signer signs Security Event Tokens.
	Signer authority.Signer
	Now    func() time.Time
	Log    *slog.Logger
	// AllowLoopback lets endpoints be on this machine, for development only.
	AllowLoopback bool
	// Edit is whose change it is when an endpoint asks to be called no more.
	Edit    tenants.Editor
	Metrics prometheus.Registerer // nil: nowhere
}

// NewCourier returns a Courier that rests until Run.
func NewCourier(c Config) (*Courier, error) {
	outbox, err := NewOutbox(c.DB, c.Now)
	if err != nil {
		return nil, err
	}
	k := &Courier{
		edit: c.Edit, signer: c.Signer,
		Outbox: outbox, receivers: tenants.NewReceivers(c.DB, c.Sealer, c.Now), log: c.Log,
		http: egress.New(egress.Config{
			AllowLoopback: c.AllowLoopback, Timeout: patience, UserAgent: "Countersign-Webhooks",
			MaxBytes: math.MaxInt64, // 2xx is delivered, whatever follows; it is not read
		}).HTTP(),
		count: newCounters(c.Metrics), stopping: make(chan struct{}), busy: make(map[line]bool),
	}
	bells := river.NewWorkers()
	river.AddWorker(bells, &bell{courier: k})
	k.work, err = river.NewClient(riverpgxv5.New(c.DB.Pool()), &river.Config{
		Queues:  map[string]river.QueueConfig{queue: {MaxWorkers: workers}},
		Workers: bells, Logger: c.Log, RetryPolicy: soon{now: time.Now},
		// From a commit to a request it takes a notification and the first of these;
		// the second where a notification was saved or lost.
		FetchCooldown: 20 * time.Millisecond, FetchPollInterval: 250 * time.Millisecond,
		// A job whose process was killed comes back after the second of these.
		JobTimeout: time.Minute, RescueStuckJobsAfter: 90 * time.Second,
		// Jobs are bells: what happened stands in webhook_deliveries.
		CompletedJobRetentionPeriod: time.Hour,
		SoftStopTimeout:             farewell,
		// REINDEX is for an owner, which the service is not.
		ReindexerIndexNames: []string{},
	})
	if err != nil {
		return nil, fmt.Errorf("open the job queue: %w", err)
	}
	return k, nil
}

// Run works until ctx ends and attempts under way are over. It is called once.
func (c *Courier) Run(ctx context.Context) {
	const pause = 5 * time.Second
	for {
		err := c.work.Start(ctx)
		if err == nil {
			break
		}
		c.log.ErrorContext(ctx, "webhooks are not delivered yet", "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
	<-ctx.Done()
	close(c.stopping)
	<-c.work.Stopped()
}

// soon lets a job that failed, most often because the database was away, come
// back within a minute.
type soon struct{ now func() time.Time }

// NextRetry implements river.ClientRetryPolicy.
func (s soon) NextRetry(job *rivertype.JobRow) time.Time {
	const longest = time.Minute
	wait := longest
	if n := len(job.Errors); n < 6 {
		wait = time.Second << n
	}
	return s.now().Add(wait)
}

// bell is the worker.
type bell struct {
	river.WorkerDefaults[wake]
	courier *Courier
}

// Work implements river.Worker.
func (b *bell) Work(ctx context.Context, job *river.Job[wake]) error {
	return b.courier.answer(ctx, job.Args)
}

// answer serves the endpoint that was rung for, unless it is being served: then
// whoever serves it looks once more before he goes.
func (c *Courier) answer(ctx context.Context, w wake) error {
	l := line{w.Brand, w.Endpoint}
	if w.At != 0 {
		if err := c.unset(ctx, l, time.UnixMicro(w.At)); err != nil {
			return err
		}
	}
	if !c.begin(l) {
		return nil
	}
	served := true
	defer func() {
		if served { // a panic must not leave it marked for ever
			c.end(l, false)
		}
	}()
	for {
		next, err := c.Drain(ctx, w.Brand, w.Endpoint)
		again := c.end(l, err == nil && !c.isStopping())
		served = again
		switch {
		case err != nil:
			return err
		case c.isStopping():
			return river.JobSnooze(0) // for another instance, or the next run
		case again:
			continue
		case next.IsZero():
			return nil
		case !next.After(c.now()):
			return river.JobSnooze(0) // its turn is over, its work is not
		}
		return c.set(ctx, l, next)
	}
}

func (c *Courier) begin(l line) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.busy[l]; ok {
		c.busy[l] = true
		return false
	}
	c.busy[l] = false
	return true
}

// end takes leave of the endpoint and reports whether to go on, because it was
// rung for meanwhile.
func (c *Courier) end(l line, mayGoOn bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy[l] && mayGoOn {
		c.busy[l] = false
		return true
	}
	delete(c.busy, l)
	return false
}

func (c *Courier) isStopping() bool {
	select {
	case <-c.stopping:
		return true
	default:
		return false
	}
}
