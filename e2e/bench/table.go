package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// targets are what we first set out to reach, per second on two cores that
// caller, service and database share. Some want a machine without neighbours.
var targets = map[string]float64{
	"Page/ask, 4 permissions, 1 caller":   2000,
	"Door/JWKS, 2 callers":                10_000,
	"Door/metadata, 2 callers":            10_000,
	"Door/poll on time, 16 callers":       4000,
	"Door/redeem, 16 callers":             1000,
	"Door/refresh, 16 callers":            800,
	"Door/verify for a proxy, 16 callers": 3000,
}

// titles say what the groups are.
var titles = map[string]string{
	"ES256":      "Go's own ES256",
	"Sign":       "signing",
	"Signature":  "signatures alone, of any of so many Brands' keys",
	"Verify":     "pa-jwt verification",
	"Kit":        "a Brand's own check, in its process",
	"Page":       "pages, worded and rendered",
	"PostgreSQL": "PostgreSQL",
	"Rules":      "rules, 100,000 grants and 10,000 waiting",
	"Begin":      "rules, starts",
	"Growth":     "rules, as grants grow, 1 caller",
	"List":       "the admins' list of grants",
	"Trail":      "the audit trail",
	"Door":       "through HTTP, 100,000 grants and 10,000 waiting",
	"StatusList": "status list of 65,536 at most, signed anew or not",
	"Told":       "from a revocation to the Brand, each of 200",
}

type report struct {
	When       time.Time         `json:"when"`
	Took       string            `json:"took"`
	Go         string            `json:"go"`
	Cores      int               `json:"cores"`
	LoadBefore string            `json:"load_before,omitempty"`
	LoadAfter  string            `json:"load_after,omitempty"`
	Settings   map[string]string `json:"settings"`
	Incomplete string            `json:"incomplete,omitempty"`
	Missing    string            `json:"missing,omitempty"`
	Goals      []goal            `json:"goals,omitempty"`
	Rows       []row             `json:"rows"`
}

func (r *report) add(rows []row) { r.Rows = append(r.Rows, rows...) }

// print writes the header and one aligned table.
func (r *report) print(w io.Writer) error {
	fmt.Fprintf(w, "%s, %s on %d cores (%s), load %s before and %s after, PostgreSQL %s, Vault %s; took %s\n",
		r.When.UTC().Format("2006-01-02 15:04 UTC"), r.Go, r.Cores, r.Settings["cpu"], r.LoadBefore, r.LoadAfter,
		r.Settings["postgresql"], cmp.Or(r.Settings["vault"], "none"), r.Took)
	if r.Settings["fsync"] == "off" {
		fmt.Fprintln(w, "fsync is off on this server: redeem, refresh, revoke, start, find and write would each wait for a disk as well.")
	}
	fmt.Fprintln(w, "× raw compares medians within this run and is what to keep; the rest depends on the machine and on who shares it.")
	fmt.Fprintln(w, "CPU is that of service, callers and a private database or Vault together, and \"free cores\" what all cores could do at that price: one caller alone does not reach it.")
	fmt.Fprintln(w, "× batch compares µs/op, each in its least disturbed round, with one signature of Vault's own batch_input at 100 in a call and two calls at once, measured beside it.")
	if r.Missing != "" {
		fmt.Fprintln(w, r.Missing)
	}
	if r.Incomplete != "" {
		fmt.Fprintln(w, "INCOMPLETE:", r.Incomplete)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	const columns = "\tops/s\tµs/op\tCPU µs/op\tfree cores: ops/s\tallocs/op\tp50 µs\tp99 µs\t× raw\traw\t× batch\ttarget ops/s\treached\t\n"
	fmt.Fprint(t, columns)
	group := ""
	for _, row := range r.Rows {
		if row.Group != group {
			group = row.Group
			fmt.Fprintf(t, "%s\t\t\t\t\t\t\t\t\t\t\t\t\t\n", left(title(group)))
		}
		target, reached := "", ""
		if row.Target > 0 {
			const percent = 100
			target, reached = whole(row.Target), fmt.Sprintf("%.0f %%", percent*row.PerSec/row.Target)
		}
		free := ""
		if row.CPU > 0 {
			const micros = 1e6
			free = whole(float64(r.Cores) * micros / row.CPU)
		}
		ratio, batched := "", ""
		if row.Raw != "" {
			ratio = short(row.Ratio)
		}
		if row.Batched > 0 {
			batched = short(row.Batched)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", left("  "+row.Name), whole(row.PerSec), short(row.Micros), short(row.CPU), free,
			whole(row.Allocs), short(row.Median), short(row.Slow), ratio, row.Raw, batched, target, reached)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, g := range r.Goals {
		fmt.Fprintln(w, g)
	}
	if r.Missing != "" {
		fmt.Fprintln(w, r.Missing) // once more, where the eye ends
	}
	return nil
}

// String says the goal in a line.
func (g goal) String() string {
	bound, verdict := "at least", "not reached"
	if g.AtMost {
		bound = "at most"
	}
	if g.Reached {
		verdict = "reached"
	}
	raw := ""
	if g.Raw > 0 {
		raw = fmt.Sprintf(" (raw batch_input: %s×)", short(g.Raw))
	}
	return fmt.Sprintf("goal: %s: %s%s, wanted %s %s%s: %s%s", g.Name, short(g.Got), g.Unit, bound, short(g.Want), g.Unit, verdict, raw)
}

func title(group string) string {
	if t, ok := titles[group]; ok {
		return t
	}
	return group
}

// left fills a name up, for a writer that sets everything to the right.
func left(s string) string {
	const width = 48
	return s + strings.Repeat(" ", max(0, width-len([]rune(s))))
}

// whole writes a number with its thousands apart.
func whole(f float64) string {
	s := strconv.FormatFloat(f, 'f', 0, 64)
	const group = 3
	for i := len(s) - group; i > 0; i -= group {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// short writes three digits that matter.
func short(f float64) string {
	const tens, hundreds = 10, 100
	switch {
	case f >= hundreds:
		return whole(f)
	case f >= tens:
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	return strconv.FormatFloat(f, 'f', 2, 64)
}
