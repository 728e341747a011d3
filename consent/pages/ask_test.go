package pages_test

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// M20: every permission is a box that can be unticked, in a row that is its
// label, ticked as the caller said.
func TestEveryPermissionCanBeUnticked(t *testing.T) {
	for name, doc := range rendered(t, asking) {
		boxes := slices.DeleteFunc(find(doc, "input"), func(n *html.Node) bool { return attr(n, "name") != "scope" })
		if len(boxes) == 0 {
			t.Errorf("%s: nothing is asked", name)
		}
		for _, box := range boxes {
			if attr(box, "type") != "checkbox" || has(box, "disabled") || has(box, "readonly") || has(box, "required") {
				t.Errorf("%s: %v", name, box.Attr)
			}
			if !inside(box, "label") || !inside(box, "fieldset") {
				t.Errorf("%s: the box %s stands alone", name, attr(box, "value"))
			}
			if inside(box, "details") {
				t.Errorf("%s: the box %s is folded away", name, attr(box, "value"))
			}
			if ticked := attr(box, "value") != "sc" || strings.HasSuffix(name, "ask-sensitive"); has(box, "checked") != ticked {
				t.Errorf("%s: the box %s is ticked %v", name, attr(box, "value"), !ticked)
			}
		}
	}
}

// Yes and No weigh the same, and P27 finds them by the names it knows.
func TestYesAndNoAreDressedAlike(t *testing.T) {
	for name, doc := range rendered(t, asking) {
		var choices []*html.Node
		for _, b := range find(doc, "button") {
			if attr(b, "name") == "decision" {
				choices = append(choices, b)
			}
		}
		if len(choices) != 2 || attr(choices[0], "value") != "allow" || attr(choices[1], "value") != "deny" {
			t.Fatalf("%s: %d choices", name, len(choices))
		}
		allow, deny := choices[0], choices[1]
		if attr(allow, "class") != attr(deny, "class") || allow.Parent != deny.Parent {
			t.Errorf("%s: %q and %q", name, attr(allow, "class"), attr(deny, "class"))
		}
		session := slices.DeleteFunc(find(doc, "input"), func(n *html.Node) bool { return attr(n, "name") != "session" })
		if len(session) != 1 || attr(session[0], "type") != "hidden" || attr(session[0], "value") == "" {
			t.Errorf("%s: the hidden session is lost", name)
		}
	}
}

// Enter on a tick box presses the first button of a form: that one must lead
// nowhere, or a slip of the hand would allow. TestKeyboardDecidesOnlyOnAButton
// sees a browser do it.
func TestEnterOnABoxDecidesNothing(t *testing.T) {
	for name, doc := range rendered(t, asking) {
		first := find(find(doc, "form")[0], "button")[0]
		if attr(first, "formmethod") != "dialog" || has(first, "name") || inside(first, "dialog") {
			t.Errorf("%s: the first button is %v", name, first.Attr)
		}
	}
}

// B21, R12, M20: who asks, by what address, when, which code, whose account.
func TestAskNamesWhoAsks(t *testing.T) {
	docs := rendered(t, asking)
	for name, want := range map[string][]string{
		"en kind ask": {
			"You are signed in to Harbor Hotel as alex@example.com", "Let Aria act on your Harbor Hotel account?",
			"aria.example asked 2 minutes ago (12\u00a0May 2026, 14:03\u00a0UTC).", "Only continue if you asked",
			"WDJB-MJHT", "until 11\u00a0June 2026",
		},
		// A name nobody registered stays out of our own sentences.
		"en kind ask-unknown": {
			"Let xn--hrbor-hotel-yij.example act on your Harbor Hotel account?", "Not verified",
			"is shown by some browsers as hаrbor-hotel.example", "It calls itself “Harbor Hotel Concierge”.",
			"The name “Harbor Hotel Concierge” resembles Harbor Hotel", "It says that you asked from Lisbon.",
			"“I look after your stay from beginning to end.”", "Its own words. Nobody has checked them.",
		},
	} {
		said := strings.Join(strings.Fields(strings.ReplaceAll(text(docs[name]), "\u00a0", "~")), " ")
		for _, w := range want {
			if w = strings.ReplaceAll(w, "\u00a0", "~"); !strings.Contains(said, w) {
				t.Errorf("%s does not say %q", name, w)
			}
		}
	}
	strong := slices.ContainsFunc(find(docs["en kind ask"], "strong"), func(n *html.Node) bool { return text(n) == "aria.example" })
	if !strong {
		t.Error("the verified host does not stand out")
	}
	for _, part := range find(docs["en kind ask-unknown"], "h1", "title", "legend") {
		if strings.Contains(text(part), "Concierge") {
			t.Errorf("a claimed name in <%s>: %q", part.Data, text(part))
		}
	}
}

// The order of pages.md, top to bottom.
func TestAskIsReadInOrder(t *testing.T) {
	said := text(find(rendered(t, asking)["en kind ask-sensitive"], "body")[0])
	at := -1
	for _, want := range []string{
		"Harbor Hotel", "You are signed in", "Let ", "asked 2 minutes ago", "Check that your agent", "WDJB-MJHT",
		"may do", "See your stays", "Sees.", "Already allowed", "Sensitive", "Pays.", "To undo it", "For how long", "until",
		"can start right away", "My agents", "Allow selected", "Don’t allow", "English", "Help", "privacy", "run by Countersign",
	} {
		next := strings.Index(said[at+1:], want)
		if next < 0 {
			t.Fatalf("%q is missing, or too early", want)
		}
		at += 1 + next
	}
}

// Above six the list has parts, and none is folded; the tally is kept in view.
func TestALongListHasParts(t *testing.T) {
	docs := rendered(t, asking)
	long, short := docs["en kind ask-long"], docs["en kind ask"]
	var parts []string
	for _, h := range find(long, "h3") {
		parts = append(parts, strings.TrimSpace(text(h)))
	}
	if got := strings.Join(parts, "|"); got != "Only looking|Changing things|Sensitive: look twice" {
		t.Errorf("parts: %s", got)
	}
	if len(find(short, "h3")) != 0 {
		t.Error("a short list has parts")
	}
	for _, p := range find(long, "p") {
		if attr(p, "class") == "tally in-view" {
			return
		}
	}
	t.Error("the tally is not kept in view")
}
