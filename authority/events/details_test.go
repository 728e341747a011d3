package events

import (
	"encoding/json"
	"strings"
	"testing"

	"countersign.dev/authority"
)

// P47: the Brand is told what scopes allow more exactly; where there is nothing of
// it, what it is told is what it always was.
func TestAMessageSaysDetails(t *testing.T) {
	for data, want := range map[string]bool{
		`{"agent":"a","subject":"s","scopes":["x"],"authorization_details":[{"type":"stay_charge","amount":200}]}`: true,
		`{"agent":"a","subject":"s","scopes":["x"]}`:                                                               false,
	} {
		body, err := Message(authority.Event{Type: "grant.narrowed", Data: json.RawMessage(data)})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(body), `"authorization_details":[{"type":"stay_charge","amount":200}]`); got != want || !want && strings.Contains(string(body), "authorization_details") {
			t.Errorf("%s", body)
		}
	}
}
