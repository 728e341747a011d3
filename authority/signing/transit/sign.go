package transit

import (
	"context"
	"fmt"

	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
)

// Sign implements signing.Backend. Each job may travel with jobs of other
// callers; a caller's deadline ends its own waiting only.
func (b *Backend) Sign(ctx context.Context, brand tenants.BrandID, jobs []signing.Job) []signing.Result {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	results := make([]signing.Result, len(jobs))
	items := make([]*item, len(jobs))
	var lanes map[laneKey][]*item
	for i, job := range jobs {
		if err := b.admit(brand, job); err != nil {
			results[i].Err = err
			continue
		}
		items[i] = &item{ctx: ctx, digest: job.Digest, result: make(chan signing.Result, 1)}
		if lanes == nil {
			lanes = make(map[laneKey][]*item, 1)
		}
		key := laneKey{brand, job.Alg, job.Version}
		lanes[key] = append(lanes[key], items[i])
	}
	for key, of := range lanes {
		if err := b.gather.add(key, of...); err != nil {
			answerAll(of, err)
		}
	}
	for i, it := range items {
		if it != nil {
			results[i] = it.wait(ctx)
		}
		if results[i].Err != nil {
			results[i].Err = fmt.Errorf("%s: key %d of %s: %w", b.name, jobs[i].Version, brand, results[i].Err)
		}
	}
	return results
}

func (b *Backend) admit(brand tenants.BrandID, job signing.Job) error {
	if job.Version < 1 {
		// Version 0 would let Vault choose the newest.
		return fmt.Errorf("no version is named: %w", signing.ErrNoKey)
	}
	_, err := b.keyName(brand, job.Alg)
	return err
}

func (it *item) wait(ctx context.Context) signing.Result {
	select {
	case r := <-it.result:
		return r
	case <-ctx.Done():
		return signing.Result{Err: fmt.Errorf("%w: %w", signing.ErrUnavailable, ctx.Err())}
	}
}

func answerAll(items []*item, err error) {
	for _, it := range items {
		it.result <- signing.Result{Err: err}
	}
}
