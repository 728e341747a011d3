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
	for details, want := range map[string]bool{`{"type":"stay_charge","amount":200}`: true, "": false} {
		e := authority.Event{Type: "grant.narrowed", Data: json.RawMessage(`{"agent":"a","subject":"s","scopes":["x"],"details":[{"type":"stay_charge","digest":"AAAA"}]}`)}
		if want {
			e.Details = []json.RawMessage{json.RawMessage(details)}
		}
		body, err := Message(e)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(body), `"authorization_details":[`+details+`]`); got != want || !want && strings.Contains(string(body), "stay_charge") {
			t.Errorf("%s", body)
		}
	}
}
