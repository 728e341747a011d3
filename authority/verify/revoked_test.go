package verify

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority/statuslist"
)

// P41, M21: a revocation is known five seconds later, a suspension too, and when it
// is lifted as well.
func TestARevocationIsKnownSecondsLater(t *testing.T) {
	s := newScene(t)
	token := s.token(nil)
	want := func(what string, refusal error) {
		t.Helper()
		if _, err := s.call(token); !errors.Is(err, refusal) || refusal != nil && !errors.Is(err, ErrToken) {
			t.Errorf("%s: %v", what, err)
		}
	}
	want("good", nil)
	s.list.Set(0, statuslist.Suspended)
	s.advance(6 * time.Second)
	want("suspended", ErrSuspended)
	s.list.Set(0, statuslist.Valid)
	s.advance(6 * time.Second)
	want("good again", nil)
	s.list.Set(0, statuslist.Invalid)
	s.advance(6 * time.Second)
	want("revoked", ErrRevoked)
	if _, err := s.call(s.token(map[string]any{"status": at(1, s.issuer()+"/status/0")})); err != nil {
		t.Errorf("another grant: %v", err)
	}
	if _, err := s.call(s.token(map[string]any{"status": at(64, s.issuer()+"/status/0")})); !errors.Is(err, ErrToken) {
		t.Errorf("beyond the list: %v", err)
	}
}

// R54: what is known is never older than Stale; then nobody with a token is let
// in, unless the Brand has said so – and even then not whom it knows to be out.
func TestTheBoundOfStalenessHolds(t *testing.T) {
	for _, failOpen := range []bool{false, true} {
		s := newScene(t, func(c *Config, _ *AgentsConfig) { c.Stale, c.FailOpen = 20*time.Second, failOpen })
		s.list.Set(1, statuslist.Invalid)
		good, out := s.token(nil), s.token(map[string]any{"status": at(1, s.issuer()+"/status/0")})
		if _, err := s.call(good); err != nil {
			t.Fatal(err)
		}
		s.authority.fails("/oauth/status/0")
		s.advance(20 * time.Second)
		if _, err := s.call(good); err != nil {
			t.Errorf("within the bound: %v", err)
		}
		for _, later := range []time.Duration{time.Second, 20 * time.Minute} { // then the list has expired, too
			s.advance(later)
			_, err := s.call(good)
			if failOpen && err != nil || !failOpen && !errors.Is(err, ErrUnavailable) {
				t.Errorf("fail open %v, %s beyond it: %v", failOpen, later, err)
			}
			if _, err := s.call(out); failOpen && !errors.Is(err, ErrRevoked) || !failOpen && !errors.Is(err, ErrUnavailable) {
				t.Errorf("fail open %v, revoked: %v", failOpen, err)
			}
		}
		if _, _, reached := s.through(shown(s.proof(nil), "")); !reached {
			t.Error("a call without a token needs no list")
		}
	}
}

// A list that is over by its own word says nothing, however long Stale is: that is no
// verdict on a token, and it is not gone by in the seconds after a fetch either.
func TestAListThatIsOverIsNoVerdict(t *testing.T) {
	for _, failOpen := range []bool{false, true} {
		s := newScene(t, func(c *Config, _ *AgentsConfig) { c.Stale, c.FailOpen = time.Hour, failOpen })
		s.list.Set(1, statuslist.Invalid)
		judged := func(what string, over bool) {
			t.Helper()
			_, err := s.call(s.token(nil))
			if over && !failOpen && (!errors.Is(err, ErrUnavailable) || errors.Is(err, ErrToken)) || (!over || failOpen) && err != nil {
				t.Errorf("fail open %v, %s: %v", failOpen, what, err)
			}
			want := ErrRevoked
			if over && !failOpen {
				want = ErrUnavailable
			}
			if _, err := s.call(s.token(map[string]any{"status": at(1, s.issuer()+"/status/0")})); !errors.Is(err, want) {
				t.Errorf("fail open %v, %s, revoked: %v", failOpen, what, err)
			}
		}
		judged("new", false)
		s.authority.fails("/oauth/status/0")
		s.advance(10*time.Minute - time.Second)
		judged("in its last second", false)
		s.advance(time.Second)
		judged("over", true)
		ends := map[string]any{"exp": s.now().Add(5 * time.Second).Unix()}
		s.authority.serve("/oauth/status/0", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, s.statusList(s.brand, ends))
		})
		s.advance(2 * time.Second)
		judged("fetched anew", false)
		ends = nil
		s.advance(3 * time.Second)
		judged("over while it was fresh, and there is a new one", false)
	}
}

// A list that ends between being got and being read has judged nobody.
func TestAListThatEndsMeanwhileIsNoVerdict(t *testing.T) {
	const uri = brandIssuer + "/status/0"
	ends := noon.Add(time.Hour)
	for before, want := range map[time.Duration]error{2 * time.Second: nil, time.Second: ErrUnavailable} {
		now := ends.Add(-before - time.Second)
		r := &revocations{issuer: brandIssuer, now: func() time.Time { now = now.Add(time.Second); return now }, ended: newEnded(time.Now)}
		r.lists = map[string]*kept[fetchedList]{uri: {
			policy: policy{fresh: time.Hour, renew: time.Hour, most: time.Hour, pause: time.Hour}, now: r.now,
			until: func(l *fetchedList) time.Time { return l.Expires },
			value: &fetchedList{StatusList: StatusList{URI: uri, Expires: ends, answers: statuslist.New(1, statuslist.Valid)}},
			asOf:  now, tried: now,
		}}
		if err := r.judge(t.Context(), &Delegation{Status: &StatusRef{URI: uri}}); !errors.Is(err, want) || errors.Is(err, ErrStatusList) {
			t.Errorf("%s before it ends: %v", before, err)
		}
	}
}

// The bound is of what is known, not of when it was fetched: an authority that cannot
// tell whether its list still holds says how old it is, a cache says how long it kept
// it, and both count; also where nothing else is said than that nothing changed.
func TestTheBoundOfStalenessCountsFromTheAuthority(t *testing.T) {
	s := newScene(t)
	age, same := "20", false
	s.authority.serve("/oauth/status/0", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Age", age)
		w.Header().Set("ETag", `"1"`)
		if same = r.Header.Get("If-None-Match") == `"1"`; same {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = io.WriteString(w, s.statusList(s.brand, nil))
	})
	token := s.token(nil)
	for _, step := range []struct {
		later time.Duration
		age   string
		good  bool
	}{
		{0, "20", true},
		{6 * time.Second, "26", true},
		{4 * time.Second, "30", true},
		{3 * time.Second, "33", false},
		{3 * time.Second, "0", true},
		{6 * time.Second, "x", false},
		{3 * time.Second, "-1", false},
		{3 * time.Second, "99999999999", false},
		{3 * time.Second, "1", true},
	} {
		age = step.age
		s.advance(step.later)
		if _, err := s.call(token); step.good && err != nil || !step.good && !errors.Is(err, ErrUnavailable) {
			t.Errorf("%s old at %s: %v", age, s.now(), err)
		}
	}
	if !same {
		t.Error("never asked whether it changed")
	}
	// An authority with a change that it cannot sign answers 503: what there is serves
	// for the rest of the bound and no longer.
	s.authority.serve("/oauth/status/0", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	for _, step := range []struct {
		later time.Duration
		good  bool
	}{{29 * time.Second, true}, {time.Second, false}} {
		s.advance(step.later)
		if _, err := s.call(token); step.good && err != nil || !step.good && !errors.Is(err, ErrUnavailable) {
			t.Errorf("at %s: %v", s.now(), err)
		}
	}
}

// A list must be the authority's own, the one that was asked for, and not over.
func TestOnlyTheAuthoritysOwnListCounts(t *testing.T) {
	for what, list := range map[string]func(*scene) string{
		"signed by another":  func(s *scene) string { return s.statusList(newSigner(t), nil) },
		"of another place":   func(s *scene) string { return s.statusList(s.brand, map[string]any{"sub": s.issuer() + "/status/1"}) },
		"over":               func(s *scene) string { return s.statusList(s.brand, map[string]any{"exp": s.now().Unix()}) },
		"from the future":    func(s *scene) string { return s.statusList(s.brand, map[string]any{"iat": s.now().Unix() + 31}) },
		"a delegation token": func(s *scene) string { return s.token(nil) },
		"of another typ":     func(s *scene) string { return s.brand.sign(t, tokenHeader, payloadOf(t, s.statusList(s.brand, nil))) },
		"huge": func(s *scene) string {
			return s.statusList(s.brand, map[string]any{"x": strings.Repeat("x", maxStatusList)})
		},
		"nothing of the kind": func(*scene) string { return "<html>" },
	} {
		s := newScene(t)
		s.authority.serve("/oauth/status/0", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, list(s)) })
		if _, err := s.call(s.token(nil)); !errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// payloadOf is what the JWS says.
func payloadOf(t testing.TB, jws string) string {
	t.Helper()
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(jws, ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	return string(payload)
}

// A bound shorter than the five seconds that a list is gone by holds as well.
func TestAShortBoundOfStalenessHolds(t *testing.T) {
	s := newScene(t, func(c *Config, _ *AgentsConfig) { c.Stale = 2 * time.Second })
	if _, err := s.call(s.token(nil)); err != nil {
		t.Fatal(err)
	}
	s.list.Set(0, statuslist.Invalid)
	s.advance(3 * time.Second)
	if _, err := s.call(s.token(nil)); !errors.Is(err, ErrRevoked) {
		t.Errorf("three seconds later: %v", err)
	}
}

// A list that has not changed is not sent again; one that has expired is, for what
// is unchanged in it is worth nothing.
func TestAnUnchangedListIsNotSentAgain(t *testing.T) {
	s := newScene(t)
	bodies := 0
	s.authority.serve("/oauth/status/0", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") == `"1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		bodies++
		w.Header().Set("ETag", `"1"`)
		_, _ = io.WriteString(w, s.statusList(s.brand, nil))
	})
	for what, step := range []struct {
		later time.Duration
		want  int
	}{{0, 1}, {6 * time.Second, 1}, {11 * time.Minute, 2}} {
		s.advance(step.later)
		if _, err := s.call(s.token(nil)); err != nil || bodies != step.want {
			t.Errorf("step %d: %v, sent %d times, want %d", what, err, bodies, step.want)
		}
	}
}

// FailOpen is for an authority that does not answer, and takes tokens that name no
// list. A caller who has gone away has waited for no answer.
func TestWhatFailingOpenIsFor(t *testing.T) {
	s := newScene(t, func(c *Config, _ *AgentsConfig) { c.FailOpen = true })
	if _, err := s.call(s.token(map[string]any{"status": nil})); err != nil {
		t.Errorf("no list named: %v", err)
	}
	ctx, leave := context.WithCancel(t.Context())
	held := make(chan struct{})
	defer close(held)
	s.authority.serve("/oauth/status/1", func(http.ResponseWriter, *http.Request) {
		leave()
		<-held
	})
	elsewhere := s.token(map[string]any{"status": at(0, s.issuer()+"/status/1")})
	if c, err := s.door.Call(ctx, shown(s.proof(nil), elsewhere)); !errors.Is(err, ErrUnavailable) || c.Delegation != nil {
		t.Errorf("gone away: %+v, %v", c.Delegation, err)
	}
}

// A list signed with a key that we have not seen yet has us fetch the keys.
func TestListsFollowTheKeys(t *testing.T) {
	s := newScene(t)
	if _, err := s.call(s.token(nil)); err != nil {
		t.Fatal(err)
	}
	next := newSigner(t)
	s.authority.text("/oauth/jwks.json", `{"keys":[`+s.brand.jwk(`,"kid":"k1"`)+`,`+next.jwk(`,"kid":"k2"`)+`]}`)
	s.authority.serve("/oauth/status/0", func(w http.ResponseWriter, _ *http.Request) {
		lst, _ := s.list.Encode()
		_, _ = io.WriteString(w, next.sign(t, `{"alg":"ES256","kid":"k2","typ":"statuslist+jwt"}`, marshal(t, map[string]any{
			"sub": s.issuer() + "/status/0", "iat": s.now().Unix(), "exp": s.now().Unix() + 600,
			"status_list": map[string]any{"bits": 2, "lst": lst},
		})))
	})
	s.list.Set(0, statuslist.Invalid)
	s.advance(6 * time.Second)
	if _, err := s.call(s.token(nil)); !errors.Is(err, ErrRevoked) {
		t.Errorf("%v", err)
	}
}

// One list is fetched once for all who need it, and not for every call.
func TestAListIsFetchedOncePerFiveSeconds(t *testing.T) {
	s := newScene(t)
	for range 50 {
		if _, err := s.call(s.token(nil)); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.authority.times("/oauth/status/0"); n != 1 {
		t.Errorf("%d fetches", n)
	}
}

// How many lists are kept is bounded, whatever the tokens name.
func TestListsAreBounded(t *testing.T) {
	s := newScene(t)
	for i := range 2*maxLists + 1 {
		if _, err := s.door.revoked.list(s.issuer() + "/status/" + time.Duration(i).String()); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.door.revoked.lists); n > maxLists {
		t.Errorf("%d lists", n)
	}
}
