package console_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/consent/federation/demoidp"
	"countersign.dev/tenants"
	"countersign.dev/tenants/console"
	"github.com/google/uuid"
)

// A program begins a test login and asks what came of it: whoever goes through it
// signs in at the provider and comes back in any browser; the program learns that it
// worked and which claims there were, and none of what they say (B62). It counts
// once, in time, for the connection as it was.
func TestAProgramTriesALogin(t *testing.T) {
	s := newSite(t)
	owner := s.owner(t, "harbor-hotel")
	p := provider(t, "harbor-hotel")
	id := mustParse(t, owner.save(hotel+"login", draftFor(p.Issuer())))
	const brand = tenants.BrandID("harbor-hotel")
	begin := func() (tenants.Trial, string) {
		t.Helper()
		trial, to, err := s.trials.Start(t.Context(), brand, id)
		if err != nil || trial.State != "waiting" || to == "" {
			t.Fatalf("%+v, %s, %v", trial, to, err)
		}
		back, err := demoidp.NewVisitor().SignIn(t.Context(), to, "alex", "tide")
		if err != nil {
			t.Fatal(err)
		}
		return trial, console.TriedPath(brand, back.Query())
	}
	now := func(id uuid.UUID) tenants.Trial {
		t.Helper()
		out, err := tenants.TrialOf(t.Context(), s.DB, brand, id, s.Clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	trial, back := begin()
	anybody := s.visitor(t)
	anybody.open(strings.Replace(back, "state=try.api.", "state=try.api.X", 1)).must(http.StatusBadRequest)
	anybody.open(strings.Replace(back, "brand=harbor-hotel", "brand=fern-and-fell", 1)).must(http.StatusBadRequest)
	anybody.open(strings.Replace(back, "brand=harbor-hotel", "brand=nobody", 1)).must(http.StatusNotFound)
	if now(trial.ID).State != "waiting" {
		t.Error("a guess counted")
	}
	// Two browsers at once: it counts once.
	var both sync.WaitGroup
	good := make(chan bool, 2)
	for range 2 {
		v := s.visitor(t)
		both.Go(func() { good <- v.open(back).status == http.StatusOK })
	}
	both.Wait()
	if one, two := <-good, <-good; one == two {
		t.Errorf("it counted for both, or for none: %v", one)
	}
	got := now(trial.ID)
	raw, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if got.State != "good" || !got.Subject || !strings.Contains(string(raw), "customer_id") || strings.Contains(string(raw), "C-77") || strings.Contains(string(raw), "Reed") {
		t.Errorf("%s", raw)
	}
	if n := s.Count(t, `SELECT count(*) FROM login_tries t WHERE t::text LIKE '%C-77%' OR t::text LIKE '%Reed%' OR try_sealed IS NOT NULL`); n != 0 {
		t.Error("what the provider said is kept")
	}
	if strings.Contains(s.log.String(), "C-77") {
		t.Error("what the provider said is logged")
	}
	if _, err := tenants.TrialOf(t.Context(), s.DB, "fern-and-fell", trial.ID, s.Clock.Now()); !errors.Is(err, tenants.ErrNoTrial) {
		t.Errorf("another Brand asks: %v", err)
	}

	changed, back := begin()
	owner.save(hotel+"login", draftFor(p.Issuer(), "subject_claim", "sub"))
	anybody.open(back).must(http.StatusOK, "does not work yet")
	if got := now(changed.ID); got.State != "failed" || got.Trouble != tenants.TryMisconfigured {
		t.Errorf("another connection was tried: %+v", got)
	}
	late, back := begin()
	s.Clock.Advance(tenants.TrialLife)
	anybody.open(back).must(http.StatusBadRequest)
	if now(late.ID).State != "over" {
		t.Error("it counted after its time")
	}
	if err := tenants.PurgeTrials(t.Context(), s.DB, brand, s.Clock.Now().Add(24*time.Hour)); err != nil || s.Count(t, `SELECT count(*) FROM login_tries`) != 0 {
		t.Errorf("some are kept: %v", err)
	}
}

// What is in the way is told at once, and where a browser comes back with a refusal
// the program reads it.
func TestAProgramsTryThatFails(t *testing.T) {
	s := newSite(t)
	owner := s.owner(t, "harbor-hotel")
	const brand = tenants.BrandID("harbor-hotel")
	id := mustParse(t, owner.save(hotel+"login", draftFor("http://127.0.0.1:1")))
	trial, to, err := s.trials.Start(t.Context(), brand, id)
	if err != nil || to != "" || trial.State != "failed" || trial.Trouble != tenants.TryUnreachable {
		t.Errorf("%+v, %q, %v", trial, to, err)
	}
	if _, _, err := s.trials.Start(t.Context(), brand, uuid.New()); !errors.Is(err, tenants.ErrNoConnection) {
		t.Errorf("%v", err)
	}
	id = mustParse(t, owner.save(hotel+"login", draftFor(provider(t, brand).Issuer())))
	trial, to, err = s.trials.Start(t.Context(), brand, id)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	refused := url.Values{"state": {u.Query().Get("state")}, "error": {"access_denied"}}
	s.visitor(t).open(console.TriedPath(brand, refused)).must(http.StatusOK, "does not work yet")
	if got, err := tenants.TrialOf(t.Context(), s.DB, brand, trial.ID, s.Clock.Now()); err != nil || got.State != "failed" || got.Trouble != tenants.TryRefused {
		t.Errorf("%+v, %v", got, err)
	}
	for range 19 {
		if _, _, err := s.trials.Start(t.Context(), brand, id); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.trials.Start(t.Context(), brand, id); err != nil {
		t.Errorf("the twentieth: %v", err)
	}
	if _, _, err := s.trials.Start(t.Context(), brand, id); !errors.Is(err, tenants.ErrTooTrying) {
		t.Errorf("without end: %v", err)
	}
}
