package pa

import (
	"context"
	"fmt"
	"io"

	"countersign.dev/cmd/countersign/shell"
)

// Exit codes of every command, so that a script can tell a person's answer from
// a fault. Part of the interface: they do not change.
const (
	exitOK      = 0
	exitFault   = 1
	exitDenied  = 3
	exitExpired = 4
)

const usage = `countersign pa - a personal agent, from the command line

  countersign pa login   --card URL   ask a person for a delegation and wait for the answer
  countersign pa token   --card URL   print the access token, refreshed if it is about to end
  countersign pa refresh --card URL   refresh now
  countersign pa revoke  --card URL   end the delegation
  countersign pa send    --card URL --text WORDS   say something to the Brand's agent
  countersign pa sign                 print one pa-jwt
  countersign pa help                 this text

"countersign pa login --help" and so on list the flags. Each flag can also be set by
an environment variable, --data as COUNTERSIGN_PA_DATA; the flag wins.

Exit codes: 0 done, 3 the person said no, 4 nobody answered in time, 1 anything else.
`

// Run is "countersign pa" with what follows it. It returns the exit code.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	commands := map[string]func(context.Context, *command) error{
		"login": runLogin, "token": runToken, "refresh": runRefresh, "revoke": runRevoke, "sign": runSign, "send": runSend,
	}
	if len(args) == 0 {
		fmt.Fprint(stderr, usage, shell.Note())
		return exitFault
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		fmt.Fprint(stdout, usage, shell.Note())
		return exitOK
	}
	run, known := commands[args[0]]
	if !known {
		fmt.Fprintf(stderr, "countersign pa: there is no %q.\n\n%s%s", args[0], usage, shell.Note())
		return exitFault
	}
	c := newCommand(args[0], args[1:], stdout, stderr)
	return c.exit(run(ctx, c))
}
