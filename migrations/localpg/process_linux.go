package localpg

import (
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// spawn starts the command in a process group of its own, so that a Ctrl-C at the
// terminal reaches us alone and we decide the order of stopping, and tied to our
// life: the kernel interrupts it when we are gone, even by kill -9.
func spawn(c command) (*process, error) {
	cmd := c.build()
	attr := c.as.attr()
	if attr == nil {
		attr = new(syscall.SysProcAttr)
	}
	attr.Setpgid = true
	attr.Pdeathsig = fastShutdown
	cmd.SysProcAttr = attr

	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The signal comes when the *thread* that started the command ends, so the
		// thread has to stay for as long as the command does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// unprivileged finds the user for the server when we are root.
func unprivileged() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.Atoi(u.Uid)
		gid, gidErr := strconv.Atoi(u.Gid)
		if uidErr == nil && gidErr == nil && uid != 0 {
			return &account{uid: uid, gid: gid}, nil
		}
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody; run this as an ordinary user")
}

func (a *account) attr() *syscall.SysProcAttr {
	if a == nil {
		return nil
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}}
}

// isPostgres tells a server from another program that was given its number.
func isPostgres(pid int) bool {
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return !errors.Is(err, os.ErrNotExist) // unknown: better refuse than run two
	}
	name, _, _ := strings.Cut(string(line), "\x00")
	name, _, _ = strings.Cut(name, " ") // a server rewrites its title: "postgres: …"
	name = strings.TrimSuffix(filepath.Base(name), ":")
	return name == "postgres" || name == "postmaster"
}
