package api

import (
	"encoding/json"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
)

// openAPI serves the description of every call here (OpenAPI 3.1).
func (h *Handler) openAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "public, max-age=300")
	w.Header().Set("Access-Control-Allow-Origin", "*")
	write(w, http.StatusOK, "application/json", h.document())
}

type object = map[string]any

func (h *Handler) document() object {
	paths := object{}
	for _, r := range h.routes() {
		at := prefix + r.path
		if paths[at] == nil {
			paths[at] = object{}
		}
		paths[at].(object)[strings.ToLower(r.method)] = r.operation()
	}
	apply := applyRoute.operation()
	apply["operationId"], apply["parameters"] = "applyAgent", []any{}
	apply["security"] = []any{object{"paJwt": []any{}}}
	paths["/api/v1/"+applyRoute.path] = object{"post": apply}
	own := audiencesRoute.operation()
	own["operationId"], own["parameters"] = "ownAudiences", audiencesRoute.query()
	own["security"] = apply["security"]
	paths["/api/v1/"+audiencesRoute.path] = object{"get": own}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Countersign admin API", "version": "1",
			"description": "Everything a Brand sets. Errors are RFC 9457 problem documents; where a body holds mistakes, " +
				"errors names all of them, each with the way to mend it. Calls that answer 202 with a change " +
				"wait for a touch of an owner's passkey on the dashboard, for 7 days; every owner gets a letter, and DELETE of the change takes it back. " +
				"What only stops something waits for nobody; revoking a signing key is that, and every owner hears of it. A POST, PUT, PATCH or DELETE with an Idempotency-Key is done once " +
				"within a day; the same call again gets the same answer, unless that was 409, 429 or 5xx: nothing was done then, and the call may be tried again.",
		},
		"servers":  []any{object{"url": h.Site.PublicURL}},
		"security": []any{object{"apiKey": []any{}}},
		"paths":    paths,
		"components": object{
			"securitySchemes": object{
				"apiKey": object{"type": "http", "scheme": "bearer", "description": "An API key of the Brand, with the right admin: cs_…"},
				"paJwt":  object{"type": "http", "scheme": "bearer", "bearerFormat": "JWT", "description": "Signed by the agent itself"},
			},
			"schemas": object{"problem": schema(reflect.TypeFor[problem]())},
			"headers": object{"Retry-After": object{
				"description": "In how many seconds to come again", "schema": object{"type": "integer", "minimum": 1},
			}},
			"responses": object{
				"problem": object{
					"description": "Why not. 503 says when to come again",
					"headers":     retryAfter,
					"content":     object{problemJSON: object{"schema": object{"$ref": "#/components/schemas/problem"}, "example": exampleProblem}},
				},
				"tooMany": object{
					"description": "Too many calls from this address, or checks of this Brand",
					"headers":     retryAfter,
					"content":     object{problemJSON: object{"schema": object{"$ref": "#/components/schemas/problem"}, "example": exampleTooMany}},
				},
			},
		},
	}
}

const problemJSON = "application/problem+json"

var exampleProblem = problem{
	Type: "about:blank", Title: "That cannot be set", Status: http.StatusUnprocessableEntity, Detail: "Nothing has changed.",
	Errors: tenants.Problems{{Field: "support_url", Say: "is not https", Mend: "begin it with https://"}},
}

var (
	retryAfter     = object{"Retry-After": object{"$ref": "#/components/headers/Retry-After"}}
	exampleTooMany = problem{Type: "about:blank", Title: "Too many calls from this address", Status: http.StatusTooManyRequests}
)

func (r route) operation() object {
	op := object{
		"summary": r.says, "operationId": r.name(), "parameters": r.parameters(),
		"responses": object{
			strconv.Itoa(r.status): object{
				"description": http.StatusText(r.status),
				"content":     r.answer(),
			},
			strconv.Itoa(http.StatusTooManyRequests): object{"$ref": "#/components/responses/tooMany"},
			"default":                                object{"$ref": "#/components/responses/problem"},
		},
	}
	switch {
	case r.media != "":
		op["requestBody"] = object{"required": true, "content": object{r.media: object{}}}
	case r.takes != nil:
		s := schema(reflect.TypeOf(r.takes))
		delete(s, "required") // what may be left out is told by the errors
		if r.method == http.MethodPatch {
			s = object{"type": "object", "properties": schema(reflect.TypeFor[tenants.Settings]())["properties"], "additionalProperties": false}
		}
		op["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": s, "example": r.takes}}}
	}
	return op
}

func (r route) answer() object {
	if r.file != "" {
		return object{r.file: object{}}
	}
	return object{"application/json": object{"schema": schema(reflect.TypeOf(r.gives)), "example": r.gives}}
}

// name is the call in one word: getSettings, postDomainsOneCheck.
func (r route) name() string {
	words := strings.FieldsFunc(braces.ReplaceAllString(r.path, "one"), func(c rune) bool { return c == '/' || c == '-' })
	name := strings.ToLower(r.method)
	for _, w := range words {
		name += strings.ToUpper(w[:1]) + w[1:]
	}
	return name
}

var braces = regexp.MustCompile(`\{(\w+)\}`)

func (r route) parameters() []any {
	text := object{"type": "string"}
	var out []any
	for _, m := range braces.FindAllStringSubmatch(prefix+r.path, -1) {
		out = append(out, object{"name": m[1], "in": "path", "required": true, "schema": text})
	}
	out = append(out, r.query()...)
	if r.method != http.MethodGet {
		out = append(out, object{"name": idempotencyKey, "in": "header", "schema": object{"type": "string", "maxLength": longestIdempotencyKey}})
	}
	return out
}

// query is what may stand behind the path.
func (r route) query() []any {
	text := object{"type": "string"}
	var out []any
	for _, name := range r.asks {
		out = append(out, object{"name": name, "in": "query", "schema": text})
	}
	if r.pages {
		out = append(out,
			object{"name": "limit", "in": "query", "schema": object{"type": "integer", "minimum": 1, "maximum": 200}},
			object{"name": "cursor", "in": "query", "schema": text, "description": "next of the page before"})
	}
	return out
}

// schema describes what encoding/json makes of a type.
func schema(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[uuid.UUID]():
		return object{"type": "string", "format": "uuid"}
	case reflect.TypeFor[json.RawMessage]():
		return object{}
	}
	switch t.Kind() {
	case reflect.Pointer:
		s := schema(t.Elem())
		s["type"] = []any{s["type"], "null"}
		return s
	case reflect.Struct:
		return structSchema(t)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return object{"type": "string", "contentEncoding": "base64"}
		}
		return object{"type": "array", "items": schema(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": schema(t.Elem())}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}
	case reflect.String:
		return object{"type": "string"}
	}
	return object{}
}

func structSchema(t reflect.Type) object {
	properties, required := object{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue // an embedded struct: its fields are visible themselves
		}
		properties[name] = schema(f.Type)
		if options != "omitempty" {
			required = append(required, name)
		}
	}
	slices.Sort(required)
	return object{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}
