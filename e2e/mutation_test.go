package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"countersign.dev/e2e/conformance"
)

// A mutant is the product with one rule switched off, at every place where it is
// enforced. The switches are edits of the source that go build is given as an
// overlay, all in one binary, which reads from a file which of them are off now.
// The source that ships holds none of it.
type mutant struct {
	rule  string // whose checks must notice
	name  string
	edits []edit
	// fresh: the rule is applied when an agent's keys are read, so it takes an
	// agent whose keys are not known yet.
	fresh bool
}

// edit replaces one text that stands once in the file. OFF in the new text is
// whether the rule is off.
type edit struct{ file, old, new string }

// without is an edit that takes the text out of an SQL statement.
func without(file, sql string) edit {
	return edit{file, sql, "` + sqlUnless(OFF, `" + sql + "`) + `"}
}

const (
	switchVariable = "COUNTERSIGN_MUTATE"
	switchPackage  = "authority/mutate"
)

// The package of the switches exists in the overlay alone.
const switches = `package mutate

import (
	"os"
	"strings"
)

// Off is whether the file names the mutant.
func Off(name string) bool {
	raw, err := os.ReadFile(os.Getenv("` + switchVariable + `"))
	return err == nil && strings.TrimSpace(string(raw)) == name
}

// Unless is the SQL where the rule is on.
func Unless(off bool, sql string) string {
	if off {
		return ""
	}
	return sql
}
`

// mutantBinary builds the product with all switches.
func mutantBinary(t *testing.T, all []mutant) string {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	texts := make(map[string]string)
	for _, m := range all {
		for _, e := range m.edits {
			text, there := texts[e.file]
			if !there {
				raw, err := os.ReadFile(filepath.Join(root, e.file))
				if err != nil {
					t.Fatal(err)
				}
				// A statement that is put together is no constant.
				text = strings.ReplaceAll(string(raw), "\tconst q = ", "\tq := ")
				text = strings.Replace(text, "\n\nimport ", "\n\nimport \""+module+switchPackage+"\"\n\nimport ", 1)
			}
			if n := strings.Count(text, e.old); n != 1 {
				t.Fatalf("%s %s: %s holds %d times what it changes; say anew where the rule is enforced:\n%s", m.rule, m.name, e.file, n, e.old)
			}
			off := fmt.Sprintf("mutate.Off(%q)", m.rule+" "+m.name)
			changed := strings.ReplaceAll(strings.ReplaceAll(e.new, "sqlUnless(", "mutate.Unless("), "OFF", off)
			texts[e.file] = strings.Replace(text, e.old, changed, 1)
		}
	}
	texts[switchPackage+"/mutate.go"] = switches
	folder := filepath.Join(scratch, "mutants")
	overlay := struct{ Replace map[string]string }{make(map[string]string)}
	for file, text := range texts {
		path := filepath.Join(folder, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[filepath.Join(root, file)] = path
	}
	raw, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	list, bin := filepath.Join(folder, "overlay.json"), filepath.Join(folder, "countersign")
	if err := os.WriteFile(list, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", list, "-o", bin, module+"cmd/countersign")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the mutants: %v\n%s", err, out)
	}
	return bin
}

// share is some of the mutants, and where they are asked about: at a Brand whose
// interface is the service's own, or at one whose interface is a program of its own.
type share struct {
	name    string
	at      func(p *product, t *testing.T) (brand, other brand)
	mutants []mutant
}

// shares are about as long as one another.
func shares() []share {
	hosted := func(p *product, t *testing.T) (brand, brand) { return p.hotel(t), p.outfitter(t) }
	fronted := func(p *product, t *testing.T) (brand, brand) { return p.outfitter(t), p.hotel(t) }
	var halves [2][]mutant
	for i, m := range mutants() { // those of one rule take as long as one another, and stand together
		halves[i%2] = append(halves[i%2], m)
	}
	return []share{{"hosted-1", hosted, halves[0]}, {"hosted-2", hosted, halves[1]}, {"fronted", fronted, frontedMutants()}}
}

// M1–M24: a rule whose removal nobody notices is not covered. Every rule is
// switched off in turn, wherever it is enforced, and the suite must see it.
func TestNoRuleCanBeRemovedUnnoticed(t *testing.T) {
	all := slices.Concat(mutants(), frontedMutants())
	var covered, names []string
	for _, m := range all {
		if name := m.rule + " " + m.name; slices.Contains(names, name) {
			t.Errorf("two mutants are called %s, and would be off together", name)
		}
		covered, names = append(covered, m.rule), append(names, m.rule+" "+m.name)
	}
	for _, rule := range conformance.Rules() {
		if !slices.Contains(covered, rule) {
			t.Errorf("%s: no mutant", rule)
		}
	}
	began := time.Now()
	bin := mutantBinary(t, all)
	t.Logf("building the mutants: %s", time.Since(began).Round(time.Second))
	table := make(map[string]string)
	var mu sync.Mutex
	t.Run("off in turn", func(t *testing.T) {
		for _, s := range shares() {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel() // most of the time goes by in waiting
				rows := s.offInTurn(t, bin)
				mu.Lock()
				defer mu.Unlock()
				table[s.name] = rows
			})
		}
	})
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "RULE\tSWITCHED OFF\tPROBED AT\tNOTICED BY")
	for _, s := range shares() {
		fmt.Fprint(w, table[s.name])
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", text.String())
}

// offInTurn switches the share's rules off, one after the other, in a product of
// their own, and returns a row for each with who noticed.
func (s share) offInTurn(t *testing.T, bin string) string {
	folder := filepath.Join(scratch, "mutant-"+s.name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	which := filepath.Join(folder, "off")
	turn := func(off string) {
		if err := os.WriteFile(which, []byte(off), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	turn("")
	p, err := startBinary(bin, folder, "data", "localhost:0", switchVariable+"="+which)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.process.Process.Signal(os.Interrupt); err == nil {
			<-p.ended
		}
	})
	at, other := s.at(p, t)
	probe := p.probe(t, at, other)
	probe.StopAtFailure = true
	var rows strings.Builder
	for _, m := range s.mutants {
		c := probe
		c.Only = []string{m.rule}
		if m.fresh {
			c.PA = p.registers(t, at.Audience)
		}
		turn(m.rule + " " + m.name)
		noticed, err := whoNotices(t.Context(), c)
		turn("")
		if err != nil {
			t.Errorf("%s: without %s: %v", m.rule, m.name, err)
		}
		fmt.Fprintf(&rows, "%s\t%s\t%s\t%s\n", m.rule, m.name, at.ID, noticed)
	}
	// Where a check fails with every rule on, it has noticed nothing.
	for _, m := range s.mutants {
		if !slices.Contains(probe.Only, m.rule) {
			probe.Only = append(probe.Only, m.rule)
		}
	}
	results, err := conformance.Run(t.Context(), probe)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Result != conformance.Pass {
			t.Errorf("with every rule on at %s: %s, %s: %s: %s", at.ID, r.Rule, r.Check, r.Result, r.Detail)
		}
	}
	return rows.String()
}

// whoNotices is the check that fails. That the suite could not ask is no notice:
// nobody can tell it from a server that is down.
func whoNotices(ctx context.Context, c conformance.Config) (string, error) {
	results, err := conformance.Run(ctx, c)
	if err != nil {
		return "NOBODY: " + err.Error(), fmt.Errorf("the suite could not ask: %w", err)
	}
	if last := len(results) - 1; last >= 0 && results[last].Result == conformance.Fail {
		return results[last].Check + ": " + results[last].Detail, nil
	}
	return "NOBODY", errors.New("nobody notices")
}
