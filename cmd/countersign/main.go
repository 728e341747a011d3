// Command countersign is the whole product in one binary: the service, a demo
// of it, a personal agent's client, the Brand's check of a token, and what an
// operator does from a shell.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"countersign.dev/cmd/countersign/check"
	"countersign.dev/cmd/countersign/pa"
	"countersign.dev/cmd/countersign/shell"
)

// command is one word after "countersign".
type command struct {
	name, what string
	run        func(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int
}

func commands() []command {
	return []command{
		{"dev", "everything on this machine, with demo Brands and a demo agent", runDev},
		{"serve", "the service, for production", runServe},
		{"migrate", "bring a database up to this version", runMigrate},
		{"pa", "be a personal agent: login, token, refresh, sign, revoke", pa.Run},
		{"verify", "be a Brand: check a delegation token offline", check.Run},
		{"agent", "personal agents: list, add, enable, disable", runAgent},
		{"brand", "Brands: list, pause, resume", runBrand},
		{"user", "a Brand's users: suspend, resume", runUser},
		{"keys", "a Brand's signing keys: list, rotate, retire, revoke", runKeys},
		{"secrets", "secrets at rest: rewrap", runSecrets},
		{"apikey", "what a Brand's servers authenticate with: create, list, revoke", runAPIKey},
		{"version", "which version this is", runVersion},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), endings()...)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// endings are the signals that end a command in good order. A closed terminal is
// one: dev must not leave its PostgreSQL behind. Under nohup it is none.
func endings() []os.Signal {
	list := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		list = append(list, syscall.SIGHUP)
	}
	return list
}

func run(ctx context.Context, args []string) int {
	if len(args) == 0 || slices.Contains([]string{"help", "-h", "-help", "--help"}, args[0]) {
		usage(os.Stdout)
		return 0
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return c.run(ctx, args[1:], os.Stdin, os.Stdout, os.Stderr)
		}
	}
	fmt.Fprintf(os.Stderr, "countersign: there is no command %q\n\n", args[0])
	usage(os.Stderr)
	return 2
}

func usage(w io.Writer) {
	fmt.Fprintln(w, "countersign: the delegation authority for personal agents")
	fmt.Fprintln(w)
	for _, c := range commands() {
		fmt.Fprintf(w, "  countersign %-8s %s\n", c.name, c.what)
	}
	fmt.Fprintln(w, "\nEvery command explains itself with --help. New here?", shell.Line("dev"))
}
