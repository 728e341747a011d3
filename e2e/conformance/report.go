package conformance

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// Print writes the results as a table, and what they add up to.
func Print(w io.Writer, results []Result) error {
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "RULE\tRESULT\tCHECK")
	count := make(map[string]int)
	for _, r := range results {
		count[r.Result]++
		line := r.Check
		if r.Detail != "" {
			line += ": " + r.Detail
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", r.Rule, r.Result, line)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%d checks: %d passed, %d failed, %d not served, %d not run\n",
		len(results), count[Pass], count[Fail], count[NotServed], count[NotRun])
	return err
}

// PrintJSON writes the same for a program.
func PrintJSON(w io.Writer, results []Result) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Verdict string   `json:"verdict"`
		Results []Result `json:"results"`
	}{Verdict(results), results})
}
