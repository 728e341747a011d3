package console_test

import (
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"countersign.dev/tenants"
)

// A double click makes one of what is shown a single time: whichever post comes
// second shows nothing, so there is nothing that nobody saw.
func TestFormsSentAtTheSameMomentMakeOne(t *testing.T) {
	s := newSite(t)
	brand, people := team(t, s)
	owner := people["owner"]
	twice := func(name, at, to string, form url.Values, event, back string) {
		t.Helper()
		const clicks = 6
		before := s.facts(t, event)
		answers := make([]page, clicks)
		var all sync.WaitGroup
		for i := range answers {
			all.Go(func() { answers[i] = owner.post(to, form, at) })
		}
		all.Wait()
		shown := 0
		for _, p := range answers {
			if p.status == http.StatusOK {
				shown++
				p.secret()
				continue
			}
			p.mustGo(back)
		}
		if n := s.facts(t, event) - before; shown != 1 || n != 1 {
			t.Errorf("%s: %d were made, %d shown", name, n, shown)
		}
	}
	fields := func(at, to string, pairs ...string) url.Values {
		form := with(owner.open(at).fields(to), pairs...)
		delete(form, "at-once") // a box that was not ticked
		return form
	}
	owner.touch()

	keys := lake + "api-keys"
	form := fields(keys, keys, "name", "till", "right-introspect", "yes")
	// A mistake, or a store that fails, leaves the form as good as it was.
	owner.post(keys, with(form, "name", ""), keys).must(http.StatusUnprocessableEntity)
	s.Exec(t, `ALTER TABLE api_keys ADD CONSTRAINT broken CHECK (name <> 'till') NOT VALID`)
	owner.post(keys, with(form, "name", "till"), keys).must(http.StatusInternalServerError)
	s.Exec(t, `ALTER TABLE api_keys DROP CONSTRAINT broken`)
	twice("key", keys, keys, form, "apikey.created", keys+"?made")
	all, err := tenants.APIKeys(t.Context(), s.DB, brand)
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	one := keys + "/" + all[0].ID
	twice("key, rotated", one, one+"/rotate", fields(one, one+"/rotate"), "apikey.rotated", keys+"?made")

	hooks := lake + "webhooks"
	twice("webhook", hooks, hooks, fields(hooks, hooks, "url", "https://hotel.example/hook", "event-grant.revoked", "yes"), "webhook.created", hooks+"?made")
	made, err := tenants.Webhooks(t.Context(), s.DB, brand)
	if err != nil || len(made) != 1 {
		t.Fatalf("%v, %v", made, err)
	}
	one = hooks + "/" + made[0].ID
	twice("webhook, secret", one, one+"/secret", fields(one, one+"/secret"), "webhook.secret_rotated", hooks+"?made")

	agent := lake + "support-agent"
	twice("agent", agent, agent, fields(agent, agent, "url", "https://hotel.example/turn"), "agent_endpoint.set", agent)
	twice("agent, secret", agent, agent+"/secret", fields(agent, agent+"/secret"), "agent_endpoint.secret_rotated", agent)

	// What is spent is remembered for longer than a session, and not for ever.
	for _, wait := range []time.Duration{0, 25 * time.Hour} {
		s.Clock.Advance(wait)
		if err := s.console.Purge(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := s.Count(t, `SELECT count(*) FROM spent_forms`); (n > 0) != (wait == 0) {
			t.Errorf("after %v %d forms are remembered", wait, n)
		}
	}
}
