package main

import (
	"bytes"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"countersign.dev/cmd/countersign/shell"
)

func TestHelpShowsEachFlagWithItsOwnVariable(t *testing.T) {
	for _, line := range []string{"dev --help", "serve --help", "migrate --help", "user suspend --help", "agent add --help", "keys list --help", "apikey create --help"} {
		code, _, errs := typed(t, strings.Fields(line)...)
		if code != 0 || !strings.Contains(errs, "\n  --") {
			t.Errorf("%s: exit %d\n%s", line, code, errs)
		}
		for text := range strings.Lines(errs) {
			name, isFlag := strings.CutPrefix(text, "  --")
			name, _, _ = strings.Cut(strings.TrimSpace(name), " ")
			if isFlag && !strings.Contains(errs, "["+variable(name)+"]") {
				t.Errorf("%s: no variable for --%s", line, name)
			}
		}
		if has := strings.Contains(errs, "--database-url"); has == strings.HasPrefix(line, "dev") {
			t.Errorf("%s: --database-url shown: %v", line, has)
		}
	}
}

func TestSettingsComeFromTheEnvironmentToo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(file, []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("COUNTERSIGN_A_B_FILE", file)
	for want, args := range map[string][]string{"from a file": nil, "from a flag": {"--a-b", "from a flag"}} {
		s := newSettings("x", "", &bytes.Buffer{})
		got := s.String("a-b", "", "")
		if code := s.parse(args); code >= 0 || *got != want {
			t.Errorf("exit %d, %q", code, *got)
		}
	}
}

// What dev prints is pasted by people who know nothing else.
func TestReadyPrintsCommandsThatCanBePasted(t *testing.T) {
	t.Chdir(t.TempDir())
	r := readiness{PublicURL: "http://localhost:8080", Brands: []readyBrand{{ID: "harbor-hotel", Name: "Harbor Hotel", InterfaceURL: "http://localhost:8080/a2a/harbor-hotel"}}}
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ data, readyFile, want string }{
		{filepath.Join(cwd, defaultData), "", shell.Program() + " pa login --card http://localhost:8080/a2a/harbor-hotel\n"},
		{filepath.Join(filepath.Dir(cwd), "a b"), "", shell.Program() + " pa login --data '../a b' --card http://localhost:8080/a2a/harbor-hotel\n"},
		{filepath.Join(filepath.Dir(cwd), "a b"), "", shell.Program() + " verify token - --card http://localhost:8080/a2a/harbor-hotel\n"},
		{filepath.Join(cwd, defaultData), "", "Be the Brand, or the operator: --ready-file FILE"},
		{filepath.Join(cwd, defaultData), "ready.json", "the database URL and more are in ready.json"},
	} {
		var out bytes.Buffer
		r.print(&out, tt.data, tt.readyFile)
		if !strings.Contains(out.String(), tt.want) {
			t.Errorf("%q is missing:\n%s", tt.want, out.String())
		}
	}
}

func TestAFolderThatTakesNoDataIsNamedWithTheWayOut(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := typed(t, "dev", "--addr", "localhost:0", "--data", filepath.Join(file, "data"))
	if code != 1 || out != "" || !strings.Contains(errs, "choose another folder with --data") || !strings.Contains(errs, file) {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
}

// A closed terminal ends dev in good order; under nohup it is no matter.
func TestAClosedTerminalEndsACommand(t *testing.T) {
	ctx, stop := signal.NotifyContext(t.Context(), endings()...)
	defer stop()
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("a closed terminal ends nothing, or these tests are under nohup themselves")
	}
	stop()
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	for _, s := range endings() {
		if s == syscall.SIGHUP {
			t.Error("under nohup a closed terminal would end the command")
		}
	}
}

func TestVersionNamesThisBuild(t *testing.T) {
	if code, out, errs := typed(t, "version"); code != 0 || !strings.HasPrefix(out, "countersign ") || !strings.Contains(out, "go1.") || errs != "" {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
}
