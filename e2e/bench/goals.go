package main

import "slices"

// A goal is about rows of one run. It is shown and, like everything here, fails
// nothing.
type goal struct {
	Name    string  `json:"name"`
	Unit    string  `json:"unit"` // "×" for a comparison of rows
	Want    float64 `json:"want"`
	AtMost  bool    `json:"at_most"` // Want is the most, not the least
	Got     float64 `json:"got"`
	Reached bool    `json:"reached"`
	// Raw is what Vault's own batch_input gets by the same measure: a goal beyond
	// it cannot be reached on this machine by any way of gathering. 0: no matter of
	// gathering.
	Raw float64 `json:"raw_gets,omitempty"`
}

// Rows that goals are about.
const (
	signatures = "Signature"
	single     = "Vault, single, Brands: 1, 100 callers"
	gathered   = "Vault, gathered, Brands: 1, 100 callers"
	alike      = "Vault, raw batch_input of 100, 1 caller"
)

// goals are those whose rows are all there.
func goals(rows []row) []goal {
	return slices.Concat(gathering(rows), growth(rows), listing(rows), logging(rows), telling(rows), guarding(rows))
}

// growth is what a thousand times the grants do to what somebody waits for. It
// compares medians, each of its least disturbed round.
func growth(rows []row) []goal {
	var all []goal
	for _, what := range []string{"refresh", "introspect", "revoke"} {
		median := func(grants string) float64 {
			i := slices.IndexFunc(rows, func(r row) bool { return r.Group == "Growth" && r.Name == what+", "+grants+" grants" })
			if i < 0 {
				return 0
			}
			return rows[i].least
		}
		few, many := median("1,000"), median("1,000,000")
		if few == 0 || many == 0 {
			continue
		}
		const steady = 1.3
		all = append(all, goal{
			Name: what + ", median at 1,000,000 grants over that at 1,000", Unit: "×", Want: steady, AtMost: true,
			Got: many / few, Reached: many/few <= steady,
		})
	}
	return all
}

// listing is what the grants beside a list do to publishing it: a full list is as
// dear at a Brand with fifteen more, and that it still stands is seen in one look.
func listing(rows []row) []goal {
	var all []goal
	for _, what := range []struct{ name, few string }{{"make", "65,536"}, {"still stands", "1,000"}} {
		median := func(grants string) float64 {
			i := slices.IndexFunc(rows, func(r row) bool {
				return r.Group == "StatusList" && r.Name == what.name+", grants: "+grants+", 1 caller"
			})
			if i < 0 {
				return 0
			}
			return rows[i].least
		}
		few, many := median(what.few), median("1,000,000")
		if few == 0 || many == 0 {
			continue
		}
		const steady = 1.3
		all = append(all, goal{
			Name: "status list, " + what.name + ", median at 1,000,000 grants over that at " + what.few, Unit: "×", Want: steady, AtMost: true,
			Got: many / few, Reached: many/few <= steady,
		})
	}
	return all
}

// logging is what a thousand times the receipts do to appending and proving. A proof
// is twice as long, so it may take twice the time.
func logging(rows []row) []goal {
	var all []goal
	for _, what := range []struct {
		name string
		most float64
	}{{"append", 1.3}, {"inclusion", 2}, {"consistency", 2}} {
		median := func(receipts string) float64 {
			i := slices.IndexFunc(rows, func(r row) bool { return r.Group == "Log" && r.Name == what.name+", "+receipts+" receipts" })
			if i < 0 {
				return 0
			}
			return rows[i].least
		}
		few, many := median("1,000"), median("1,000,000")
		if few == 0 || many == 0 {
			continue
		}
		all = append(all, goal{
			Name: what.name + ", median at 1,000,000 receipts over that at 1,000", Unit: "×", Want: what.most, AtMost: true,
			Got: many / few, Reached: many/few <= what.most,
		})
	}
	return all
}

// telling is how soon a Brand knows that somebody took a permission back: 99 of
// 100 times, in milliseconds.
func telling(rows []row) []goal {
	const micros = 1e3
	var list []goal
	for _, g := range []struct {
		name string
		most float64
	}{{"revoke to stream", 250}, {"revoke to webhook", 1000}, {"revoke to introspection", 1000}} {
		for _, r := range rows {
			if r.Group == "Told" && r.Name == g.name && r.Slow > 0 {
				got := r.Slow / micros
				list = append(list, goal{Name: g.name + ", p99", Unit: " ms", Want: g.most, AtMost: true, Got: got, Reached: got <= g.most})
			}
		}
	}
	return list
}

// guarding is what a proxy's question adds to every call at a Brand, 99 of 100
// times, in milliseconds. One caller a core: with more, it is the machine's queue
// that is measured.
func guarding(rows []row) []goal {
	const micros, most = 1e3, 2
	var list []goal
	for _, r := range rows {
		if r.Group == "Door" && r.Name == "verify for a proxy, 2 callers" && r.Slow > 0 {
			got := r.Slow / micros
			list = append(list, goal{Name: r.Name + ", p99", Unit: " ms", Want: most, AtMost: true, Got: got, Reached: got <= most})
		}
	}
	return list
}

func gathering(rows []row) []goal {
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
	list := []goal{
		{
			Name: "gathered over single, signatures per second of 1 Brand at 100 callers",
			Unit: "×", Want: faster, Got: speedup, Reached: speedup >= faster, Raw: one.Batched,
		},
		{
			Name: "raw batch_input over gathered, signatures per second of 1 Brand at 100 callers",
			Unit: "×", Want: near, AtMost: true, Got: many.Batched, Reached: many.Batched <= near, Raw: 1,
		},
	}
	// The raw cost above has two hundred signatures under way. A hundred callers
	// never have more than a hundred: the like for like is one raw call of so many.
	if alike := find(alike); alike != nil {
		over := alike.PerSec / many.PerSec
		list = append(list, goal{
			Name: "the same, with as many signatures under way in the raw call as there are callers",
			Unit: "×", Want: near, AtMost: true, Got: over, Reached: over <= near,
		})
	}
	return list
}
