package pages_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"countersign.dev/web/i18n"
)

// rendered is every sample page, in every language, from a kind Brand, from a
// hostile one and from right to left.
func rendered(t *testing.T, samples func(*i18n.Catalogue, i18n.Language, other) []sample) map[string]*html.Node {
	t.Helper()
	c := catalogue(t)
	turned := c.Languages()[0]
	turned.Tag, turned.Dir = "ar", "rtl"
	docs := map[string]*html.Node{}
	for _, l := range append(c.Languages(), turned) {
		for from, o := range map[string]other{"kind": kind, "hostile": hostile, "arabic": arabic} {
			for _, s := range samples(c, l, o) {
				var b bytes.Buffer
				if err := s.page.Render(t.Context(), &b); err != nil {
					t.Fatal(err)
				}
				doc, err := html.Parse(&b)
				if err != nil {
					t.Fatal(err)
				}
				docs[l.Tag+" "+from+" "+s.name] = doc
			}
		}
	}
	return docs
}

func everything(c *i18n.Catalogue, l i18n.Language, o other) []sample { return all(common(c, l, o), o) }

func asking(c *i18n.Catalogue, l i18n.Language, o other) []sample {
	return questions(common(c, l, o), o)
}

// find lists the elements of a name, in order.
func find(doc *html.Node, names ...string) []*html.Node {
	var found []*html.Node
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && (len(names) == 0 || slices.Contains(names, n.Data)) {
			found = append(found, n)
		}
	}
	return found
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
}

func text(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

func byID(doc *html.Node, id string) *html.Node {
	for _, n := range find(doc) {
		if attr(n, "id") == id {
			return n
		}
	}
	return nil
}

// B53, R107: nothing on a page needs a hole in the policy.
func TestNoPageHasScriptOrInlineStyle(t *testing.T) {
	for name, doc := range rendered(t, everything) {
		for _, n := range find(doc) {
			if slices.Contains([]string{"script", "style", "iframe", "object", "embed", "base"}, n.Data) {
				t.Errorf("%s: <%s>", name, n.Data)
			}
			for _, a := range n.Attr {
				if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
					t.Errorf("%s: <%s %s>", name, n.Data, a.Key)
				}
				if slices.Contains([]string{"href", "src", "action"}, a.Key) && strings.HasPrefix(strings.ToLower(a.Val), "javascript:") {
					t.Errorf("%s: <%s %s=%q>", name, n.Data, a.Key, a.Val)
				}
			}
		}
	}
}

// P23: hostile words stay words. They are on the page as they were typed, and
// they made no element: elements are the same as with kind words.
func TestHostileWordsStayWords(t *testing.T) {
	docs := rendered(t, everything)
	for name, doc := range docs {
		for _, n := range find(doc, "img", "b") {
			if n.Data == "img" && attr(n, "src") != "/b/demo/agents/logo?v=x" || strings.Contains(text(n), "example") {
				t.Errorf("%s: a typed <%s> became one", name, n.Data)
			}
		}
	}
	// A picture counts for no more than the name does.
	if kindly, unknown := find(docs["en kind ask-pictured"], "img"), find(docs["en hostile ask-pictured"], "img"); len(kindly) != 1 || len(unknown) != 0 {
		t.Errorf("%d pictures of an agent that is known, %d of one that is not", len(kindly), len(unknown))
	}
	doc := docs["en hostile ask-long"]
	for i, want := range hostile.descriptions {
		if !slices.ContainsFunc(find(doc, "bdi"), func(n *html.Node) bool { return text(n) == want }) {
			t.Errorf("description %d is not verbatim on the page (M20)", i)
		}
	}
	if got, want := len(find(doc, "input")), len(find(docs["en kind ask-long"], "input")); got != want {
		t.Errorf("%d inputs, want %d", got, want)
	}
}

// B114: lang and dir follow the chosen language, and nothing else.
func TestPageSaysItsLanguageAndDirection(t *testing.T) {
	for name, doc := range rendered(t, everything) {
		root := find(doc, "html")[0]
		tag, _, _ := strings.Cut(name, " ")
		dir := "ltr"
		if tag == "ar" {
			dir = "rtl"
		}
		if attr(root, "lang") != tag || attr(root, "dir") != dir {
			t.Errorf("%s: lang %q dir %q", name, attr(root, "lang"), attr(root, "dir"))
		}
	}
}

// B114: wherever other people's words stand, they are isolated.
func TestForeignWordsAreIsolated(t *testing.T) {
	for name, doc := range rendered(t, everything) {
		_, rest, _ := strings.Cut(name, " ")
		from, _, _ := strings.Cut(rest, " ")
		o := map[string]other{"kind": kind, "hostile": hostile, "arabic": arabic}[from]
		for n := range find(doc, "body")[0].Descendants() {
			if n.Type != html.TextNode {
				continue
			}
			for _, foreign := range append([]string{o.brand, o.account}, o.descriptions...) {
				if strings.Contains(n.Data, foreign) && !inside(n, "bdi") {
					t.Errorf("%s: %q stands bare in <%s>", name, n.Data, n.Parent.Data)
				}
			}
		}
	}
}

func inside(n *html.Node, name string) bool {
	for a := range n.Ancestors() {
		if a.Data == name {
			return true
		}
	}
	return false
}

// Every page: one h1, landmarks, headings without a gap, fields with labels,
// ids used once, and no word missing.
func TestPagesAreWellBuilt(t *testing.T) {
	for name, doc := range rendered(t, everything) {
		for _, landmark := range []string{"h1", "main", "header", "footer"} {
			if got := len(find(doc, landmark)); got != 1 {
				t.Errorf("%s: %d <%s>", name, got, landmark)
			}
		}
		level := 0
		for _, h := range find(doc, "h1", "h2", "h3", "h4") {
			if this := int(h.Data[1] - '0'); this > level+1 && level > 0 {
				t.Errorf("%s: <%s> after <h%d>", name, h.Data, level)
			} else {
				level = this
			}
			if strings.TrimSpace(text(h)) == "" {
				t.Errorf("%s: empty <%s>", name, h.Data)
			}
		}
		seen := map[string]bool{}
		for _, n := range find(doc) {
			if id := attr(n, "id"); id != "" {
				if seen[id] {
					t.Errorf("%s: id %s twice", name, id)
				}
				seen[id] = true
			}
			for _, ref := range []string{"aria-labelledby", "aria-describedby", "for"} {
				for id := range strings.FieldsSeq(attr(n, ref)) {
					if byID(doc, id) == nil {
						t.Errorf("%s: %s names %s, which is not there", name, ref, id)
					}
				}
			}
		}
		for _, n := range find(doc, "title", "p", "legend", "label", "a", "button", "dt", "dd", "li") {
			words := strings.TrimSpace(text(n))
			counted := slices.ContainsFunc(find(n), func(c *html.Node) bool { return c.Data == "svg" || c.Data == "label" })
			if words == "" && !counted && attr(n, "class") != "unseen" {
				t.Errorf("%s: empty <%s class=%q>", name, n.Data, attr(n, "class"))
			}
		}
		for _, n := range find(doc, "svg") {
			if attr(n, "aria-hidden") != "true" {
				t.Errorf("%s: a sign without a word", name)
			}
		}
	}
}

// M19, P19: nothing of what is asked shows before login, whoever asks it.
func TestNoPageBeforeLoginShowsPermissionOrDecision(t *testing.T) {
	for name, doc := range rendered(t, func(c *i18n.Catalogue, l i18n.Language, o other) []sample {
		return beforeLogin(common(c, l, o), o)
	}) {
		for _, n := range find(doc, "input", "button", "fieldset") {
			if attr(n, "type") == "checkbox" || attr(n, "name") == "scope" || attr(n, "name") == "decision" || n.Data == "fieldset" {
				t.Errorf("%s: <%s name=%q>", name, n.Data, attr(n, "name"))
			}
		}
		for _, o := range []other{kind, hostile, arabic} {
			for _, d := range o.descriptions {
				if strings.Contains(text(doc), d) {
					t.Errorf("%s: shows %q", name, d)
				}
			}
		}
		if strings.HasSuffix(name, "start") || strings.HasSuffix(name, "start-agents") {
			if forms := len(find(doc, "form")); forms != 0 {
				t.Errorf("%s: the way to the sign-in is a form; form-action would stop it", name)
			}
		}
	}
}

// B07: the field takes a code as a phone types it.
func TestCodeFieldIsMadeForThumbs(t *testing.T) {
	for name, doc := range rendered(t, everything) {
		field := byID(doc, "user_code")
		if field == nil {
			continue
		}
		for key, want := range map[string]string{
			"name": "user_code", "type": "text", "autocapitalize": "characters", "autocomplete": "off",
			"inputmode": "text", "spellcheck": "false", "dir": "ltr",
		} {
			if got := attr(field, key); got != want {
				t.Errorf("%s: %s=%q, want %q", name, key, got, want)
			}
		}
		if has(field, "pattern") || has(field, "required") {
			t.Errorf("%s: the browser judges the code", name)
		}
		labels := slices.DeleteFunc(find(doc, "label"), func(n *html.Node) bool { return attr(n, "for") != "user_code" })
		if len(labels) != 1 || text(labels[0]) == "" {
			t.Errorf("%s: the field has %d labels", name, len(labels))
		}
		if strings.HasSuffix(name, "code-wrong") {
			if attr(field, "value") != " wdjb mjh" {
				t.Errorf("%s: what was typed is lost: %q", name, attr(field, "value"))
			}
			alerts := slices.DeleteFunc(find(doc), func(n *html.Node) bool { return attr(n, "role") != "alert" })
			if len(alerts) != 1 || len(find(alerts[0], "a")) != 1 || attr(find(alerts[0], "a")[0], "href") != "#user_code" {
				t.Errorf("%s: no summary that leads to the field", name)
			}
			if attr(field, "aria-invalid") != "true" || !strings.Contains(attr(field, "aria-describedby"), "code-problem") {
				t.Errorf("%s: the field does not say that it is wrong", name)
			}
		}
	}
}
