package pages_test

import (
	"strings"
	"testing"
	"time"

	"github.com/a-h/templ"

	"countersign.dev/consent/pages"
	"countersign.dev/consent/words"
	"countersign.dev/web/i18n"
	"countersign.dev/web/ui"
)

// A sample is one page with something on it.
type sample struct {
	name string
	page templ.Component
}

// other holds the words that do not come from our catalogue.
type other struct {
	brand, agent, host, account, purpose string
	verified                             bool
	descriptions                         []string
	undo                                 string
	reason                               string // the Brand's, at a step-up
}

var kind = other{
	brand: "Harbor Hotel", agent: "Aria", host: "aria.example", verified: true, account: "alex@example.com",
	descriptions: []string{
		"See your stays and their prices", "See your loyalty points", "Change the dates of a stay",
		"Cancel a stay that can be cancelled free of charge", "Write to the front desk in your name",
		"See your saved companions", "Book a room and pay with your saved card", "Give the room key to somebody else",
	},
	undo:   "Call the front desk before six in the evening.",
	reason: "To move your stay to the 14th we need your leave to change bookings.",
}

// hostile is everything a Brand or an agent could type, at once.
var hostile = other{
	brand:   `Harbor <script>alert("b")</script> & "Sons" ` + strings.Repeat("Verylongname", 6),
	agent:   `</title><img src=x onerror=alert(1)>` + "\u202e" + "gnortS",
	host:    "xn--" + "hrbor-hotel-y2a.example",
	account: strings.Repeat("x", 80) + `@<b>"example"</b>`,
	purpose: `" onclick="alert(2)` + strings.Repeat(" go on", 60),
	descriptions: []string{
		`<script>alert("scope")</script>`, `"><input type=checkbox name=scope value=all checked>`,
		strings.Repeat("Donaudampfschifffahrt", 4), strings.Repeat("A sentence that does not want to end, ", 11),
		"\u202eright to left override", `' style='display:none`, "أرى حجوزاتك (12) وأسعارها", "&lt;b&gt;",
	},
	undo:   `<a href="javascript:alert(3)">undo</a>`,
	reason: `</p><button name="decision" value="allow">` + "\u202e" + strings.Repeat("Reasonwithoutend", 16),
}

// arabic is a Brand that writes from right to left.
var arabic = other{
	brand: "فندق الميناء", agent: "Aria", host: "aria.example", account: "alex@example.com", verified: true,
	descriptions: []string{
		"عرض حجوزاتك (12) وأسعارها", "See your loyalty points", "تغيير مواعيد الإقامة",
		"إلغاء حجز", "مراسلة الاستقبال باسمك", "عرض المرافقين", "حجز غرفة والدفع ببطاقتك", "تسليم المفتاح",
	},
	undo:   "اتصل بالاستقبال قبل الساعة 18:00.",
	reason: "لتغيير موعد إقامتك إلى 14 نحتاج إلى إذنك.",
}

var now = time.Date(2026, 5, 12, 14, 5, 0, 0, time.UTC)

func catalogue(t testing.TB) *i18n.Catalogue {
	t.Helper()
	c, err := i18n.Load()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func common(c *i18n.Catalogue, l i18n.Language, o other) words.Common {
	return words.Common{
		Lang: l, BrandName: o.brand, BrandCSS: "/b/demo/brand.css",
		LanguageLinks: words.LanguageLinks(c.Languages(), l, func(tag string) string { return "?ui_locales=" + tag }),
		HelpURL:       "/help", PrivacyURL: "https://harbor.example/privacy", RequestID: "7Q2K-91XM",
	}
}

func (o other) asker() words.Agent {
	return words.Agent{Name: o.agent, NameVerified: o.verified, Host: o.host}
}

func (o other) scopes(n int) []words.Scope {
	effects := []words.Effect{
		words.Sees, words.Sees, words.Changes, words.Changes, words.Changes, words.Sees, words.Pays, words.Changes,
	}
	var list []words.Scope
	for i := range n {
		s := words.Scope{ID: "s" + string(rune('a'+i)), Description: o.descriptions[i], Effect: effects[i], Ticked: i != 2}
		s.Held = i == 1
		s.Sensitive = i >= 6
		if i%3 == 2 {
			s.Undo = o.undo
		}
		list = append(list, s)
	}
	return list
}

func ask(c words.Common, o other, n int) words.AskData {
	d := words.AskData{
		Common: c, Account: o.account, SwitchURL: "/b/demo/switch", AgentsURL: "/b/demo/agents",
		Agent: o.asker(), Purpose: o.purpose, UserCode: "WDJB-MJHT",
		AskedAt: now.Add(-2 * time.Minute), Now: now,
		Action: "/b/demo/consent/decision", Hidden: []ui.Hidden{{Name: "session", Value: "c2Vzc2lvbg"}},
		Scopes: o.scopes(n),
	}
	for _, days := range []int{1, 30, 90} {
		d.Until = append(d.Until, words.Until{
			Value: string(rune('0' + days%7)), Days: days, At: now.AddDate(0, 0, days), Selected: days == 30,
		})
	}
	d.Until = append(d.Until, words.Until{Value: "open"})
	return d
}

// beforeLogin are the pages a visitor sees who has not signed in.
func beforeLogin(c words.Common, o other) []sample {
	typed := words.CodeData{Common: c, Action: "/b/demo/device", Typed: " wdjb mjh", Problem: words.CodeWrong}
	start := words.StartData{Common: c, SignInURL: "/b/demo/login?request=abc"}
	mine := start
	mine.Agents = true
	return []sample{
		{"code", pages.Code(words.Code(words.CodeData{Common: c, Action: "/b/demo/device"}))},
		{"code-wrong", pages.Code(words.Code(typed))},
		{"start", pages.Start(words.Start(start))},
		{"start-agents", pages.Start(words.Start(mine))},
		{"enter", pages.Enter(words.Enter(words.EnterData{Common: c, Account: "alex@example.com", SwitchURL: "/b/demo/login", Action: "/b/demo/agents/enter"}))},
	}
}

// questions are the pages that ask.
func questions(c words.Common, o other) []sample {
	long := ask(c, o, 8)
	long.Notices = []words.Notice{words.ListChanged, words.OtherAccount, words.SignedInAgain}
	long.Place = "Lisbon"
	unknown := ask(c, o, 2)
	unknown.Agent = words.Agent{Name: o.brand + " Concierge", Host: "hаrbor-hotel.example"} // Cyrillic а
	unknown.Purpose = "I look after your stay from beginning to end."
	unknown.Place = "Lisbon"
	pictured := ask(c, o, 3)
	pictured.Agent.LogoURL = "/b/demo/agents/logo?v=x"
	stepUp := ask(c, o, 3)
	stepUp.StepUp, stepUp.Reason = true, o.reason
	return []sample{
		{"ask", pages.Ask(words.Ask(ask(c, o, 4)))},
		{"ask-pictured", pages.Ask(words.Ask(pictured))},
		{"ask-stepup", pages.Ask(words.Ask(stepUp))},
		{"ask-sensitive", pages.Ask(words.Ask(withSensitive(ask(c, o, 3))))},
		{"ask-long", pages.Ask(words.Ask(long))},
		{"ask-unknown", pages.Ask(words.Ask(unknown))},
	}
}

// briefly are the pages that ask for one Continue.
func briefly(c words.Common, o other) []sample {
	d := words.BriefData{
		AskData: ask(c, o, 0), May: o.descriptions[:3], Ends: now.AddDate(0, 0, 12),
		ChangeURL: "/b/demo/consent?full=1", EndURL: "/b/demo/agents?end=1",
	}
	d.Until = nil
	long := d
	long.StepUp, long.Reason, long.May = true, o.reason, o.descriptions
	return []sample{
		{"brief", pages.Brief(words.Brief(d))},
		{"brief-long", pages.Brief(words.Brief(long))},
	}
}

func withSensitive(d words.AskData) words.AskData {
	d.Scopes[2].Sensitive, d.Scopes[2].Effect, d.Scopes[2].Ticked = true, words.Pays, true
	for _, shop := range []string{"the bar", `</bdi><button name="decision" value="allow">`, "فندق (12)", strings.Repeat("Shopwithoutend", 14)} {
		d.Scopes[2].Details = append(d.Scopes[2].Details, []words.DetailPart{
			{Text: "Up to "}, {Text: "200", Value: true}, {Text: " "}, {Text: "EUR", Value: true}, {Text: " at "}, {Text: shop, Value: true},
		})
	}
	return d
}

// endings are the pages that close a journey well.
func endings(c words.Common, o other) []sample {
	done := words.DoneData{
		Common: c, Agent: o.asker(), Outcome: words.Allowed, AgentsURL: "/b/demo/agents",
		Allowed: o.descriptions[:3], Ended: o.descriptions[3:4], Until: now.AddDate(0, 0, 30),
	}
	denied, emptied, open := done, done, done
	denied.Outcome, emptied.Outcome = words.Denied, words.Emptied
	open.Until = time.Time{}
	continued := done
	continued.Outcome, continued.Ended = words.Continued, nil
	stepUp, refused := done, denied
	stepUp.StepUp, stepUp.Ended, refused.StepUp = true, nil, true
	return []sample{
		{"done-continued", pages.Done(words.Done(continued))},
		{"done-stepup", pages.Done(words.Done(stepUp))},
		{"done-stepup-denied", pages.Done(words.Done(refused))},
		{"done", pages.Done(words.Done(done))},
		{"done-open", pages.Done(words.Done(open))},
		{"done-denied", pages.Done(words.Done(denied))},
		{"done-emptied", pages.Done(words.Done(emptied))},
	}
}

var troubleNames = map[words.TroubleKind]string{
	words.Internal: "internal", words.NotFound: "notfound", words.Expired: "expired",
	words.AlreadyDenied: "denied", words.AlreadyAnswered: "answered", words.DeadCode: "dead",
	words.TooManyTries: "tries", words.LoginRefused: "refused", words.LoginUnreachable: "unreachable",
	words.SessionLapsed: "lapsed", words.WrongAccount: "account", words.AgentDisabled: "agent",
	words.BrandPaused: "paused", words.CookieMissing: "cookie", words.StaleForm: "stale", words.StaleAgents: "list", words.AgentsLapsed: "list-lapsed", words.ForgedForm: "forged",
}

func deadEnds(c words.Common, o other) []sample {
	var list []sample
	for kind, name := range troubleNames {
		d := words.TroubleData{
			Common: c, Agent: o.asker(), Account: o.account, RetryURL: "/b/demo/device?user_code=WDJB-MJHT", CodeURL: "/b/demo/device",
			AgentsURL: "/b/demo/agents", RetryAfter: 9*time.Minute + time.Second,
		}
		if kind == words.WrongAccount {
			d.Deny = &ui.Post{Action: "/b/demo/consent/decision", Hidden: []ui.Hidden{{Name: "session", Value: "x"}}}
		}
		list = append(list, sample{"trouble-" + name, pages.Trouble(words.Trouble(kind, d))})
	}
	return list
}

// ourselves are pages without a Brand.
func ourselves(c words.Common, o other) []sample {
	c.BrandName, c.BrandCSS, c.PrivacyURL = "", "", ""
	home := words.HomeData{Common: c, Brands: []words.DemoBrand{
		{Name: o.brand, CodeURL: "/b/demo/device", CardURL: "/a2a/demo/.well-known/agent-card.json"},
	}}
	return []sample{
		{"home", pages.Home(words.Home(home))},
	}
}

// all is every page there is.
func all(c words.Common, o other) []sample {
	var list []sample
	for _, part := range []func(words.Common, other) []sample{
		beforeLogin, questions, briefly, endings, managing, deadEnds, ourselves,
	} {
		list = append(list, part(c, o)...)
	}
	return list
}
