package main

import (
	"encoding/json"
	"strings"
	"testing"

	"countersign.dev/authority/a2a"
)

// P47: the demo hotel's agent keeps to what the person allowed more exactly, and
// says what it did not do.
func TestTheDemoAgentKeepsToTheLimit(t *testing.T) {
	for name, tt := range map[string]struct {
		text    string
		details []string
		ordered bool
	}{
		"no limit":              {"Order champagne", nil, true},
		"enough":                {"Order champagne", []string{`{"type":"stay_charge","amount":95,"currency":"EUR"}`}, true},
		"enough for breakfast":  {"Breakfast, please", []string{`{"type":"stay_charge","amount":20,"currency":"EUR"}`}, true},
		"too little":            {"Order champagne", []string{`{"type":"stay_charge","amount":94.5,"currency":"EUR"}`}, false},
		"another currency":      {"Order champagne", []string{`{"type":"stay_charge","amount":500,"currency":"JPY"}`}, false},
		"until yesterday":       {"Order champagne", []string{`{"type":"stay_charge","amount":500,"currency":"EUR","until":"2020-01-01"}`}, false},
		"a type it has never":   {"Order champagne", []string{`{"type":"other","amount":500,"currency":"EUR"}`}, false},
		"one of two is less":    {"Order champagne", []string{`{"type":"stay_charge","amount":500,"currency":"EUR"}`, `{"type":"stay_charge","amount":5,"currency":"EUR"}`}, false},
		"what costs nothing":    {"Cancel my stay", []string{`{"type":"stay_charge","amount":1,"currency":"EUR"}`}, true},
		"for a hundred years":   {"Order champagne", []string{`{"type":"stay_charge","amount":500,"currency":"EUR","until":"2999-01-01"}`}, true},
		"something unreadable!": {"Order champagne", []string{`7`}, false},
	} {
		turn := a2a.Turn{Type: "turn", Text: tt.text, User: &a2a.User{Sub: "guest-1001"}, Scopes: []string{"extras:order", "bookings:change"}}
		for _, one := range tt.details {
			turn.Details = append(turn.Details, json.RawMessage(one))
		}
		said := answerAs(turn)
		if got := len(said.Actions) == 1 && len(said.ScopesUsed) == 1; got != tt.ordered || !tt.ordered && !strings.Contains(said.Text, "ordered nothing") {
			t.Errorf("%s: %+v", name, said)
		}
	}
}
