package witness

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"countersign.dev/authority/witness"
	"countersign.dev/cmd/countersign/pa/discovery"
	"countersign.dev/cmd/countersign/shell"
)

// Exit codes, so that cron can tell a broken log from a broken line.
const (
	exitSigned   = 0
	exitRefused  = 1
	exitUnknown  = 2
	exitDoubtful = 3
)

const usage = `countersign witness - look at a Brand's log, and sign what you saw

  countersign witness --key FILE --name NAME       make a key
  countersign witness --key FILE                   print its public half
  countersign witness --key FILE --log FILE --issuer URL

Run the last one again and again, every few minutes. It fetches the checkpoint of
the log, {issuer}/log, and signs it with the time of your own clock if it continues
the one that you signed before. A log that has shrunk, or begins otherwise than it
did, is never signed; both checkpoints are then printed, which the Brand's key has
signed: keep them.

  --key FILE     your private key
  --name NAME    what you call yourself, by custom an address of yours without
                 https://, as in witness.example/harbor-hotel
  --log FILE     what you saw of this log: a line for each checkpoint that was new,
                 the last with the time at which it still stood so. Without it the first look is believed, so keep it, and give it to
                 whoever wants it: countersign verify log FILE --witness KEY
  --issuer URL   the Brand's issuer

Exit codes: 0 signed, 1 refused, 2 it could not look, 3 signed, but the log's clock
cannot have been right.
`

// errWhat says that the command line does not say what to do.
var errWhat = errors.New("--key FILE with --name NAME, or with --log FILE and --issuer URL")

type arguments struct{ key, name, log, issuer string }

// Run is "countersign witness" with what follows it. It returns the exit code.
func Run(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	return run(ctx, args, time.Now, stdout, stderr)
}

func run(ctx context.Context, args []string, now func() time.Time, stdout, stderr io.Writer) int {
	a, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage, shell.Note())
		return exitSigned
	}
	code := exitSigned
	switch {
	case err != nil:
	case a.issuer != "":
		code, err = look(ctx, a, now, stdout, stderr)
	default:
		err = keep(a, stdout)
	}
	if err != nil {
		fmt.Fprintf(stderr, "countersign witness: %v\n", err)
		if advice := discovery.Remedy(err); advice != "" {
			fmt.Fprintln(stderr, advice)
		}
		return exitUnknown
	}
	return code
}

func parse(args []string) (arguments, error) {
	var a arguments
	flags := flag.NewFlagSet("countersign witness", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error says it; the usage is printed for -h
	flags.StringVar(&a.key, "key", "", "")
	flags.StringVar(&a.name, "name", "", "")
	flags.StringVar(&a.log, "log", "", "")
	flags.StringVar(&a.issuer, "issuer", "", "")
	if err := flags.Parse(args); err != nil {
		return a, err
	}
	if flags.NArg() > 0 || a.key == "" || (a.issuer == "") != (a.log == "") || a.issuer != "" && a.name != "" {
		return a, errWhat
	}
	return a, nil
}

// keep makes a key, if a name is given, and prints the public half.
func keep(a arguments, stdout io.Writer) error {
	if a.name != "" {
		if err := makeKey(a.key, a.name); err != nil {
			return err
		}
	}
	s, err := readKey(a.key)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, s.Key())
	return err
}

// makeKey never replaces one: what the former signed would count no more.
func makeKey(path, name string) error {
	secret, err := witness.NewSigner(name)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	_, err = io.WriteString(file, secret+"\n")
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("write the key: %w", err)
	}
	return nil
}

func readKey(path string) (witness.Signer, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return witness.Signer{}, fmt.Errorf("there is no key in %s yet; --name NAME makes one", path)
	}
	if err != nil {
		return witness.Signer{}, fmt.Errorf("read the key: %w", err)
	}
	s, err := witness.ParseSigner(strings.TrimSpace(string(raw)))
	if err != nil {
		return s, fmt.Errorf("read the key from %s: %w", path, err)
	}
	return s, nil
}
