package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"countersign.dev/e2e/bench/yardstick"
)

// A row is one benchmark, in its least disturbed round.
type row struct {
	Group  string  `json:"group"`
	Name   string  `json:"name"`
	PerSec float64 `json:"ops_per_second"`
	Micros float64 `json:"us_per_op"`     // wall time over all callers
	CPU    float64 `json:"cpu_us_per_op"` // ours, the callers' and a private database's
	Allocs float64 `json:"allocs_per_op"`
	Raw    string  `json:"raw,omitempty"` // what it is compared with
	Ratio  float64 `json:"times_raw"`     // medians; the median of all rounds
	Median float64 `json:"p50_us"`        // of one call
	Slow   float64 `json:"p99_us"`        // of one call
	// Batched is the wall time of one over that of one in a raw batch, each in its
	// least disturbed round.
	Batched float64 `json:"times_raw_batch,omitempty"`
	Target  float64 `json:"target,omitempty"`
	Rounds  int     `json:"rounds"`
	ratios  []float64
	batch   float64 // µs for one in a raw batch
	least   float64 // the lowest median of all rounds, in µs
}

// raws name the units in which benchmarks report what they are compared with.
var raws = map[string]string{
	yardstick.UnitSign:      "ES256 signature",
	yardstick.UnitVerify:    "ES256 verification",
	yardstick.UnitRoundTrip: "round trip",
	yardstick.UnitExchange:  "empty exchange",
	yardstick.UnitDirect:    "agent called directly",
}

var (
	result  = regexp.MustCompile(`^Benchmark(\w+)/(.+?)(?:-\d+)?\s+\d+\s+(.*\bns/op\b.*)$`)
	setting = regexp.MustCompile(`^([a-z]+): (.+)$`)
)

// parse reads Go's benchmark format: result lines, and configuration lines into
// settings. Rounds of one benchmark become one row.
func parse(out string, settings map[string]string) []row {
	var rows []row
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if m := setting.FindStringSubmatch(line); m != nil {
			settings[m[1]] = m[2]
			continue
		}
		m := result.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		r := row{Group: m[1], Name: name(m[2]), Rounds: 1}
		r.measure(strings.Fields(m[3]))
		i := slices.IndexFunc(rows, func(o row) bool { return o.Group == r.Group && o.Name == r.Name })
		if i < 0 {
			rows = append(rows, r)
			continue
		}
		rows[i] = better(rows[i], r)
	}
	for i := range rows {
		if n := len(rows[i].ratios); n > 0 {
			slices.Sort(rows[i].ratios)
			rows[i].Ratio = rows[i].ratios[n/2]
		}
		if rows[i].batch > 0 {
			rows[i].Batched = rows[i].Micros / rows[i].batch
		}
		rows[i].Target = targets[rows[i].Group+"/"+rows[i].Name]
	}
	return rows
}

// name undoes what the testing package does to spaces; Vault's own word keeps its
// underline.
func name(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "_", " "), "batch input", "batch_input")
}

// measure reads pairs of a value and its unit.
func (r *row) measure(fields []string) {
	const perMicro, perSecond = 1e3, 1e9
	var raw float64
	for ; len(fields) >= 2; fields = fields[2:] {
		value, err := strconv.ParseFloat(fields[0], 64)
		if err != nil {
			continue
		}
		switch unit := fields[1]; unit {
		case "ns/op":
			r.Micros, r.PerSec = value/perMicro, perSecond/value
		case yardstick.UnitCPU:
			r.CPU = value / perMicro
		case "allocs/op":
			r.Allocs = value
		case yardstick.UnitMedian:
			r.Median = value / perMicro
			r.least = r.Median
		case yardstick.UnitSlow:
			r.Slow = value / perMicro
		case yardstick.UnitBatched:
			r.batch = value / perMicro
		default:
			if name, ok := raws[unit]; ok {
				r.Raw, raw = name, value/perMicro
			}
		}
	}
	if raw > 0 {
		r.ratios = []float64{r.Median / raw}
	}
}

// better is the faster of two rounds, with the ratios of both and the lower cost
// in processor time: the other one had connections to open and plans to make.
func better(a, b row) row {
	ratios, rounds, cpu, batch := slices.Concat(a.ratios, b.ratios), a.Rounds+b.Rounds, min(a.CPU, b.CPU), least(a.batch, b.batch)
	median := least(a.least, b.least)
	if b.PerSec > a.PerSec {
		a = b
	}
	a.ratios, a.Rounds, a.CPU, a.batch, a.least = ratios, rounds, cpu, batch, median
	return a
}

// least is the smaller of two that were measured; 0 was not.
func least(a, b float64) float64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
