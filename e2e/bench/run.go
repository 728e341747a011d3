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
	"strconv"
	"strings"
	"time"
)

// packages have a bench_test.go, in the order of the table: raw costs first.
var packages = []string{
	"authority/signing", "authority/agent", "consent/pages", "authority", "authority/oauth",
}

// limit bounds build and run; what is not done by then is missing from the table,
// which says so. A first build, of everything there is, may take longer: the
// run gets its least in any case.
const (
	limit = 115 * time.Second
	least = 75 * time.Second
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
	root, err := build(ctx, folder)
	if err != nil {
		return nil, err
	}
	r := &report{When: time.Now(), Go: runtime.Version(), Cores: runtime.NumCPU(), LoadBefore: load(), Settings: map[string]string{}}
	ctx, cancel := context.WithTimeout(ctx, max(least, limit-time.Since(began)))
	defer cancel()
	for _, pkg := range packages {
		out, err := p.run(ctx, filepath.Join(folder, path.Base(pkg)+".test"), filepath.Join(root, pkg))
		r.add(parse(string(out), r.Settings))
		if ctx.Err() != nil {
			r.Incomplete = "out of time in " + pkg
			break
		}
		if err != nil {
			return nil, fmt.Errorf("benchmarks of %s: %w\n%s", pkg, err, out)
		}
	}
	r.LoadAfter = load()
	r.Took = time.Since(began).Round(time.Second).String()
	return r, nil
}

// build makes one test binary for each package and returns the module's folder.
func build(ctx context.Context, folder string) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	dir := strings.TrimSpace(string(root))
	args := []string{"test", "-c", "-o", folder + string(filepath.Separator)}
	for _, pkg := range packages {
		args = append(args, "./"+pkg)
	}
	compile := exec.CommandContext(ctx, "go", args...)
	compile.Dir = dir
	if out, err := compile.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the benchmarks: %w\n%s", err, out)
	}
	return dir, nil
}

func (p plan) run(ctx context.Context, binary, dir string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, binary,
		"-test.run", "^$", "-test.bench", p.only, "-test.benchtime", p.round.String(),
		"-test.count", strconv.Itoa(p.rounds), "-test.timeout", "5m")
	cmd.Dir = dir
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
