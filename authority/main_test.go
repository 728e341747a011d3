package authority_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain asks for fewer random histories than rapid's hundred: each step is a
// round trip or several. -rapid.checks on the command line asks for more.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "20"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
