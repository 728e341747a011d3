package main

import "slices"

// A goal compares rows of one run. It is shown and, like everything here, fails
// nothing.
type goal struct {
	Name    string  `json:"name"`
	Want    float64 `json:"want"`
	AtMost  bool    `json:"at_most"` // Want is the most, not the least
	Got     float64 `json:"got"`
	Reached bool    `json:"reached"`
	// Raw is what Vault's own batch_input gets by the same measure: a goal beyond
	// it cannot be reached on this machine by any way of gathering.
	Raw float64 `json:"raw_gets"`
}

// Rows that goals are about.
const (
	signatures = "Signature"
	single     = "Vault, single, Brands: 1, 100 callers"
	gathered   = "Vault, gathered, Brands: 1, 100 callers"
)

// goals are those whose rows are all there.
func goals(rows []row) []goal {
	find := func(name string) *row {
		i := slices.IndexFunc(rows, func(r row) bool { return r.Group == signatures && r.Name == name })
		if i < 0 {
			return nil
		}
		return &rows[i]
	}
	one, many := find(single), find(gathered)
	if one == nil || many == nil || one.Batched == 0 || many.Batched == 0 {
		return nil
	}
	const faster, near = 10, 1.3
	speedup := many.PerSec / one.PerSec
	return []goal{
		{
			Name: "gathered over single, signatures per second of 1 Brand at 100 callers",
			Want: faster, Got: speedup, Reached: speedup >= faster, Raw: one.Batched,
		},
		{
			Name: "raw batch_input over gathered, signatures per second of 1 Brand at 100 callers",
			Want: near, AtMost: true, Got: many.Batched, Reached: many.Batched <= near, Raw: 1,
		},
	}
}
