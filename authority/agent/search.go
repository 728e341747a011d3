package agent

import (
	"context"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/publicsuffix"
)

// How far strangers can make us reach out. A token that names an unknown issuer
// costs nothing to make, so all of these are of one process and hold for all of
// its Brands together; agents that we know wait for none of them.
const (
	// How long the outcome of a search stands, good or bad.
	keepSearch = time.Minute
	// How many searches run at once, and begin in a minute.
	mostRunning   = 8
	mostPerMinute = 60
	// How many exchanges a minute one site is asked for: whoever names many
	// addresses at one site must not have us knock there for each.
	mostPerSite = 6
)

// found is what an unknown issuer publishes.
type found struct {
	jwksURI string
	set     *keySet
	began   time.Time
}

// search is one discovery, for everybody who asks for that issuer meanwhile.
type search struct {
	began time.Time
	done  chan struct{} // closed when the rest is written
	found found
	err   error
}

// searches are the discoveries under way and of the last minute. It holds as many
// as may begin in that time and no more.
type searches struct {
	lookUp func(ctx context.Context, issuer string, allow func(site string) bool) (found, error)
	now    func() time.Time

	mu      sync.Mutex
	known   map[string]*search // by issuer
	running int
	minute  time.Time      // when the counts began
	begun   int            // searches in this minute
	asked   map[string]int // exchanges in this minute, by site
}

// find returns what the issuer publishes, or ErrUndiscovered.
func (s *searches) find(ctx context.Context, issuer string) (found, error) {
	one := s.begin(issuer)
	if one == nil {
		return found{}, ErrUndiscovered
	}
	if err := wait(ctx, one.done); err != nil {
		return found{}, err
	}
	if one.err != nil {
		return found{}, ErrUndiscovered
	}
	return one.found, nil
}

// begin returns the search for the issuer, a new one if none stands; nil where we
// reach out too much already.
func (s *searches) begin(issuer string) *search {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for name, one := range s.known {
		if over(one.done) && now.Sub(one.began) >= keepSearch {
			delete(s.known, name)
		}
	}
	if one := s.known[issuer]; one != nil {
		return one
	}
	s.turn(now)
	if s.running >= mostRunning || s.begun >= mostPerMinute || !s.allow(siteOf(issuer)) {
		return nil
	}
	s.running++
	s.begun++
	one := &search{began: now, done: make(chan struct{})}
	s.known[issuer] = one
	go s.run(one, issuer)
	return one
}

// run belongs to no caller: whoever began it may go away, the others wait on.
func (s *searches) run(one *search, issuer string) {
	one.found, one.err = s.lookUp(context.Background(), issuer, s.mayAsk) // bounded by the egress client
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	close(one.done)
}

func (s *searches) mayAsk(site string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn(s.now())
	return s.allow(site)
}

// allow counts an exchange with the site, unless it has had too many. s.mu is held.
func (s *searches) allow(site string) bool {
	if s.asked[site] >= mostPerSite {
		return false
	}
	s.asked[site]++
	return true
}

func (s *searches) turn(now time.Time) {
	if now.Sub(s.minute) >= time.Minute {
		s.minute, s.begun, s.asked = now, 0, map[string]int{}
	}
}

func over(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// siteOf is whom a URL belongs to: the domain that somebody registered, of which
// he may have any number of hosts. On this machine it is the port.
func siteOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	host := strings.ToLower(u.Hostname())
	if net.ParseIP(host) != nil {
		return u.Host
	}
	if site, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		return site
	}
	return host
}
