package console

import (
	"net/http"
	"strings"
	"unicode/utf8"

	"countersign.dev/tenants/console/pages"
)

// otherwise is how a program or a shell does what the page does: whole calls, and
// commands without the program's name.
func (v *visit) otherwise(calls, commands []string) pages.Otherwise {
	o := pages.Otherwise{
		Summary: v.text("console.otherwise.summary"), API: v.text("console.otherwise.api"),
		Shell: v.text("console.otherwise.shell"), Calls: calls,
	}
	for _, c := range commands {
		o.Commands = append(o.Commands, "countersign "+c)
	}
	return o
}

// call is a request to the admin API, as one types it.
func (v *visit) call(method, path, body string) string {
	text := "curl -H \"Authorization: Bearer $KEY\""
	if method != http.MethodGet {
		text += " -X " + method
	}
	if body != "" {
		text += " --json " + quoted(body)
	}
	return text + " " + quoted(v.h.PublicURL+"/api/v1/brands/"+string(v.brand.ID)+"/"+path)
}

// calls are those of which each is a method, a path, and perhaps a body.
func (v *visit) calls(all ...string) []string {
	for i, one := range all {
		method, rest, _ := strings.Cut(one, " ")
		path, body, _ := strings.Cut(rest, " ")
		all[i] = v.call(method, path, body)
	}
	return all
}

// command is one of ours about the Brand.
func (v *visit) command(words string) string { return words + " --brand " + string(v.brand.ID) }

func (v *visit) ofBrand(all ...string) []string {
	for i, one := range all {
		all[i] = v.command(one)
	}
	return all
}

// quoted is the text as a shell takes it for one word and nothing else: an id is
// somebody else's words.
func quoted(s string) string {
	plain := func(r rune) bool {
		return r < utf8.RuneSelf && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.:/@", r))
	}
	if s != "" && !strings.HasPrefix(s, "-") && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
