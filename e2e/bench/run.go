package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A measured package has a bench_test.go.
type measured struct {
	folder string
	// longer times the usual round is one of its rounds, and one round less.
	// With 1,000 callers of a server that does 4,000 things a second, a short
	// round would end before everybody has had a turn.
	longer int
	vault  bool // needs a Vault server
	once   bool // one round, since it takes long to set up
}

// packages stand in the order of the table: raw costs first.
var packages = []measured{
	{folder: "authority/signing"},
	{folder: "authority/signing/transit", longer: 4, vault: true},
	{folder: "authority/agent"},
	{folder: "authority/verify"},
	{folder: "consent/pages"},
	{folder: "authority"},
	{folder: "authority/oauth"},
	{folder: "authority/a2a"},
	{folder: "authority/statuslist", once: true},
}

// limit bounds build and run; what is not done by then is missing from the table,
// which says so. On two quiet cores it is all done in some three minutes, one of
// which goes into a million grants. A first
// build, of everything there is, may take longer: the run gets its least in any
// case.
const (
	limit   = 350 * time.Second
	atLeast = 320 * time.Second
)

type plan struct {
	only   string
	round  time.Duration
	rounds int
}

func run(ctx context.Context, p plan) (*report, error) {
	began := time.Now()
	folder, err := os.MkdirTemp("", "countersign-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	server, missing := vault()
	chosen := slices.DeleteFunc(slices.Clone(packages), func(m measured) bool { return m.vault && missing != nil })
	root, err := build(ctx, folder, chosen)
	if err != nil {
		return nil, err
	}
	r := &report{When: time.Now(), Go: runtime.Version(), Cores: runtime.NumCPU(), LoadBefore: load(), Settings: map[string]string{}}
	ctx, cancel := context.WithTimeout(ctx, max(atLeast, limit-time.Since(began)))
	defer cancel()
	if missing != nil {
		r.Missing = withoutVault
	}
	for _, pkg := range chosen {
		binary := filepath.Join(folder, path.Base(pkg.folder)+".test")
		out, err := p.of(pkg).run(ctx, binary, filepath.Join(root, pkg.folder), server)
		r.add(parse(string(out), r.Settings))
		if ctx.Err() != nil {
			r.Incomplete = "out of time in " + pkg.folder
			break
		}
		if err != nil {
			return nil, fmt.Errorf("benchmarks of %s: %w\n%s", pkg.folder, err, out)
		}
	}
	r.Goals = goals(r.Rows)
	r.LoadAfter = load()
	r.Took = time.Since(began).Round(time.Second).String()
	return r, nil
}

// build makes one test binary for each package and returns the module's folder.
func build(ctx context.Context, folder string, packages []measured) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	dir := strings.TrimSpace(string(root))
	args := []string{"test", "-c", "-o", folder + string(filepath.Separator)}
	for _, pkg := range packages {
		args = append(args, "./"+pkg.folder)
	}
	compile := exec.CommandContext(ctx, "go", args...)
	compile.Dir = dir
	if out, err := compile.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the benchmarks: %w\n%s", err, out)
	}
	return dir, nil
}

// of is the plan for one package.
func (p plan) of(m measured) plan {
	if m.longer > 1 {
		p.round *= time.Duration(m.longer)
		p.rounds = max(1, p.rounds-1)
	}
	if m.once {
		p.rounds = 1
	}
	return p
}

func (p plan) run(ctx context.Context, binary, dir, server string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, binary,
		"-test.run", "^$", "-test.bench", p.only, "-test.benchtime", p.round.String(),
		"-test.count", strconv.Itoa(p.rounds), "-test.timeout", "6m")
	cmd.Dir = dir
	if server != "" {
		cmd.Env = append(os.Environ(), vaultVariable+"="+server)
	}
	out, err := cmd.Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		out = append(out, exit.Stderr...)
	}
	return out, err
}

// load tells how busy others keep the machine; empty where it is not told.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	one, _, _ := strings.Cut(string(text), " ")
	return one
}
