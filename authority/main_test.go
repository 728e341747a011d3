package authority_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain asks for fewer and longer random histories than rapid's hundred: each
// step is a round trip or several, and what is worth finding takes many.
// -rapid.checks on the command line asks for more.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"rapid.checks": "40", "rapid.steps": "150"} {
		if err := flag.Set(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}
