package tenants

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// largestSchema bounds what is compiled whenever an agent comes with details.
const largestSchema = 8 << 10

// leaf is a member that holds a value, or a list of values.
type leaf struct {
	path     string // limit.amount
	optional bool
}

// keywords are the parts of JSON Schema that a type may use. Whatever could open an
// object again, refer elsewhere or take its meaning from another place is absent:
// a member that the schema does not name must be refused.
var keywords = map[string][]string{
	"object":  {"properties", "required", "additionalProperties"},
	"array":   {"items", "minItems", "maxItems", "uniqueItems"},
	"string":  {"enum", "const", "minLength", "maxLength", "pattern", "format"},
	"number":  {"enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
	"integer": {"enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
}

// anywhere are keywords that say nothing of what fits.
var anywhere = []string{"type", "title", "description"}

var (
	formats    = []string{"date", "date-time", "email", "uri"}
	memberForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,39}$`)
)

// readSchema returns what the schema's members are, or every mistake in it.
func readSchema(raw json.RawMessage) ([]leaf, Problems) {
	var p Problems
	var schema map[string]any
	switch err := json.Unmarshal(raw, &schema); {
	case len(raw) > largestSchema:
		p.add("schema", "is too large", "use "+count(largestSchema)+" bytes at most")
		return nil, p
	case err != nil || schema == nil:
		p.add("schema", "is no JSON Schema of an object", `write such as {"type":"object","additionalProperties":false,"properties":{…}}`)
		return nil, p
	}
	w := schemaWalk{problems: &p}
	if schema["type"] != "object" {
		p.add("schema.type", "is not object", "a detail is a JSON object")
	} else {
		w.object("schema", "", schema, false)
	}
	if len(p) == 0 && len(w.leaves) == 0 {
		p.add("schema.properties", "is empty", "name the members that a detail has beside type")
	}
	if len(p) > 0 {
		return nil, p
	}
	if _, err := compile(raw); err != nil {
		p.add("schema", "is no JSON Schema (draft 2020-12)", "check patterns, and the values of its keywords")
		return nil, p
	}
	return w.leaves, nil
}

type schemaWalk struct {
	problems *Problems
	leaves   []leaf
}

func (w *schemaWalk) object(field, path string, schema map[string]any, optional bool) {
	w.known(field, "object", schema)
	if schema["additionalProperties"] != false {
		w.problems.add(field+".additionalProperties", "is not false", "write false: a member that the schema does not name is refused")
	}
	properties, ok := schema["properties"].(map[string]any)
	if !ok {
		w.problems.add(field+".properties", "is no object", "name the members there are")
		return
	}
	required, _ := schema["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		at := field + ".properties." + name
		below, ok := properties[name].(map[string]any)
		switch {
		case !memberForm.MatchString(name):
			w.problems.add(at, "is no name for a member", "use up to 40 letters, digits, _ and -")
			continue
		case path == "" && name == "type":
			w.problems.add(at, "is there in any case", "leave it out")
			continue
		case !ok:
			w.problems.add(at, "is no schema", "write an object with a type")
			continue
		}
		w.value(at, path+name, below, optional || !slices.Contains(required, any(name)))
	}
}

func (w *schemaWalk) value(field, path string, schema map[string]any, optional bool) {
	kind, _ := schema["type"].(string)
	switch kind {
	case "object":
		w.object(field, path+".", schema, optional)
		return
	case "array":
		items, _ := schema["items"].(map[string]any)
		of, _ := items["type"].(string)
		if of != "string" && of != "number" && of != "integer" {
			w.problems.add(field+".items", "are no strings, numbers or integers", "lists of other things cannot be said in one sentence")
		} else {
			w.known(field+".items", of, items)
		}
	case "string", "number", "integer":
	default:
		w.problems.add(field+".type", "is none that can be said in words", "use object, array, string, number or integer; for yes and no, a string with an enum of two words")
		return
	}
	w.known(field, kind, schema)
	w.leaves = append(w.leaves, leaf{path, optional})
}

// known refuses keywords outside of the list.
func (w *schemaWalk) known(field, kind string, schema map[string]any) {
	for _, k := range slices.Sorted(maps.Keys(schema)) {
		if !slices.Contains(keywords[kind], k) && !slices.Contains(anywhere, k) {
			w.problems.add(field+"."+k, "is a keyword that is not taken here", "use "+strings.Join(keywords[kind], ", "))
		}
	}
	if f, ok := schema["format"]; ok && !slices.ContainsFunc(formats, func(s string) bool { return s == f }) {
		w.problems.add(field+".format", "is none of the formats known here", "use "+strings.Join(formats, ", ")+", or a pattern")
	}
}

// nothingElse loads no schema from anywhere.
type nothingElse struct{}

func (nothingElse) Load(url string) (any, error) { return nil, errors.New("no other schema is loaded") }

func compile(raw json.RawMessage) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	const name = "urn:countersign:detail"
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(nothingElse{})
	c.AssertFormat()
	if err := c.AddResource(name, doc); err != nil {
		return nil, err
	}
	return c.Compile(name)
}

// Check holds a detail against the type's schema. The error names at most members
// of the schema and a keyword, never a value or name of the detail's own.
func (t DetailType) Check(detail json.RawMessage) error {
	schema, err := compile(t.Schema)
	if err != nil {
		return fmt.Errorf("schema of detail type %s: %w", t.Type, err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(detail))
	if err != nil {
		return err
	}
	members, ok := value.(map[string]any)
	if !ok {
		return &MisfitError{Rule: "type"}
	}
	delete(members, "type")
	err = schema.Validate(members)
	if bad := new(jsonschema.ValidationError); errors.As(err, &bad) {
		for len(bad.Causes) > 0 {
			bad = bad.Causes[0]
		}
		rule := ""
		if path := bad.ErrorKind.KeywordPath(); len(path) > 0 {
			rule = path[0]
		}
		return &MisfitError{At: strings.Join(bad.InstanceLocation, "."), Rule: rule}
	}
	return err
}

// MisfitError says where a detail does not fit its schema.
type MisfitError struct {
	At   string // limit.amount; empty: the detail itself
	Rule string // the keyword that it breaks
}

func (e *MisfitError) Error() string {
	return "the value at " + e.At + " breaks " + e.Rule
}
