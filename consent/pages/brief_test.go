package pages_test

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"countersign.dev/web/i18n"
)

func resuming(c *i18n.Catalogue, l i18n.Language, o other) []sample {
	return briefly(common(c, l, o), o)
}

// One act is always needed: no box, one Continue, and a No that weighs the same.
func TestBriefAsksForOneAct(t *testing.T) {
	for name, doc := range rendered(t, resuming) {
		for _, in := range find(doc, "input") {
			if attr(in, "type") != "hidden" {
				t.Errorf("%s: %v", name, in.Attr)
			}
		}
		buttons := find(doc, "button")
		if len(buttons) != 2 || attr(buttons[0], "value") != "continue" || attr(buttons[1], "value") != "deny" {
			t.Fatalf("%s: %d buttons", name, len(buttons))
		}
		yes, no := buttons[0], buttons[1]
		if attr(yes, "class") != attr(no, "class") || yes.Parent != no.Parent || attr(yes, "name") != "decision" || attr(no, "name") != "decision" {
			t.Errorf("%s: %v and %v", name, yes.Attr, no.Attr)
		}
	}
}

// It names the agent by its verified host, the account, the code, what is
// allowed in the Brand's words, until when, and the ways to less, before Continue.
func TestBriefHidesNothing(t *testing.T) {
	doc := rendered(t, resuming)["en kind brief"]
	said := strings.Join(strings.Fields(text(find(doc, "body")[0])), " ")
	at := -1
	for _, want := range []string{
		"alex@example.com", "Let Aria go on at Harbor Hotel?", "aria.example asked", "Only continue if you asked", "WDJB-MJHT",
		"Aria already may", "Nothing is added", "See your stays and their prices", "Change the dates of a stay",
		"This holds until 24", "Change what it may do", "End it", "everything stays as it is", "Continue", "Don’t allow",
	} {
		next := strings.Index(said[at+1:], want)
		if next < 0 {
			t.Fatalf("%q is missing, or too early, in\n%s", want, said)
		}
		at += 1 + next
	}
	for _, way := range []string{"/b/demo/consent?full=1", "/b/demo/agents?end=1"} {
		if !slices.ContainsFunc(find(doc, "a"), func(n *html.Node) bool { return attr(n, "href") == way }) {
			t.Errorf("no way to %s", way)
		}
	}
}

// wire.md §6: the Brand's reason is the Brand's words, in quotes, and no more.
func TestReasonIsTheBrandsWords(t *testing.T) {
	docs := rendered(t, asking)
	doc := docs["en kind ask-stepup"]
	said := strings.Join(strings.Fields(text(doc)), " ")
	for _, want := range []string{
		"Harbor Hotel says: “" + kind.reason + "”", "Let Aria do more on your Harbor Hotel account?",
		"Harbor Hotel asked 2 minutes ago", "so that aria.example can go on", "Check the link that your agent gave you",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if n := len(find(docs["en hostile ask-stepup"], "button")); n != len(find(doc, "button")) {
		t.Errorf("a reason made buttons: %d", n)
	}
	for name, doc := range docs {
		for _, n := range find(doc, "bdi") {
			if strings.Contains(text(n), kind.reason) && (inside(n, "h1") || inside(n, "strong")) {
				t.Errorf("%s: the reason stands where facts stand", name)
			}
		}
	}
}

// The closing page of a step-up leads back to the conversation.
func TestStepUpLeadsBackToTheConversation(t *testing.T) {
	docs := rendered(t, func(c *i18n.Catalogue, l i18n.Language, o other) []sample { return endings(common(c, l, o), o) })
	for name, want := range map[string]bool{"done": false, "done-denied": false, "done-stepup": true, "done-stepup-denied": true} {
		if got := strings.Contains(text(docs["en kind "+name]), "your conversation with Aria"); got != want {
			t.Errorf("%s: speaks of a conversation: %v", name, got)
		}
	}
}
