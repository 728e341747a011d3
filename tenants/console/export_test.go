package console

import (
	"net/http"
	"strings"

	"countersign.dev/tenants"
)

// Door is a route with its line of the rights table, for the test that walks them.
type Door struct {
	Pattern      string
	Action       Action
	Anybody      bool
	Member       bool
	Early        bool // open before there is a second way in
	Roles        []tenants.Role
	Touch, Tells bool
}

// Doors lists every route.
func Doors() []Door {
	var out []Door
	for _, r := range routes() {
		right := rights[r.action]
		out = append(out, Door{
			Pattern: r.pattern, Action: r.action, Anybody: right.who == anybody, Member: right.who == member,
			Early: right.who == signedIn, Roles: right.roles, Touch: right.touch, Tells: right.tell,
		})
	}
	return out
}

// RightOf tells a line of the rights table.
func RightOf(a Action) Door {
	r := rights[a]
	return Door{Action: a, Member: r.who == member, Roles: r.roles, Touch: r.touch, Tells: r.tell}
}

// RegisterStray tries to register a page that the rights table does not know.
func (h *Handler) RegisterStray() {
	h.register(http.NewServeMux(), []route{{"GET /console/stray", "stray", (*visit).home}})
}

// The budgets, for tests that spend them.
var (
	FloodBurst = floodLimit.Burst
	MailBurst  = mailLimit.Burst
	Writers    = writersLimit.Burst
	AllWriters = allWritersLimit.Burst
	Back       = back
)

// SettingKeys are the words that the settings' form needs.
func SettingKeys() []string {
	var out []string
	for _, p := range settingParts {
		out = append(out, "console.set.part."+p.part, "console.set.part."+p.part+".text")
		for _, f := range p.fields {
			out = append(out, "console.set.field."+f, "console.set.field."+f+".hint")
		}
	}
	for _, choices := range settingChoices {
		for _, c := range choices {
			out = append(out, "console.set.option."+strings.ToLower(c))
		}
	}
	return out
}

// Record is how members' changes reach the trail.
var Record = (*Handler).record

// Quoted is how ids stand in commands; Ceiling is how high a plot is.
var (
	Quoted  = quoted
	Ceiling = ceiling
)
