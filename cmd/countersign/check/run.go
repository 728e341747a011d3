package check

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"countersign.dev/cmd/countersign/pa/discovery"
	"countersign.dev/cmd/countersign/shell"
)

// Exit codes, so that a script can tell a bad token from a failed look at it.
const (
	exitGood    = 0
	exitRefused = 1
	exitUnknown = 2
)

const usage = `countersign verify - check what an agent shows, and what a Brand signed, rule by rule

  countersign verify token FILE --card URL
  countersign verify token FILE --jwks FILE --issuer URL --audience URL

FILE holds the token, or JSON with an access_token in it, or an agent's token
file; "-" reads standard input. The second form needs no network.

  --card URL          the Brand's interface URL, or its agent card
  --jwks FILE         the Brand's saved keys, instead of fetching them
  --issuer URL        the Brand's issuer, where there is no card
  --audience URL      the Brand's interface URL, where there is no card
  --status FILE       the Brand's saved status list, to check that the token
                      has not been revoked or suspended; it must not have
                      expired, and its address stands in the token
  --pa-jwt JWT|FILE   the pa-jwt sent beside the token, to check that the
                      token was issued to the agent that shows it
  --pa-jwks URL|FILE  that agent's published keys, to check the pa-jwt too
  --pa-audience A     the audience that the pa-jwt must be for
  --at TIME           judge as of then (RFC 3339, or seconds since 1970)
  --allow-split       accept OAuth URLs on another origin than the interface
  --json              write the verdict as JSON

What a Brand signed is checked from saved files, without a network:

  countersign verify receipt FILE --jwks FILE --audience URL
  countersign verify log FILE --jwks FILE --issuer URL
  countersign verify card FILE [--metadata FILE]

A receipt is {jws, claims}, as it stands in the metadata of an answer. A log is
receipts.ndjson of an export, or a checkpoint.

  --archive FILE      the Brand's saved jwks-archive.json: what a revoked key
                      signed counts only where the log shows it to be older
  --checkpoint FILE   the checkpoint that you kept, or checkpoints.ndjson; where
                      no line counts, since its key is unknown or revoked, the
                      verdict is no
  --former-issuer URL what the Brand's issuer was when the checkpoint was kept, if
                      the Brand has moved since; once for each
  --entry FILE        with it, of a receipt: what {issuer}/log/entries/N said,
  --inclusion FILE    and {issuer}/log/inclusion?seq=N&size=M
  --consistency FILE  with it, of a newer checkpoint: what
                      {issuer}/log/consistency?from=N&to=M said
  --witness KEY|FILE  demand that this witness has signed the checkpoint, FILE or
                      --checkpoint being what countersign witness wrote
  --receipts FILE     of a task receipt: its receipts, a line each

Exit codes: 0 it holds, 1 it is refused, 2 it could not be judged.
`

// errRefused ends a run whose verdict has been printed.
var errRefused = errors.New("refused")

// Run is "countersign verify" with what follows it. It returns the exit code.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage, shell.Note())
		return exitUnknown
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		fmt.Fprint(stdout, usage, shell.Note())
		return exitGood
	case "token", "receipt", "log", "card":
	default:
		fmt.Fprintf(stderr, "countersign verify: there is no %q.\n\n%s%s", args[0], usage, shell.Note())
		return exitUnknown
	}
	var err error
	if args[0] == "token" {
		err = run(ctx, args[1:], stdin, stdout)
	} else {
		err = runSaved(args[0], args[1:], stdin, stdout)
	}
	switch {
	case err == nil:
		return exitGood
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage, shell.Note())
		return exitGood
	case errors.Is(err, errRefused):
		return exitRefused
	}
	fmt.Fprintf(stderr, "countersign verify: %v\n", err)
	if advice := remedy(err); advice != "" {
		fmt.Fprintln(stderr, advice)
	}
	return exitUnknown
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	a, err := parseArguments(args)
	if err != nil {
		return err
	}
	s, err := gather(ctx, a, stdin)
	if err != nil {
		return err
	}
	v, err := judge(s)
	if err != nil {
		return err
	}
	if a.json {
		err = v.printJSON(stdout)
	} else {
		err = v.print(stdout)
	}
	if err == nil && !v.Valid {
		return errRefused
	}
	return err
}

func remedy(err error) string {
	if errors.Is(err, errNothing) {
		return "Did the command before the pipe fail, or is the file empty?"
	}
	return discovery.Remedy(err)
}
