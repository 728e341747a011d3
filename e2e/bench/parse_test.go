package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const said = `postgresql: 15.18
fsync: off
goos: linux
cpu: Some CPU
BenchmarkDoor/refresh,_16_callers-2    213   2500000 ns/op   340546 ns/round-trip   950000 cpu-ns/op   14181665 p50-ns   94861312 p99-ns   45439 B/op   528 allocs/op
BenchmarkDoor/refresh,_16_callers-2    213   1250000 ns/op   400000 ns/round-trip   900000 cpu-ns/op    4000000 p50-ns    9000000 p99-ns   45439 B/op   528 allocs/op
BenchmarkDoor/refresh,_16_callers-2    213   5000000 ns/op   400000 ns/round-trip   990000 cpu-ns/op   8000000 p50-ns    9000000 p99-ns   45439 B/op   529 allocs/op
BenchmarkVerify/pa-jwt,_remembered,_1_caller     153231   2000 ns/op   1 allocs/op
--- FAIL: BenchmarkDoor/broken
PASS
`

// The fastest round is shown, the ratio is the middle one of all rounds, and the
// machine's number of cores is no part of a name.
func TestRoundsBecomeOneRow(t *testing.T) {
	settings := map[string]string{}
	got := parse(said, settings)
	want := []row{
		{
			Group: "Door", Name: "refresh, 16 callers", PerSec: 800, Micros: 1250, CPU: 900, Allocs: 528,
			Raw: "round trip", Ratio: 20, Median: 4000, Slow: 9000, Target: 800, Rounds: 3,
		},
		{Group: "Verify", Name: "pa-jwt, remembered, 1 caller", PerSec: 500_000, Micros: 2, Allocs: 1, Rounds: 1},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(row{})); diff != "" {
		t.Error(diff)
	}
	if settings["fsync"] != "off" || settings["cpu"] != "Some CPU" {
		t.Errorf("settings %v", settings)
	}
}

// Whoever reads the numbers of writes is told that no disk was waited for.
func TestHeaderSaysThatFsyncIsOff(t *testing.T) {
	r := &report{Settings: map[string]string{}}
	r.add(parse(said, r.Settings))
	var out bytes.Buffer
	if err := r.print(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if !strings.Contains(lines[1], "fsync is off") {
		t.Errorf("header:\n%s", out.String())
	}
	if !strings.Contains(out.String(), "100 %") || !strings.Contains(out.String(), "500,000") {
		t.Errorf("table:\n%s", out.String())
	}
}
