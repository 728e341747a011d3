package shell

import (
	"bytes"
	"flag"
	"os/exec"
	"strings"
	"testing"
)

// A newcomer types the program again as it was started.
func TestTheProgramIsNamedAsItWasStarted(t *testing.T) {
	const built = "/home/alex/.cache/go-build/ab/cdef-d/countersign"
	for _, tt := range []struct {
		started   string
		atTheRoot bool
		want      string
	}{
		{"countersign", false, "countersign"},
		{"./countersign", true, "./countersign"},
		{"/opt/my tools/countersign", false, "'/opt/my tools/countersign'"},
		{"/tmp/go-build123/b001/exe/countersign", true, "go run ./cmd/countersign"},
		{built, true, "go run ./cmd/countersign"},
		{built, false, "go run countersign.dev/cmd/countersign"},
	} {
		if got := program(tt.started, tt.atTheRoot); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.started, got, tt.want)
		}
	}
}

func TestAShellReadsBackWhatWasQuoted(t *testing.T) {
	for _, word := range []string{
		"plain-1.2", "http://localhost:8080/a2a/harbor-hotel", "", "../a b", "it's", `a"b`, "$HOME", "`id`", "a;b", "a\nb", "*", "~", "#x", "ü", "\\",
	} {
		out, err := exec.Command("sh", "-c", "printf %s "+Quote(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("%q: %q, %v", word, out, err)
		}
	}
	if got := Line("pa", "login", "--data", "../a b"); !strings.HasSuffix(got, " pa login --data '../a b'") {
		t.Error(got)
	}
}

func TestEachFlagIsShownWithItsOwnVariable(t *testing.T) {
	flags := flag.NewFlagSet("x", flag.ContinueOnError)
	flags.String("data", "here", "`folder` of data")
	flags.Bool("json", false, "write JSON")
	var out bytes.Buffer
	Flags(&out, flags, func(name string) string { return "X_" + strings.ToUpper(name) })
	want := "  --data folder\n        folder of data (default: here) [X_DATA]\n  --json\n        write JSON [X_JSON]\n"
	if out.String() != want {
		t.Errorf("%q", out.String())
	}
}
