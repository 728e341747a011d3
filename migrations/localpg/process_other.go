//go:build !unix

package localpg

import (
	"errors"
	"os"
	"syscall"
)

var (
	fastShutdown      = os.Interrupt
	immediateShutdown = os.Kill
)

var errSystem = errors.New("a private PostgreSQL cannot be started on this system; name a running one instead")

func spawn(command) (*process, error)         { return nil, errSystem }
func unprivileged() (*account, error)         { return nil, errSystem }
func (a *account) attr() *syscall.SysProcAttr { return nil }
func isPostgres(int) bool                     { return true }
func flock(*os.File) error                    { return errSystem }
func alive(int) bool                          { return true }
