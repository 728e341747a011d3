package alike

import "testing"

func TestNamesThatPassForOneAnother(t *testing.T) {
	for _, tt := range []struct {
		one, other string
		want       bool
	}{
		{"Harbor Hotel", "harbor-hotel", true},
		{"Harb0r Hote1 Support", "Harbor Hotel", true},
		{"Hаrbor Hotel", "Harbor Hotel", true}, // a Cyrillic а
		{"Aria", "Harbor Hotel", false},
		{"Ha", "Harbor Hotel", false}, // too short to say
		{"", "", false},
	} {
		if got := Names(tt.one, tt.other); got != tt.want {
			t.Errorf("%q and %q: %v", tt.one, tt.other, got)
		}
	}
}

func TestHostsThatPassForOneAnother(t *testing.T) {
	for _, tt := range []struct {
		one, other string
		want       bool
	}{
		{"agent.example", "agent.example", false},
		{"Agent.example", "agent.example", true}, // never registered together, and alike
		{"xn--agnt-f0a.example", "agent.example", false},
		{"аria.example", "aria.example", true}, // a Cyrillic а
		{"xn--ria-5cd.example", "aria.example", true},
		{"ar1a.example", "arla.example", true},
		{"other.example", "agent.example", false},
	} {
		if got := Hosts(tt.one, tt.other); got != tt.want {
			t.Errorf("%q and %q: %v", tt.one, tt.other, got)
		}
	}
	if drawn, ok := Drawn("xn--ria-5cd.example"); !ok || drawn != "аria.example" {
		t.Errorf("drawn as %q, %v", drawn, ok)
	}
	if _, ok := Drawn("agent.example"); ok {
		t.Error("a plain host is drawn otherwise")
	}
}
