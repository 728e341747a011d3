package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"countersign.dev/tenants/egress"
)

// fetchTime bounds one fetch, the body included.
const fetchTime = 5 * time.Second

var (
	errNotFetched = errors.New("not fetched yet")
	errOld        = errors.New("what can be had is too old")
)

// document is what a fetch got.
type document struct {
	body []byte
	etag string
	age  time.Duration // as server and caches say: so much older is what they know
}

// ageOf reads the header Age. One that nobody can read is old beyond all bounds.
func ageOf(header http.Header) time.Duration {
	text := header.Get("Age")
	if text == "" {
		return 0
	}
	seconds, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		seconds = math.MaxInt32
	}
	return time.Duration(seconds) * time.Second
}

// get fetches at most so many bytes. notModified: what etag stands for still
// holds. A redirect is an error: who is asked is our decision and not theirs.
func get(ctx context.Context, client *http.Client, from, etag string, most int64) (doc document, notModified bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return document{}, false, errors.New("not a URL that can be fetched")
	}
	if etag != "" {
		r.Header.Set("If-None-Match", etag)
	}
	resp, err := client.Do(r)
	if err != nil {
		return document{}, false, fmt.Errorf("fetch from %s: %w", r.URL.Host, bare(err))
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotModified && etag != "":
		return document{age: ageOf(resp.Header)}, true, nil
	case resp.StatusCode != http.StatusOK:
		return document{}, false, fmt.Errorf("fetch from %s: status %d", r.URL.Host, resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	if err != nil {
		return document{}, false, fmt.Errorf("fetch from %s: %w", r.URL.Host, bare(err))
	}
	if int64(len(body)) > most {
		return document{}, false, fmt.Errorf("fetch from %s: more than %d KiB", r.URL.Host, most>>10)
	}
	return document{body: body, etag: resp.Header.Get("ETag"), age: ageOf(resp.Header)}, false, nil
}

// bare is the error without the whole URL, which http.Client puts in front.
func bare(err error) error {
	if outer := new(url.Error); errors.As(err, &outer) {
		return outer.Err
	}
	return err
}

// steady is a client that follows nowhere.
func steady(c *http.Client) *http.Client {
	if c == nil {
		c = &http.Client{Transport: ownTransport()}
	}
	own := *c
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// ownTransport shares no connections with the rest of the program.
func ownTransport() http.RoundTripper {
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		return t.Clone()
	}
	return http.DefaultTransport
}

// careful is a client for URLs that strangers name: it connects to public
// addresses alone.
func careful(allowLoopback bool) *http.Client {
	return egress.New(egress.Config{AllowLoopback: allowLoopback, Timeout: fetchTime, MaxBytes: maxKeySet}).HTTP()
}

// checkURL demands https, or http to this machine where that is allowed, and
// nothing that would be cut off or added to.
func checkURL(raw string, allowLoopback bool) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return errors.New("not a plain URL")
	case u.Scheme == "https":
		return nil
	}
	return egress.CheckURL(raw, allowLoopback)
}
