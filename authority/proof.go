package authority

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"countersign.dev/authority/receiptlog"
	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/mod/sumdb/tlog"
)

// hashes reads the tree of the Brand's log: a hash stands beside the leaf that
// completed it, so that a proof in a log of a million is one look at some twenty
// rows, and mostly fewer, since what stands for many lines is remembered in known;
// nil: everything is read.
func (a *Authority) hashes(ctx context.Context, brand tenants.BrandID, known *upper) tlog.HashReader {
	return tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		const q = `SELECT seq, hashes FROM receipts WHERE brand_id = @brand AND seq = ANY (@seqs)`
		out := make([]tlog.Hash, len(indexes))
		var seqs []int64
		var open []int // of indexes, those to be read
		for i, index := range indexes {
			var found bool
			if out[i], found = known.find(brand, index); !found {
				open, seqs = append(open, i), append(seqs, receiptlog.PlaceOf(index).Seq)
			}
		}
		if len(open) == 0 {
			return out, nil
		}
		type row struct {
			Seq    int64
			Hashes []byte
		}
		rows, err := tenants.All[row](ctx, a.db, brand, q, pgx.NamedArgs{"brand": brand, "seqs": seqs})
		if err != nil {
			return nil, err
		}
		beside := make(map[int64][]byte, len(rows))
		for _, r := range rows {
			beside[r.Seq] = r.Hashes
		}
		for _, i := range open {
			place := receiptlog.PlaceOf(indexes[i])
			if out[i], err = place.Pick(beside[place.Seq]); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrForked, err)
			}
			known.remember(brand, indexes[i], out[i])
		}
		return out, nil
	})
}

// LogSize is how many entries the Brand's log has.
func (a *Authority) LogSize(ctx context.Context, brand tenants.BrandID) (int64, error) {
	const q = `SELECT coalesce((SELECT size FROM log_heads WHERE brand_id = @brand), 0) AS size`
	r, err := tenants.One[struct{ Size int64 }](ctx, a.db, brand, q, pgx.NamedArgs{"brand": brand})
	if err != nil {
		return 0, fmt.Errorf("size of the log of %s: %w", brand, err)
	}
	return r.Size, nil
}

// Inclusion proves that the entry seq is in the log of size entries (RFC 6962
// §2.1.1), to whoever has the entry. Sizes that the log has not come to are
// ErrUnknown. The proof says nothing but hashes.
func (a *Authority) Inclusion(ctx context.Context, brand tenants.BrandID, seq, size int64) ([]tlog.Hash, error) {
	if err := a.reached(ctx, brand, size); err != nil {
		return nil, err
	}
	if seq < 0 || seq >= size {
		return nil, ErrUnknown
	}
	p, err := tlog.ProveRecord(size, seq, a.hashes(ctx, brand, &a.log.upper))
	if err != nil {
		return nil, fmt.Errorf("prove entry %d of %s: %w", seq, brand, err)
	}
	return p, nil
}

// Consistency proves that the log of the first size is the beginning of the log of
// the second (RFC 6962 §2.1.2).
func (a *Authority) Consistency(ctx context.Context, brand tenants.BrandID, from, to int64) ([]tlog.Hash, error) {
	if err := a.reached(ctx, brand, to); err != nil {
		return nil, err
	}
	if from < 1 || from > to {
		return nil, ErrUnknown
	}
	p, err := tlog.ProveTree(to, from, a.hashes(ctx, brand, &a.log.upper))
	if err != nil {
		return nil, fmt.Errorf("prove the log of %s from %d to %d: %w", brand, from, to, err)
	}
	return p, nil
}

// reached is ErrUnknown for sizes that the log has not come to. As it only grows,
// what it came to once need not be asked again.
func (a *Authority) reached(ctx context.Context, brand tenants.BrandID, size int64) error {
	if size < 1 {
		return ErrUnknown
	}
	if size <= a.log.known(brand, 0) {
		return nil
	}
	now, err := a.LogSize(ctx, brand)
	if err == nil && size > a.log.known(brand, now) {
		err = ErrUnknown
	}
	return err
}

// known is the greatest size that anybody has seen the Brand's log have.
func (l *log) known(brand tenants.BrandID, seen int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if seen > l.grown[brand] {
		if l.grown == nil {
			l.grown = make(map[tenants.BrandID]int64)
		}
		l.grown[brand] = seen
	}
	return l.grown[brand]
}

// LogEntry is a line of the log, and the salt with which whoever has the receipt
// shows that it is its line. Salt is nil where the person was erased.
type LogEntry struct {
	Seq   int64
	Entry json.RawMessage
	Salt  []byte
	Grant uuid.UUID
}

// LogEntry returns a line of the Brand's log; an unknown one is ErrUnknown.
func (a *Authority) LogEntry(ctx context.Context, brand tenants.BrandID, seq int64) (LogEntry, error) {
	return a.logEntry(ctx, brand, seq, Caller{}, true)
}

// LogEntryOfAgent is LogEntry of what was done under a grant of the caller's, living
// or ended; of any other it is ErrUnknown.
func (a *Authority) LogEntryOfAgent(ctx context.Context, brand tenants.BrandID, who Caller, seq int64) (LogEntry, error) {
	return a.logEntry(ctx, brand, seq, who, false)
}

func (a *Authority) logEntry(ctx context.Context, brand tenants.BrandID, seq int64, who Caller, all bool) (LogEntry, error) {
	const q = `
		SELECT r.seq, r.entry, r.salt, r.grant_id AS grant
		  FROM receipts r
		 WHERE r.brand_id = @brand AND r.seq = @seq
		   AND (@all OR EXISTS (SELECT FROM grants g WHERE g.brand_id = @brand AND g.id = r.grant_id
		                           AND g.agent = @agent AND g.agent_sub = @sub))`
	type row struct {
		Seq   int64
		Entry string
		Salt  []byte
		Grant uuid.UUID
	}
	r, err := tenants.One[row](ctx, a.db, brand, q, pgx.NamedArgs{
		"brand": brand, "seq": seq, "all": all, "agent": who.Agent, "sub": who.Sub,
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return LogEntry{}, ErrUnknown
	}
	if err != nil {
		return LogEntry{}, fmt.Errorf("read entry %d of %s: %w", seq, brand, err)
	}
	return LogEntry{Seq: r.Seq, Entry: json.RawMessage(r.Entry), Salt: r.Salt, Grant: r.Grant}, nil
}
