package console_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"countersign.dev/tenants"
	"countersign.dev/tenants/api"
	"countersign.dev/tenants/console"
)

// elsewhere is how a program and a shell do what is behind a door of the dashboard.
type elsewhere struct {
	api, cli string
	alone    string // why there is no such call or command
	at       string // why the call waits for nobody, though the door asks for a touch
}

const (
	ofPeople = "a person's own account: no key is a person"
	aForm    = "a page to type on; what it is for has its own line"
	aPicture = "a picture of a page"
	onlyEnds = "it only ends something: whoever suspects a theft must not wait"
	readable = "call by call the key reads all of it anyway; every owner hears of it"
)

// parity says of every door how else one goes through it. A door that is not here
// fails the test: whoever adds a page says how a program and a shell do that.
var parity = map[string]elsewhere{
	"GET /console": {alone: aForm}, "GET /console/signup": {alone: ofPeople}, "POST /console/signup": {alone: ofPeople},
	"GET /console/login": {alone: ofPeople}, "POST /console/login": {alone: ofPeople},
	"GET /console/recover": {alone: ofPeople}, "POST /console/recover": {alone: ofPeople},
	"POST /console/recover/code": {alone: ofPeople}, "POST /console/recover/wait": {alone: ofPeople},
	"GET /console/tried": {alone: "where a browser comes back to"},
	"GET /console/link":  {alone: ofPeople}, "POST /console/link": {alone: ofPeople},
	"POST /console/logout": {alone: ofPeople}, "GET /console/touch": {alone: ofPeople}, "POST /console/touch": {alone: ofPeople},
	"POST /console/link/accept": {alone: ofPeople}, "GET /console/keys": {alone: ofPeople}, "POST /console/keys": {alone: ofPeople},
	"POST /console/keys/codes": {alone: ofPeople}, "POST /console/keys/kept": {alone: ofPeople},
	"GET /console/account": {alone: ofPeople}, "POST /console/account/remove": {alone: ofPeople}, "POST /console/account/elsewhere": {alone: ofPeople},
	"GET /console/brands": {alone: ofPeople}, "GET /console/new": {alone: aForm},
	"POST /console/new": {api: "POST brands", cli: "brand create"},

	"GET {$}":     {api: "GET settings", cli: "tenant show"},
	"GET members": {api: "GET members", cli: "member list"}, "POST members": {api: "POST members", cli: "member invite"},
	"GET quit": {alone: ofPeople}, "POST quit": {alone: ofPeople},
	"POST invitations/{invitation}/withdraw": {api: "DELETE invitations/{id}", cli: "member withdraw", at: onlyEnds},
	"GET members/{person}":                   {api: "GET members", cli: "member list"},
	"POST members/{person}/role":             {api: "PUT members/{member}/role", cli: "member role"},
	"POST members/{person}/remove":           {api: "DELETE members/{member}", cli: "member remove"},
	"POST members/{person}/confirm":          {api: "POST members/{member}/confirm", cli: "member confirm"},
	"POST members/{person}/vouch":            {api: "POST members/{member}/vouch", cli: "member vouch"},
	"POST interface/provider":                {api: "PUT providers/own", cli: "tenant name"},
	"POST recoveries/{recovery}/cancel":      {api: "DELETE recoveries/{id}", cli: "member deny"},
	"GET leave":                              {api: "GET settings", cli: "tenant show"},
	"POST leave/export":                      {api: "GET export", cli: "brand export", at: readable},
	"POST leave/close":                       {api: "POST close", cli: "brand close"},
	"GET erase":                              {alone: aForm},
	"POST erase":                             {api: "POST users/{subject}/erase", cli: "user erase", at: "a person may ask for it and must not wait for an owner; nothing is given to anybody"},

	"GET settings": {api: "GET settings", cli: "brand show"}, "POST settings": {api: "PATCH settings", cli: "brand set"},
	"POST settings/logo": {api: "PUT logo", cli: "brand logo"}, "POST settings/logo/remove": {api: "DELETE logo", cli: "brand logo"},
	"GET preview": {alone: aPicture}, "GET preview.css": {alone: aPicture}, "POST preview": {alone: aPicture},
	"GET permissions": {api: "GET scopes", cli: "scope list"}, "GET permissions/new": {alone: aForm},
	"GET permissions/one": {api: "GET scopes", cli: "scope list"}, "POST permissions/one": {api: "PUT scopes/{scope}", cli: "scope set"},
	"POST permissions/preview": {alone: aPicture}, "POST permissions/move": {api: "PUT scope-order", cli: "scope order"},
	"POST permissions/retire":  {api: "POST scopes/{scope}/retire", cli: "scope retire"},
	"POST permissions/restore": {api: "POST scopes/{scope}/restore", cli: "scope restore"},
	"GET agents":               {api: "GET agents/known", cli: "agent list"}, "GET agents/one": {api: "GET agents/known", cli: "agent show"},
	"POST agents/judge": {api: "PUT agents", cli: "brand apply"},
	"GET pause":         {api: "GET settings", cli: "brand list"}, "POST pause": {api: "POST pause", cli: "brand pause"},
	"POST resume": {api: "POST resume", cli: "brand resume"},
	"GET grants":  {api: "GET grants", cli: "grants list"}, "GET grants/{grant}": {api: "GET grants/{grant}", cli: "grants show"},
	"GET grants/end": {alone: aForm}, "POST grants/end": {api: "POST grants/{grant}/revoke", cli: "grants revoke"},
	"GET end-agent": {alone: aForm}, "POST end-agent": {api: "POST grants/revoke", cli: "grants revoke", at: onlyEnds},
	"GET users/suspend": {alone: aForm}, "POST users/suspend": {api: "POST users/{subject}/suspend", cli: "user suspend"},
	"GET users/resume": {alone: aForm}, "POST users/resume": {api: "POST users/{subject}/resume", cli: "user resume"},
	"GET trail": {api: "GET audit", cli: "audit list"}, "GET trail/export": {api: "GET audit", cli: "audit export"},
	"GET usage":   {api: "GET usage", cli: "usage show"},
	"GET domains": {api: "GET domains", cli: "brand domain list"}, "POST domains": {api: "POST domains", cli: "brand domain add"},
	"POST domains/{host}/check":  {api: "POST domains/{host}/check", cli: "brand domain check"},
	"POST domains/{host}/remove": {api: "DELETE domains/{host}", cli: "brand domain remove"},
	"GET interface":              {api: "GET interface", cli: "brand show"}, "POST interface/check": {api: "POST interface/check", cli: "brand check"},
	"GET interface/move": {alone: aForm}, "POST interface/move": {api: "PUT interface", cli: "brand move"},
	"GET support-agent": {api: "GET agent-endpoint", cli: "endpoint show"}, "POST support-agent": {api: "PUT agent-endpoint", cli: "endpoint set"},
	"POST support-agent/secret": {api: "POST agent-endpoint/rotate", cli: "endpoint rotate"},
	"POST support-agent/remove": {api: "PUT agent-endpoint", cli: "endpoint remove"},
	"POST support-agent/check":  {api: "POST agent-endpoint/check", cli: "endpoint check"},
	"GET login":                 {api: "GET connections", cli: "idp list"}, "POST login": {api: "PUT connections/candidate", cli: "idp set"},
	"POST login/look":                {api: "POST connections/{id}/check", cli: "idp check"},
	"POST login/{connection}/check":  {api: "POST connections/{id}/check", cli: "idp check"},
	"POST login/{connection}/issuer": {api: "PUT connections/candidate", cli: "idp set"},
	"GET login/{connection}/try":     {api: "POST connections/{id}/tries", cli: "idp try"},
	"GET login/tried":                {api: "GET tries/{id}", cli: "idp tried"},
	"POST login/{connection}/live":   {api: "POST connections/{id}/live", cli: "idp live"},
	"POST login/{connection}/remove": {api: "DELETE connections/{id}", cli: "idp remove", at: "of a candidate only, through which nobody comes in"},
	"GET changes":                    {api: "GET changes", cli: "change list"},
	"POST changes/{change}/approve":  {alone: "this is the owner's touch itself"},
	"POST changes/{change}/reject":   {api: "DELETE changes/{id}", cli: "change reject"},
	"GET signing-keys":               {api: "GET keys", cli: "keys list"}, "POST signing-keys": {api: "POST keys", cli: "keys rotate"},
	"GET signing-keys/{kid}":         {api: "GET keys", cli: "keys list"},
	"POST signing-keys/{kid}/retire": {api: "POST keys/{kid}/retire", cli: "keys retire"},
	"POST signing-keys/{kid}/revoke": {api: "POST keys/{kid}/revoke", cli: "keys revoke", at: onlyEnds},
	"GET webhooks":                   {api: "GET webhooks", cli: "webhook list"}, "POST webhooks": {api: "POST webhooks", cli: "webhook create"},
	"GET webhooks/{webhook}":          {api: "GET webhooks/{id}/deliveries", cli: "webhook deliveries"},
	"POST webhooks/{webhook}/secret":  {api: "POST webhooks/{id}/rotate", cli: "webhook rotate"},
	"POST webhooks/{webhook}/disable": {api: "POST webhooks/{id}/disable", cli: "webhook disable", at: onlyEnds},
	"POST webhooks/{webhook}/enable":  {api: "POST webhooks/{id}/enable", cli: "webhook enable"},
	"POST webhooks/{webhook}/test":    {api: "POST webhooks/{id}/test", cli: "webhook test"},
	"POST webhooks/{webhook}/replay":  {api: "POST webhooks/{id}/replay", cli: "webhook replay"},
	"GET api-keys":                    {api: "GET api-keys", cli: "apikey list"}, "POST api-keys": {api: "POST api-keys", cli: "apikey create"},
	"GET api-keys/{key}":         {api: "GET api-keys", cli: "apikey list"},
	"POST api-keys/{key}/rotate": {api: "POST api-keys/{id}/rotate", cli: "apikey rotate"},
	"POST api-keys/{key}/revoke": {api: "DELETE api-keys/{id}", cli: "apikey revoke", at: onlyEnds},
	// PATCH settings answers 202 where the rule lets more agents ask; fewer is a stop.
	"POST agents/rule": {api: "PATCH settings", cli: "brand set", at: "it waits where more agents may ask; fewer is a stop"},
	"GET connect":      {api: "GET interface", cli: "brand show"},
	"GET try":          {alone: "a person decides in this browser; a program has its own test agent (pa)"},
	"POST try":         {alone: "a person decides in this browser; a program has its own test agent (pa)"},
	"POST try/end":     {alone: "a person decides in this browser; a program has its own test agent (pa)"},
}

// calls are the API's, as its own document says them, with the status of success.
func calls(t *testing.T) map[string]string {
	t.Helper()
	mux := http.NewServeMux()
	api.New(api.Config{Site: tenants.Site{PublicURL: origin}, Now: time.Now, Log: slog.New(slog.DiscardHandler)}).Routes(mux)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/openapi.json", nil))
	var d struct {
		Paths map[string]map[string]struct{ Responses map[string]any }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	for path, all := range d.Paths {
		for method, op := range all {
			for status := range op.Responses {
				if strings.HasPrefix(status, "2") {
					out[strings.ToUpper(method)+" "+strings.TrimPrefix(path, "/api/v1/brands/{brand}/")] = status
				}
			}
		}
	}
	return out
}

// commands are the shell's, of which each has a promise (its own test sees to that).
func commands(t *testing.T) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../cmd/countersign/promises.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]bool)
	ast.Inspect(file, func(n ast.Node) bool {
		pair, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		if key, ok := pair.Key.(*ast.BasicLit); ok && key.Kind == token.STRING {
			name, err := strconv.Unquote(key.Value)
			if err != nil {
				t.Fatal(err)
			}
			out[name] = true
		}
		return true
	})
	return out
}

// Everything that the dashboard does is a call and a command too; and what needs a
// fresh touch here waits for one there (B98), unless it says why not.
func TestWhatTheDashboardDoesAProgramAndAShellDo(t *testing.T) {
	calls, commands := calls(t), commands(t)
	if len(calls) < 60 || len(commands) < 60 {
		t.Fatalf("%d calls, %d commands", len(calls), len(commands))
	}
	walked := make(map[string]bool)
	for _, d := range console.Doors() {
		door := strings.Replace(d.Pattern, "/console/b/{brand}/", "", 1)
		walked[door] = true
		e, known := parity[door]
		switch {
		case !known:
			t.Errorf("%s: nobody said how a program and a shell do this", door)
		case e.alone != "":
			if e.api+e.cli != "" {
				t.Errorf("%s: alone, and not", door)
			}
		default:
			status, ok := calls[e.api]
			if !ok {
				t.Errorf("%s: there is no call %q", door, e.api)
			}
			if !commands[e.cli] {
				t.Errorf("%s: there is no command %q", door, e.cli)
			}
			waits := status == "202"
			if touch := d.Touch && strings.HasPrefix(door, "POST "); touch && !waits && e.at == "" {
				t.Errorf("%s needs a fresh touch, and %s does not wait for one", door, e.api)
			} else if e.at != "" && (!touch || waits) {
				t.Errorf("%s: says why it does not wait, in vain", door)
			}
		}
	}
	for door := range parity {
		if !walked[door] {
			t.Errorf("%s is no door any more", door)
		}
	}
}
