//go:build unix && !linux

package localpg

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// spawn starts the command in a process group of its own. These systems have no
// signal for the death of a parent: a server whose parent was killed stays, and the
// next start names its process.
func spawn(c command) (*process, error) {
	cmd := c.build()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

func unprivileged() (*account, error) {
	if os.Geteuid() == 0 {
		return nil, errors.New("PostgreSQL does not run as root; run this as an ordinary user")
	}
	return nil, nil
}

func (a *account) attr() *syscall.SysProcAttr { return nil }

func isPostgres(pid int) bool {
	out, err := exec.Command("ps", "-o", "comm=", "-p", strconv.Itoa(pid)).Output()
	return err != nil || strings.Contains(string(out), "postgres")
}
