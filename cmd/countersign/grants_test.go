package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	"github.com/google/uuid"
)

// shop is a world with grants in it, and an operator who works on it.
type shop struct {
	*testing.T
	*authoritytest.World
	rules    *authority.Authority
	database string
}

func newShop(t *testing.T) shop {
	t.Helper()
	w := authoritytest.NewAt(t, time.Now())
	return shop{t, w, w.Authority(nil), serviceURL(t, w)}
}

func (s shop) grant(b *tenants.Brand, agent, subject string, scopes ...string) uuid.UUID {
	s.Helper()
	who := authority.Caller{Agent: agent, Sub: "of-" + subject}
	asked := authoritytest.Begin(s.T, s.rules, b, who, scopes...)
	authoritytest.Approve(s.T, s.rules, b, asked, subject, scopes...)
	tokens, err := s.rules.Poll(s.Context(), b, who, asked.DeviceCode)
	if err != nil {
		s.Fatal(err)
	}
	return tokens.GrantID
}

// run types a command; code is what it must exit with.
func (s shop) run(code int, line string) string {
	s.Helper()
	got, out, errs := typed(s.T, append(strings.Fields(line), "--database-url", s.database)...)
	if got != code {
		s.Fatalf("%s: exit %d, %q, %q", line, got, out, errs)
	}
	return out + errs
}

func (s shop) living() int {
	s.Helper()
	return s.Count(s.T, `SELECT count(*) FROM grants WHERE ended_at IS NULL`)
}

// B29, B34: the operator ends what is named, and nothing else; the trail says
// that it was the operator, from the command line, and not who that is.
func TestTheOperatorEndsExactlyWhatIsNamed(t *testing.T) {
	s := newShop(t)
	one := s.grant(s.Hotel, authoritytest.Agent, "guest-1", "bookings:read", "account:read")
	s.grant(s.Hotel, authoritytest.Agent, "guest-2", "bookings:read")
	s.grant(s.Hotel, authoritytest.OtherAgent, "guest-1", "bookings:read")
	s.grant(s.Shop, authoritytest.Agent, "guest-1", "bookings:read")
	s.grant(s.Shop, authoritytest.OtherAgent, "guest-1", "bookings:read")
	hotel := " --brand harbor-hotel"

	// Whatever names too little, or two things at once, ends nothing.
	for line, want := range map[string]string{
		"grants revoke":                                                                 "--grant, --agent or --subject is required",
		"grants revoke" + hotel:                                                         "--grant, --agent or --subject is required",
		"grants revoke --grant " + one.String():                                         "--brand is required",
		"grants revoke --subject guest-1":                                               "--brand is required",
		"grants revoke --scope bookings:read" + hotel:                                   "is required",
		"grants revoke --scope bookings:read --subject guest-1" + hotel:                 "--scope ends one permission",
		"grants revoke --scope bookings:read --agent " + authoritytest.Agent + hotel:    "--scope ends one permission",
		"grants revoke --scope bookings:read --agent x --grant " + one.String() + hotel: "--scope ends one permission",
		"grants revoke --state living --agent " + authoritytest.Agent:                   "--state is for list",
		"grants revoke --subject guest-1" + hotel + " " + one.String():                  "unexpected argument",
		"grants revoke --grant= --agent= --subject=" + hotel:                            "is required",
	} {
		if out := s.run(2, line); !strings.Contains(out, want) {
			t.Errorf("%s: %q", line, out)
		}
	}
	for line, want := range map[string]string{
		"grants revoke --grant nonsense" + hotel:                                           "not the id of a grant",
		"grants revoke --grant " + uuid.Nil.String() + hotel:                               "not the id of a grant",
		"grants revoke --grant " + uuid.NewString() + hotel:                                "nothing has ended",
		"grants revoke --brand fern-and-fell --grant " + one.String():                      "nothing has ended",
		"grants revoke --subject guest-2 --grant " + one.String() + hotel:                  "nothing has ended",
		"grants revoke --scope extras:order --grant " + one.String() + hotel:               "no living grant",
		"grants revoke --scope account:read --brand fern-and-fell --grant " + one.String(): "no living grant",
		"grants show --brand fern-and-fell --grant " + one.String():                        "has no grant",
		"grants list --state dead" + hotel:                                                 "use living or ended",
		"grants list --grant " + one.String() + hotel:                                      "--grant is for",
	} {
		if out := s.run(1, line); !strings.Contains(out, want) {
			t.Errorf("%s: %q", line, out)
		}
	}
	if n := s.living(); n != 5 {
		t.Fatalf("%d live", n)
	}

	if out := s.run(0, "grants list"+hotel); strings.Count(out, "\n") != 4 || !strings.Contains(out, one.String()) {
		t.Errorf("%s", out)
	}
	if out := s.run(0, "grants revoke --scope account:read --grant "+one.String()+hotel); !strings.Contains(out, "no longer holds account:read") {
		t.Errorf("%s", out)
	}
	if out := s.run(0, "grants list --scope account:read"+hotel); strings.Count(out, "\n") != 1 {
		t.Errorf("%s", out)
	}
	if out := s.run(0, "grants revoke --grant "+one.String()+hotel); !strings.Contains(out, "1 grant ended at harbor-hotel") || s.living() != 4 {
		t.Errorf("%s, %d live", out, s.living())
	}
	if out := s.run(0, "grants show --grant "+one.String()+hotel); !strings.Contains(out, "ended: revoked_by_operator") ||
		!strings.Contains(out, "operator") || !strings.Contains(out, "cli") || !strings.Contains(out, "allowed") || !strings.Contains(out, "grant.narrowed") {
		t.Errorf("%s", out)
	}
	if out := s.run(0, "grants list --state ended"+hotel); strings.Count(out, "\n") != 2 {
		t.Errorf("%s", out)
	}
	if out := s.run(0, "grants revoke --subject guest-1"+hotel); !strings.Contains(out, "1 grant ended") || s.living() != 3 {
		t.Errorf("%s, %d live", out, s.living())
	}
	// In every Brand: each is told, and all together.
	out := s.run(0, "grants revoke --agent "+authoritytest.Agent)
	for _, want := range []string{"fern-and-fell  1", "harbor-hotel   1", "in all         2"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing:\n%s", want, out)
		}
	}
	if out := s.run(0, "grants revoke --agent "+authoritytest.Agent); !strings.Contains(out, "in all         0") || s.living() != 1 {
		t.Errorf("%s, %d live", out, s.living())
	}
	if n := s.Count(t, `SELECT count(*) FROM audit_events WHERE event IN ('grant.revoked', 'grant.narrowed')
		AND actor = 'operator' AND channel = 'cli' AND actor_id = ''`); n != 5 {
		t.Errorf("%d acts of the operator in the trail", n)
	}
}

// What a stranger chose cannot make the operator's terminal do anything.
func TestAListIsPlainText(t *testing.T) {
	s := newShop(t)
	s.grant(s.Hotel, authoritytest.Agent, "\x1b[2Jguest\u202e\x07", "bookings:read")
	out := s.run(0, "grants list --brand harbor-hotel")
	if strings.ContainsAny(out, "\x1b\x07\u202e") || !strings.Contains(out, `"\x1b[2Jguest\u202e\a"`) {
		t.Errorf("%q", out)
	}
}

// Disabling, suspending and pausing end nothing and are undone; closing ends
// everything at that Brand, is final and asks twice; the keys stay.
func TestOnlyClosingIsFinal(t *testing.T) {
	s := newShop(t)
	s.grant(s.Hotel, authoritytest.Agent, "guest-1", "bookings:read")
	s.grant(s.Hotel, authoritytest.OtherAgent, "guest-2", "bookings:read")
	s.grant(s.Shop, authoritytest.Agent, "guest-1", "bookings:read")
	for _, line := range []string{
		"agent disable --issuer " + authoritytest.Agent, "agent enable --issuer " + authoritytest.Agent,
		"brand pause --brand harbor-hotel", "brand pause --brand harbor-hotel", "brand resume --as-operator --brand harbor-hotel",
		"user suspend --subject guest-1 --brand harbor-hotel", "user resume --subject guest-1 --brand harbor-hotel",
	} {
		s.run(0, line)
		if n := s.living(); n != 3 {
			t.Fatalf("%s ended %d grants", line, 3-n)
		}
	}
	if out := s.run(2, "brand close --brand harbor-hotel"); !strings.Contains(out, "cannot be undone") || s.Reload(t, s.Hotel.ID).State != tenants.Active {
		t.Fatal(out)
	}
	if out := s.run(0, "brand close --yes --as-operator --brand harbor-hotel"); !strings.Contains(out, "2 grants have ended") || s.living() != 1 {
		t.Fatalf("%s, %d live", out, s.living())
	}
	if out := s.run(0, "brand close --yes --as-operator --brand harbor-hotel"); !strings.Contains(out, "0 grants have ended") {
		t.Fatal(out)
	}
	for _, line := range []string{"brand resume --as-operator --brand harbor-hotel", "brand pause --brand harbor-hotel"} {
		if out := s.run(1, line); !strings.Contains(out, "closed, and that is final") {
			t.Errorf("%s: %s", line, out)
		}
	}
	if doc, err := s.NewKeys().JWKS(t.Context(), s.Hotel.ID); err != nil || !strings.Contains(string(doc.Body), `"kid"`) {
		t.Errorf("%s, %v", doc.Body, err)
	}
	for event, want := range map[string]int{"brand.paused": 1, "brand.resumed": 1, "brand.closed": 1, "grant.revoked": 2} {
		if n := s.Count(t, `SELECT count(*) FROM audit_events WHERE brand_id = 'harbor-hotel' AND event = $1 AND actor = 'operator'`, event); n != want {
			t.Errorf("%s stands %d times in the trail", event, n)
		}
	}
}

// R75: verify says so and fails, with and without a database.
func TestTheOperatorVerifiesTheTrail(t *testing.T) {
	s := newShop(t)
	hotel := " --brand harbor-hotel"
	if out := s.run(0, "audit verify"+hotel); !strings.Contains(out, "nothing has happened") {
		t.Error(out)
	}
	s.grant(s.Hotel, authoritytest.Agent, "guest-1", "bookings:read")
	out := s.run(0, "audit verify"+hotel)
	_, head, _ := strings.Cut(out, "head ")
	head, _, _ = strings.Cut(head, "\n")
	if !strings.Contains(out, "is sound") || head == "" {
		t.Fatal(out)
	}
	file := filepath.Join(t.TempDir(), "trail.ndjson")
	lines := s.run(0, "audit export"+hotel)
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	offline := func(code int, extra ...string) string {
		t.Helper()
		got, out, errs := typed(t, append([]string{"audit", "verify", "--file", file}, extra...)...)
		if got != code {
			t.Fatalf("exit %d, %q, %q", got, out, errs)
		}
		return out + errs
	}
	if out := offline(0, "--expect", head); !strings.Contains(out, "head "+head) {
		t.Error(out)
	}
	if out := offline(1, "--brand", "fern-and-fell"); !strings.Contains(out, "not of fern-and-fell") {
		t.Error(out)
	}
	offline(0, "--brand", "harbor-hotel")
	offline(2, "--since", "3")
	offline(1, "--expect", "nonsense")
	s.run(2, "audit export --file x"+hotel)

	s.grant(s.Hotel, authoritytest.Agent, "guest-2", "bookings:read")
	s.run(0, "audit verify --expect "+head+hotel)
	rest := s.run(0, "audit export --since "+strconv.Itoa(strings.Count(lines, "\n"))+hotel)
	if err := os.WriteFile(file, []byte(rest), 0o600); err != nil {
		t.Fatal(err)
	}
	offline(0, "--expect", head)
	if out := offline(1); !strings.Contains(out, "NOT SOUND") {
		t.Error(out)
	}
	s.Exec(t, `UPDATE audit_events SET detail = '{}' WHERE brand_id = 'harbor-hotel' AND seq = 2`)
	if out := s.run(1, "audit verify"+hotel); !strings.Contains(out, "NOT SOUND: event 2: actor_id, detail or salt: was changed") {
		t.Error(out)
	}
	if err := os.WriteFile(file, []byte(s.run(0, "audit export"+hotel)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := offline(1); !strings.Contains(out, "event 2") {
		t.Error(out)
	}
	s.run(0, "audit verify --brand fern-and-fell")
	if got, _, errs := typed(t, "audit", "verify", "--file", filepath.Join(t.TempDir(), "none")); got != 1 || errs == "" {
		t.Errorf("exit %d, %q", got, errs)
	}
}

// What the operator ends, the Brand's webhooks are told of as of anything else.
func TestTheBrandIsToldOfWhatTheOperatorEnds(t *testing.T) {
	s := newShop(t)
	s.Exec(t, `INSERT INTO webhook_endpoints (brand_id, id, url, events, secret_sealed, enabled, created_at)
		VALUES ('harbor-hotel', 'aaaaaaaaaaaa', 'https://hook.example', '{grant.revoked,grant.narrowed}', '', true, now())`)
	one := s.grant(s.Hotel, authoritytest.Agent, "guest-1", "bookings:read", "account:read")
	s.run(0, "grants revoke --brand harbor-hotel --scope account:read --grant "+one.String())
	s.run(0, "grants revoke --brand harbor-hotel --subject guest-1")
	const q = `SELECT count(*) FROM webhook_deliveries d JOIN audit_events e USING (brand_id, seq)
		WHERE d.state = 'pending' AND e.event = ANY ($1)`
	if n := s.Count(t, q, []string{"grant.narrowed", "grant.revoked"}); n != 2 {
		t.Errorf("%d deliveries are waiting", n)
	}
}
