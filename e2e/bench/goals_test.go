package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const signed = `vault: 1.21.0
BenchmarkSignature/Vault,_raw_batch_input_of_100,_2_callers-2    9000    50000 ns/op    40000 ns/batched    6000000 p50-ns    9000000 p99-ns    13 allocs/op
BenchmarkSignature/Vault,_single,_Brands:_1,_100_callers-2       2000   440000 ns/op    80000 ns/batched    30000 ns/sign   30000000 p50-ns   40000000 p99-ns   169 allocs/op
BenchmarkSignature/Vault,_single,_Brands:_1,_100_callers-2       2000   400000 ns/op    90000 ns/batched    30000 ns/sign   30000000 p50-ns   40000000 p99-ns   169 allocs/op
BenchmarkSignature/Vault,_gathered,_Brands:_1,_100_callers-2     9000    60000 ns/op    70000 ns/batched    30000 ns/sign    6000000 p50-ns    9000000 p99-ns    36 allocs/op
BenchmarkSignature/Vault,_gathered,_Brands:_1,_100_callers-2     9000    80000 ns/op    50000 ns/batched    30000 ns/sign    6000000 p50-ns    9000000 p99-ns    36 allocs/op
`

// A raw batch disturbed by neighbours flatters nobody: each side is taken in its
// best round. A goal out of reach is said to be, with what is within it.
func TestGoalsCompareLeastDisturbedRounds(t *testing.T) {
	rows := parse(signed, map[string]string{})
	if rows[0].Name != "Vault, raw batch_input of 100, 2 callers" {
		t.Errorf("named %q", rows[0].Name)
	}
	got := goals(rows)
	if len(got) != 2 {
		t.Fatalf("goals %v", got)
	}
	faster, near := got[0], got[1]
	if faster.Reached || short(faster.Got) != "6.67" || short(faster.Raw) != "5.00" {
		t.Errorf("%+v", faster)
	}
	if !near.Reached || short(near.Got) != "1.20" {
		t.Errorf("%+v", near)
	}
	if goals(rows[:2]) != nil {
		t.Error("goals without their rows")
	}
}

const grown = `BenchmarkGrowth/refresh,_1,000_grants-2        100   900000 ns/op   400000 p50-ns   900000 p99-ns   300 allocs/op
BenchmarkGrowth/refresh,_1,000_grants-2        100   500000 ns/op   450000 p50-ns   900000 p99-ns   300 allocs/op
BenchmarkGrowth/refresh,_1,000,000_grants-2    100   600000 ns/op   600000 p50-ns   900000 p99-ns   300 allocs/op
BenchmarkGrowth/revoke,_1,000,000_grants-2     100   600000 ns/op   600000 p50-ns   900000 p99-ns   300 allocs/op
`

// A hundred callers are also held against one raw call for a hundred.
func TestGatheringIsComparedWithItsLike(t *testing.T) {
	const like = `BenchmarkSignature/Vault,_raw_batch_input_of_100,_1_caller-2    9000    72000 ns/op    50000 ns/batched    6000000 p50-ns    9000000 p99-ns    13 allocs/op
`
	got := goals(parse(signed+like, map[string]string{}))
	if len(got) != 3 || !got[2].Reached || got[2].Got >= 1 {
		t.Errorf("goals %v", got)
	}
}

// What grows with the grants is said so; what was not measured at both ends is
// not judged.
func TestGrowthComparesBothEnds(t *testing.T) {
	got := goals(parse(grown, map[string]string{}))
	if len(got) != 1 {
		t.Fatalf("goals %v", got)
	}
	const want = "goal: refresh, median at 1,000,000 grants over that at 1,000: 1.50×, wanted at most 1.30×: not reached"
	if got[0].String() != want {
		t.Errorf("says %q", got[0])
	}
}

// What a Brand waits for is a goal of its own, with or without Vault.
func TestTellingHasGoals(t *testing.T) {
	const told = `BenchmarkTold/revoke_to_webhook-2    1  16429121 ns/op  15376871 p50-ns  1200000000 p99-ns
BenchmarkTold/revoke_to_stream-2     1  11108847 ns/op   9749258 p50-ns    30154082 p99-ns
`
	got := goals(parse(told, map[string]string{}))
	if len(got) != 2 {
		t.Fatalf("goals %v", got)
	}
	for i, want := range []string{
		"goal: revoke to stream, p99: 30.2 ms, wanted at most 250 ms: reached",
		"goal: revoke to webhook, p99: 1,200 ms, wanted at most 1,000 ms: not reached",
	} {
		if got[i].String() != want {
			t.Errorf("%s", got[i])
		}
	}
}

// What a proxy's question costs at each call is a goal, of callers that do not queue
// for the machine.
func TestAProxysQuestionHasAGoal(t *testing.T) {
	const asked = `BenchmarkDoor/verify_for_a_proxy,_2_callers-2     1000  900000 ns/op   800000 p50-ns  %s p99-ns
BenchmarkDoor/verify_for_a_proxy,_16_callers-2    1000  900000 ns/op   800000 p50-ns  9000000 p99-ns
`
	for slow, want := range map[string]string{
		"1900000": "goal: verify for a proxy, 2 callers, p99: 1.90 ms, wanted at most 2.00 ms: reached",
		"2100000": "goal: verify for a proxy, 2 callers, p99: 2.10 ms, wanted at most 2.00 ms: not reached",
	} {
		got := goals(parse(fmt.Sprintf(asked, slow), map[string]string{}))
		if len(got) != 1 || got[0].String() != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
}

// A table without Vault says so above and below, and how to get one.
func TestMissingVaultIsSaidLoudly(t *testing.T) {
	r := &report{Settings: map[string]string{}, Missing: withoutVault}
	var out bytes.Buffer
	if err := r.print(&out); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "go test -run TestVaultStarts"); n != 2 || !strings.Contains(out.String(), "Vault none") {
		t.Errorf("said %d times:\n%s", n, out.String())
	}
}

// Half a server or a lock is no server.
func TestVaultIsFoundNotBuilt(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("PATH", t.TempDir())
	t.Setenv(vaultVariable, "")
	folder := filepath.Join(cache, "countersign")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	put := func(name string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, nil, 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	put("vault-0123456789abcdef.lock")
	put("vault-0123456789abcdef.partial")
	if found, err := vault(); err == nil {
		t.Errorf("found %s", found)
	}
	want := put("vault-0123456789abcdef")
	if found, err := vault(); err != nil || found != want {
		t.Errorf("found %q, %v", found, err)
	}
}

// A list's growth is judged at what it holds, and not at what is missing.
func TestListsAreComparedWithTheirLike(t *testing.T) {
	const listed = `BenchmarkStatusList/make,_grants:_65,536,_1_caller-2             100   900000 ns/op   800000 p50-ns   900000 p99-ns   300 allocs/op
BenchmarkStatusList/make,_grants:_1,000,000,_1_caller-2          100   900000 ns/op   960000 p50-ns   990000 p99-ns   300 allocs/op
BenchmarkStatusList/still_stands,_grants:_1,000,000,_1_caller-2  100   900000 ns/op   960000 p50-ns   990000 p99-ns   300 allocs/op
`
	got := goals(parse(listed, map[string]string{}))
	if len(got) != 1 || !got[0].Reached || short(got[0].Got) != "1.20" {
		t.Errorf("goals %v", got)
	}
}
