package words

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"countersign.dev/consent/pages"
	"countersign.dev/web/i18n"
	"countersign.dev/web/ui"
)

func english(t *testing.T) Common {
	t.Helper()
	c, err := i18n.Load()
	if err != nil {
		t.Fatal(err)
	}
	return Common{Lang: c.Languages()[0], BrandName: "Harbor Hotel"}
}

var keyShape = regexp.MustCompile(`^[a-z]+(\.[a-z]+)+$`)

// B115: no page asks for a sentence that is not there, and no sentence waits
// for a page that is gone. Keys are therefore written out, never put together.
func TestEveryKeyIsThereAndUsed(t *testing.T) {
	catalogue, err := i18n.Load()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(source, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if s, err := strconv.Unquote(lit.Value); err == nil && keyShape.MatchString(s) {
					used[s] = true
				}
			}
			return true
		})
	}
	keys := catalogue.Keys()
	for key := range used {
		if !slices.Contains(keys, key) {
			t.Errorf("%s is used and not in the catalogue", key)
		}
	}
	for _, key := range keys {
		// The dashboard's own test looks after its words.
		if !used[key] && !strings.HasPrefix(key, "console.") {
			t.Errorf("%s is in the catalogue and not used", key)
		}
	}
}

// A name nobody vouches for never becomes the name we use (M20).
func TestUnverifiedNameIsNotOurs(t *testing.T) {
	for _, tt := range []struct {
		agent Agent
		want  string
	}{
		{Agent{Name: "Aria", NameVerified: true, Host: "aria.example"}, "aria.example/Aria"},
		{Agent{Name: "Aria", Host: "aria.example"}, "aria.example/aria.example"},
		{Agent{NameVerified: true, Host: "aria.example"}, "aria.example/aria.example"},
		{Agent{Host: "möbel.example"}, "xn--mbel-5qa.example/xn--mbel-5qa.example"},
		{Agent{Host: "localhost:8443"}, "localhost:8443/localhost:8443"},
	} {
		if got := tt.agent.host() + "/" + tt.agent.called(); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.agent, got, tt.want)
		}
	}
}

func TestLookAlikesAreSaidSo(t *testing.T) {
	for _, tt := range []struct {
		name, host string
		want       int
	}{
		{"Aria", "aria.example", 0},
		{"Harbor Hotel", "aria.example", 1},
		{"HARB0R-HOTEL helper", "aria.example", 1},
		{"Hаrbоr Hоtel", "aria.example", 1}, // Cyrillic
		{"Harbor", "aria.example", 1},
		{"Ha", "aria.example", 0},
		{"Aria", "xn--mbel-5qa.example", 1},
		{"Aria", "möbel.example", 1},
		{"Harbor Hotel", "möbel.example", 2},
	} {
		got := english(t).warnings(Agent{Name: tt.name, NameVerified: true, Host: tt.host})
		if len(got) != tt.want {
			t.Errorf("%s at %s: %d warnings, want %d", tt.name, tt.host, len(got), tt.want)
		}
	}
	said := english(t).warnings(Agent{Name: "Aria", NameVerified: true, Host: "möbel.example"})[0].Text.String()
	if !strings.Contains(said, "xn--mbel-5qa.example") || !strings.Contains(said, "möbel.example") {
		t.Errorf("both forms should be shown: %s", said)
	}
}

var kinds = []TroubleKind{
	Internal, NotFound, Expired, AlreadyDenied, AlreadyAnswered, DeadCode, TooManyTries, LoginRefused,
	LoginUnreachable, SessionLapsed, WrongAccount, AgentDisabled, BrandPaused, CookieMissing, StaleForm, ForgedForm,
	AccountSuspended, StaleAgents, AgentsLapsed,
}

// B45: no dead end is without a way on, whatever little the caller knows.
func TestEveryDeadEndHasAWayOn(t *testing.T) {
	if len(kinds) != len(troubles) {
		t.Fatalf("%d kinds are tested, there are %d", len(kinds), len(troubles))
	}
	for _, kind := range kinds {
		if s := kind.Status(); s < 400 || s > 599 {
			t.Errorf("%d: status %d", kind, s)
		}
		full := TroubleData{
			Common: english(t), Agent: Agent{Host: "aria.example"},
			RetryURL: "/retry", CodeURL: "/code", AgentsURL: "/agents",
		}
		bare := full
		bare.RetryURL, bare.AgentsURL = "", ""
		for _, d := range []TroubleData{full, bare} {
			v := Trouble(kind, d)
			way := v.GoOn
			if way.Href == "" {
				way = v.Aside
			}
			if way.Href == "" || way.Label.String() == "" {
				t.Errorf("%d: no way on from %q", kind, v.Heading)
			}
			for _, said := range []string{v.Heading.String(), v.What.String(), v.Safe, v.Next.String(), v.Page.Title} {
				if said == "" || strings.ContainsAny(said, "{}") {
					t.Errorf("%d: says %q", kind, said)
				}
			}
			if len(v.Page.Reference) != 0 {
				t.Errorf("%d: an empty reference is shown", kind)
			}
		}
	}
	if got := Trouble(TroubleKind(99), TroubleData{Common: english(t)}).Heading.String(); got != "Something broke on our side" {
		t.Errorf("an unknown trouble: %q", got)
	}
}

// B03: an outsider learns nothing from the page of a dead code.
func TestDeadCodeDoesNotSayWhy(t *testing.T) {
	v := Trouble(DeadCode, TroubleData{Common: english(t), CodeURL: "/code"})
	w := Trouble(DeadCode, TroubleData{Common: english(t), CodeURL: "/code", Agent: Agent{Name: "Aria", NameVerified: true, Host: "aria.example"}, RetryAfter: time.Hour})
	for i, pair := range [][2]string{
		{v.Heading.String(), w.Heading.String()},
		{v.What.String(), w.What.String()},
		{v.Next.String(), w.Next.String()},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%d: %q and %q", i, pair[0], pair[1])
		}
	}
}

func TestNobodyIsToldToComeBackTooEarly(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		0: "Wait a minute, then try again.", time.Second: "Wait a minute, then try again.",
		61 * time.Second: "Wait 2 minutes, then try again.", 10 * time.Minute: "Wait 10 minutes, then try again.",
	} {
		d := TroubleData{Common: english(t), RetryAfter: wait}
		if got := Trouble(TooManyTries, d).Next.String(); got != want {
			t.Errorf("%v: %q", wait, got)
		}
	}
}

func TestGroupsKeepTheBrandsOrderAndLoseNothing(t *testing.T) {
	ids := func(groups []pages.Group) string {
		var parts []string
		for _, g := range groups {
			var in []string
			for _, p := range g.Permissions {
				in = append(in, p.ID)
			}
			parts = append(parts, strings.Join(in, ""))
		}
		return strings.Join(parts, "|")
	}
	list := []Scope{
		{ID: "a", Effect: Pays},
		{ID: "b", Effect: Sees},
		{ID: "c", Sensitive: true},
		{ID: "d"},
		{ID: "e", Effect: Sees},
		{ID: "f", Effect: "anything else"},
		{ID: "g", Effect: Changes},
	}
	if got := ids(english(t).groups(list[:6])); got != "abdef|c" {
		t.Errorf("six: %s", got)
	}
	if got := ids(english(t).groups(list)); got != "be|dfg|a|c" {
		t.Errorf("seven: %s", got)
	}
	if got := ids(english(t).groups(list[2:3])); got != "c" {
		t.Errorf("only a sensitive one: %s", got)
	}
}

// An effect a Brand left out must not look harmless.
func TestUnknownEffectCountsAsChanging(t *testing.T) {
	for _, e := range []Effect{"", "SEES", "reads"} {
		if p := english(t).permission(Scope{ID: "a", Effect: e}); p.Icon != ui.IconChanges || p.Effect != "Changes." {
			t.Errorf("%q: %+v", e, p)
		}
	}
}

func TestDoneSaysOnlyWhatHappened(t *testing.T) {
	d := DoneData{
		Common: english(t), Agent: Agent{Name: "Aria", NameVerified: true, Host: "aria.example"},
		Allowed: []string{"See"}, Ended: []string{"Pay"}, AgentsURL: "/agents",
	}
	d.Outcome = Denied
	if v := Done(d); v.Allowed || len(v.Lists) != 0 || len(v.Until) != 0 || !strings.Contains(v.Lead.String(), "Nothing was shared") {
		t.Errorf("denied: %+v", v)
	}
	d.Outcome = Emptied
	if v := Done(d); v.Allowed || len(v.Lists) != 1 || v.Lists[0].Items[0] != "Pay" || len(v.Until) != 0 {
		t.Errorf("emptied: %+v", v)
	}
	d.Outcome = Allowed
	if v := Done(d); !v.Allowed || len(v.Lists) != 2 || v.Lead.String() != "You can go back to Aria now." || v.Until.String() != "This holds until you end it." {
		t.Errorf("allowed: %+v", v)
	}
}

// The request id helps where something went wrong, and is noise elsewhere.
func TestReferenceStandsOnTroubleOnly(t *testing.T) {
	c := english(t)
	c.RequestID = "7Q2K"
	if v := Trouble(Internal, TroubleData{Common: c}); v.Page.Reference.String() != "If you ask for help, quote 7Q2K." {
		t.Errorf("trouble: %q", v.Page.Reference)
	}
	if v := Code(CodeData{Common: c}); len(v.Page.Reference) != 0 {
		t.Errorf("code: %q", v.Page.Reference)
	}
}

// Each way to end has a sentence of its own, and only a theft is marked. A reason
// that nobody has heard of is no excuse for saying nothing.
func TestEachEndIsTold(t *testing.T) {
	at := time.Date(2026, 5, 12, 0, 0, 0, 0, time.UTC)
	told := map[string]EndReason{}
	for _, reason := range []EndReason{EndedByUser, EndedByAgent, EndedByAdmin, EndedByOperator, RanOut, Forgotten, BrandMoved, KeyUsedTwice, "unheard-of"} {
		d := AgentsData{Common: english(t), Past: []PastAgent{{Agent: Agent{Host: "aria.example"}, At: at, Reason: reason}}}
		p := Agents(d).Past.Agents[0]
		if before, twice := told[p.What.String()]; twice {
			t.Errorf("%s is told like %s", reason, before)
		}
		told[p.What.String()] = reason
		if p.Marked != (reason == KeyUsedTwice) || !strings.Contains(p.What.String(), english(t).Lang.Date(at)) {
			t.Errorf("%s: marked %v, %q", reason, p.Marked, p.What.String())
		}
		d.Past[0].Reason = EndedByUnticked
		if got := Agents(d).Past.Agents[0].What.String(); reason == EndedByUser && got != p.What.String() {
			t.Errorf("unticking all is told as %q", got)
		}
	}
}
