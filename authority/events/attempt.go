package events

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"countersign.dev/tenants"
)

const (
	// patience bounds one attempt, the answer included.
	patience = 10 * time.Second
	// lease is how long a claimed delivery is left alone: longer than an attempt
	// and its note can take.
	lease = 30 * time.Second
	// giveUp ends a delivery that an endpoint in trouble never had the time for.
	giveUp = 36 * time.Hour
)

// waits lie between attempts: twelve in a day.
var waits = []time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 4 * time.Hour, 6 * time.Hour, 10 * time.Hour,
}

// backoff is how long to wait after so many tries, and whether to try again at
// all. Spread, so that what failed together does not come back together.
func backoff(tries int) (time.Duration, bool) {
	if tries > len(waits) {
		return 0, false
	}
	const spread = 0.2
	return time.Duration(float64(waits[max(tries, 1)-1]) * (1 - spread + 2*spread*rand.Float64())), true
}

// rest is how long an endpoint is let alone after so many failures in a row.
func rest(failures int) time.Duration {
	const longest = time.Minute
	if failures > 6 {
		return longest
	}
	return min(longest, time.Second<<max(failures-1, 0))
}

// outcome is what came of an attempt, in words that hold nothing of the answer.
type outcome struct {
	status int    // 0: no answer
	words  string // empty: delivered
}

// attempt sends the delivery once.
func (c *Courier) attempt(ctx context.Context, to tenants.Receiver, d claimed, body []byte) outcome {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL, bytes.NewReader(body))
	if err != nil {
		return outcome{words: "the URL does not parse"}
	}
	r.Header.Set("Content-Type", "application/json")
	if to.Format == tenants.FormatSET { // RFC 8935 §2.1
		r.Header.Set("Content-Type", "application/secevent+jwt")
		r.Header.Set("Accept", "application/json")
	}
	Sign(r.Header, to.Keys, d.ID, c.now(), body)
	resp, err := c.http.Do(r)
	if err != nil {
		// http.Client puts the whole URL in front, which may hold something secret.
		if outer, ok := errors.AsType[*url.Error](err); ok {
			err = outer.Err
		}
		if errors.Is(err, context.DeadlineExceeded) {
			return outcome{words: "no answer in time"}
		}
		return outcome{words: err.Error()}
	}
	// What it says is of no interest. A short answer is read to its end all the
	// same, or the connection could not be used again.
	const short = 4 << 10
	_, _ = io.CopyN(io.Discard, resp.Body, short)
	_ = resp.Body.Close()
	if resp.StatusCode/100 == 2 {
		return outcome{status: resp.StatusCode}
	}
	return outcome{status: resp.StatusCode, words: fmt.Sprintf("answered %d", resp.StatusCode)}
}
