package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// scratch is the folder of this run: the binary, the products' data, their logs.
var scratch string

// shared is the product that all journeys walk through, each as a user of its
// own. It starts with the first test that needs it.
var shared = sync.OnceValues(func() (*product, error) {
	return start(filepath.Join(scratch, "shared"), "data", "localhost:0")
})

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	var err error
	if scratch, err = os.MkdirTemp("", "countersign-e2e-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		// What is wrong can then be looked at; in the folder are test data only.
		if code != 0 {
			fmt.Fprintln(os.Stderr, "logs and data of this run:", scratch)
			return
		}
		_ = os.RemoveAll(scratch)
	}()
	defer closeChromium()
	code = m.Run()
	if err := finish(); err != nil {
		fmt.Fprintln(os.Stderr, "after all tests:", err)
		return max(code, 1)
	}
	return code
}

// finish stops the shared product and reads its whole log once more: whatever
// order the tests ran in, and however it stopped, no secret may stand in it
// (P48).
func finish() error {
	if !isStarted.Load() {
		return nil
	}
	p, err := shared()
	if err != nil {
		return nil // the tests have said it
	}
	const patience = 30 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	stopped := p.stop(ctx)
	found, err := p.leaks()
	return errors.Join(stopped, err, found)
}
