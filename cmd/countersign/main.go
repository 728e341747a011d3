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
	"countersign.dev/cmd/countersign/witness"
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
		{"pa", "be a personal agent: login, token, refresh, send, sign, revoke", pa.Run},
		{"verify", "be a Brand: check tokens, receipts, their log and cards offline", check.Run},
		{"witness", "be anybody: sign what you saw of a Brand's log, by your own clock", witness.Run},
		{"agent", "personal agents: list, show, add, logo, enable, disable, check, pending, approve, reject, allow, deny, unlist", runAgent},
		{"tenant", "the organisations, their audiences and Brands: list, show, name, create, pause, resume, close", runTenant},
		{"brand", "Brands: list, create, pause, resume, close, show, set, apply, check, logo, move, export, domain", runBrand},
		{"scope", "what a Brand lets agents do: list, set, order, retire, restore", runScope},
		{"detail", "how exactly agents may ask for it, in types of their own: list, set, remove", runDetail},
		{"idp", "how a Brand's people log in: list, set, check, try, tried, live, remove", runIDP},
		{"member", "who works on a Brand: list, invite, role, remove, withdraw, confirm, vouch, deny", runMember},
		{"change", "what waits for an owner of a Brand: list, reject, apply", runChange},
		{"user", "a Brand's users: suspend, resume, erase", runUser},
		{"grants", "what people allow agents: list, show, revoke", runGrants},
		{"audit", "a Brand's trail of what happened: list, verify, export", runAudit},
		{"usage", "how much happened at a Brand, day by day: show", runUsage},
		{"keys", "a Brand's signing keys: list, rotate, retire, revoke, destroy", runKeys},
		{"secrets", "secrets at rest: rewrap", runSecrets},
		{"apikey", "what a Brand's servers authenticate with: create, list, rotate, revoke", runAPIKey},
		{"webhook", "where a Brand is told of its grants: create, list, rotate, disable, enable, test, deliveries, replay", runWebhook},
		{"endpoint", "where a hosted Brand's own agent is called: show, set, remove, rotate, check", runEndpoint},
		{"conformance", "ask any PACT server whether it keeps the rules", runConformance},
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
