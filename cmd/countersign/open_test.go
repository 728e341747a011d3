package main

import (
	"strings"
	"testing"
)

// From a shell and by a file a Brand is only asked to be open to agents that nobody
// registered; the operator can decide in its owners' place.
func TestOpeningWaitsForAnOwner(t *testing.T) {
	b := newBench(t)
	opened := func() bool { return b.Count(t, `SELECT count(*) FROM brands WHERE agents = 'open'`) != 0 }
	file := b.file("brand: harbor-hotel\nsettings: {agents: open}\n")
	for _, line := range [][]string{
		{"brand", "set", "--brand", "harbor-hotel", "--set", "agents=open", "--master-key-file", b.keyFile},
		{"brand", "apply", "-f", file, "--yes", "--master-key-file", b.keyFile},
	} {
		if out, _ := b.run(0, line...); opened() || !strings.Contains(out, "waits for an owner") {
			t.Errorf("%v: %s", line, out)
		}
	}
	if out, _ := b.run(0, "brand", "apply", "-f", file); opened() || !strings.Contains(out, "agents: open") {
		t.Errorf("the difference: %s", out)
	}
	b.run(1, "brand", "set", "--brand", "harbor-hotel", "--set", "agents=open", "--set", "token_seconds=600")
	b.run(0, "brand", "set", "--brand", "harbor-hotel", "--set", "agents=open", "--as-operator")
	if !opened() {
		t.Error("the operator opened nothing")
	}
	if out, _ := b.run(0, "brand", "apply", "-f", file, "--yes"); !strings.Contains(out, "as the file says") {
		t.Errorf("twice is not once: %s", out)
	}
}
