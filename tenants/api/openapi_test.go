package api_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

type openAPI struct {
	OpenAPI    string
	Paths      map[string]map[string]operation
	Components struct {
		Schemas   map[string]any
		Responses map[string]struct{ Headers map[string]any }
	}
}

type operation struct {
	OperationID string
	Summary     string
	RequestBody struct{ Content map[string]content }
	Responses   map[string]struct{ Content map[string]content }
}

type content struct {
	Schema  any
	Example any
}

func (a *admin) document() openAPI {
	a.t.Helper()
	resp, err := http.Get(a.origin + "/api/v1/openapi.json")
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	var d openAPI
	if err := json.Unmarshal(raw, &d); err != nil {
		a.t.Fatal(err)
	}
	return d
}

func validate(t *testing.T, what string, schema, value any) {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("schema.json", schema); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if err := s.Validate(value); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// Each documented call is there, each example fits its schema, and no two calls
// have one name.
func TestOpenAPIDescribesWhatIsThere(t *testing.T) {
	a := newAdmin(t)
	d := a.document()
	if d.OpenAPI != "3.1.0" || len(d.Paths) < 20 {
		t.Fatalf("OpenAPI %s with %d paths", d.OpenAPI, len(d.Paths))
	}
	for _, r := range []string{"tooMany", "problem"} {
		if d.Components.Responses[r].Headers["Retry-After"] == nil {
			t.Errorf("%s does not say when to come again", r)
		}
	}
	names := map[string]bool{}
	for path, operations := range d.Paths {
		for method, op := range operations {
			what := method + " " + path
			if op.Summary == "" || names[op.OperationID] {
				t.Errorf("%s: %q, %q", what, op.OperationID, op.Summary)
			}
			names[op.OperationID] = true
			if _, told := op.Responses["429"]; !told {
				t.Errorf("%s can be too often, and does not say so", what)
			}
			if c, ok := op.RequestBody.Content["application/json"]; ok {
				validate(t, what+" takes", c.Schema, c.Example)
			}
			for status, r := range op.Responses {
				if status == "429" || status == "default" { // problems
					continue
				}
				if _, file := r.Content["application/zip"]; !file {
					validate(t, what+" gives", r.Content["application/json"].Schema, r.Content["application/json"].Example)
				}
			}
			// A route that is there asks for a key; one that is not is 404 or 405.
			at := strings.NewReplacer("{brand}", "harbor-hotel", "{", "", "}", "").Replace(path)
			req, err := http.NewRequestWithContext(t.Context(), strings.ToUpper(method), a.origin+at, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			want := http.StatusUnauthorized
			if path == "/api/v1/agents" {
				want = http.StatusUnsupportedMediaType // open to all, and there
			}
			if resp.StatusCode != want {
				t.Errorf("%s without a key: %d", what, resp.StatusCode)
			}
		}
	}
}

// Real answers have the documented form, problems too.
func TestAnswersHaveTheDocumentedForm(t *testing.T) {
	a := newAdmin(t)
	d := a.document()
	answer := func(method, path, body string) (int, any) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, a.url+"harbor-hotel/"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + a.key}}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatalf("%s %s: %s", method, path, raw)
		}
		return resp.StatusCode, v
	}
	for _, call := range []struct{ method, path, body, at string }{
		{"POST", "domains", `{"host":"hotel.example"}`, "domains"},
		{"PUT", "connections/candidate", `{"issuer":"https://login.example","client_id":"us","auth":"private_key_jwt","max_age":60}`, "connections/candidate"},
		{"PUT", "connections/candidate", `{"kind":"assertion","issuer":"https://hotel.example","jwks_uri":"https://hotel.example/jwks.json","login_url":"https://hotel.example/in"}`, "connections/candidate"},
		{"POST", "api-keys", `{"name":"x","rights":["events"]}`, "api-keys"},
		{"PUT", "agents", `{"issuer":"https://agent.example","allowed":false}`, "agents"},
		{"POST", "keys", "", "keys"},
		{"GET", "settings", "", "settings"},
		{"PATCH", "settings", `{"name":"Harbour"}`, "settings"},
		{"GET", "scopes", "", "scopes"},
		{"PUT", "detail-types/stay_charge", `{"scope":"extras:order","schema":{"type":"object","additionalProperties":false,"required":["amount"],"properties":{"amount":{"type":"number"}}},"words":"Up to {amount}"}`, "detail-types/{type}"},
		{"GET", "detail-types", "", "detail-types"},
		{"DELETE", "detail-types/stay_charge", "", "detail-types/{type}"},
		{"GET", "domains", "", "domains"},
		{"GET", "interface", "", "interface"},
		{"POST", "interface/check", "", "interface/check"},
		{"GET", "connections", "", "connections"},
		{"GET", "api-keys", "", "api-keys"},
		{"GET", "agents", "", "agents"},
		{"GET", "changes", "", "changes"},
		{"GET", "keys", "", "keys"},
	} {
		status, got := answer(call.method, call.path, call.body)
		op := d.Paths["/api/v1/brands/{brand}/"+call.at][strings.ToLower(call.method)]
		schema := op.Responses[strconv.Itoa(status)].Content["application/json"].Schema
		if schema == nil {
			t.Errorf("%s %s: %d is not documented: %v", call.method, call.path, status, got)
			continue
		}
		validate(t, call.method+" "+call.path, schema, got)
	}
	if status, got := answer("PATCH", "settings", `{"name":""}`); status != 422 {
		t.Errorf("%d", status)
	} else {
		validate(t, "a problem", d.Components.Schemas["problem"], got)
	}
}
