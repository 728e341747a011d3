package localpg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

var errLocked = errors.New("locked by another process")

// command is a program of PostgreSQL's to run.
type command struct {
	path   string
	args   []string
	output io.Writer
	files  []*os.File // descriptors 3 and up
	as     *account
}

// process is a running command. err is valid once done is closed.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// account is the user that the server runs as when we are root, which PostgreSQL
// refuses to be. A nil account means ourselves.
type account struct{ uid, gid int }

func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	return os.Lchown(path, a.uid, a.gid)
}

func (c command) build() *exec.Cmd {
	cmd := exec.Command(c.path, c.args...)
	cmd.Dir = "/" // whatever our own folder is, the server must not hold it
	cmd.Env = cleanEnv()
	cmd.Stdout, cmd.Stderr = c.output, c.output
	cmd.ExtraFiles = c.files
	return cmd
}

// cleanEnv leaves out PGDATA, PGPORT and their kin, which would turn the server away
// from what it is told here, and every secret of ours.
func cleanEnv() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
}

// stop asks for a clean end and, when ctx is over, for a quick one.
func (p *process) stop(ctx context.Context) error {
	p.signal(fastShutdown)
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
	}
	p.signal(immediateShutdown)
	<-p.done // bounded by PostgreSQL itself: it kills what is left after five seconds
	return fmt.Errorf("stop postgres: %w", ctx.Err())
}

func (p *process) signal(s os.Signal) {
	select {
	case <-p.done:
	default:
		_ = p.cmd.Process.Signal(s) // it may have ended in between
	}
}
