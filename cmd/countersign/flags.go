package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"countersign.dev/cmd/countersign/shell"
)

// settings are flags that are environment variables too: --database-url is
// COUNTERSIGN_DATABASE_URL, or COUNTERSIGN_DATABASE_URL_FILE for a file that
// holds the value, as secrets are best handed over. The command line wins.
type settings struct {
	*flag.FlagSet
	stderr io.Writer
}

func newSettings(name, about string, stderr io.Writer) settings {
	s := settings{flag.NewFlagSet("countersign "+name, flag.ContinueOnError), stderr}
	s.SetOutput(stderr)
	s.Usage = func() {
		fmt.Fprintf(stderr, "countersign %s: %s\n\n", name, about)
		shell.Flags(stderr, s.FlagSet, variable)
		fmt.Fprintln(stderr, "\nIn brackets: the environment variable that sets the flag too. With _FILE at its end\nit names a file that holds the value. The command line wins.")
	}
	return s
}

func variable(flagName string) string {
	return "COUNTERSIGN_" + strings.ToUpper(strings.ReplaceAll(flagName, "-", "_"))
}

// parse reads the environment, then the arguments. It reports every mistake it
// finds and returns the exit code, or -1 to go on.
func (s settings) parse(args []string) int {
	var mistakes []error
	s.VisitAll(func(f *flag.Flag) {
		name := variable(f.Name)
		value, set := os.LookupEnv(name)
		if file, ok := os.LookupEnv(name + "_FILE"); ok && !set {
			raw, err := os.ReadFile(file)
			if err != nil {
				mistakes = append(mistakes, fmt.Errorf("%s_FILE: %w", name, err))
				return
			}
			value, set = strings.TrimSpace(string(raw)), true
		}
		if set {
			if err := f.Value.Set(value); err != nil {
				mistakes = append(mistakes, fmt.Errorf("%s: not a value for --%s", name, f.Name))
			}
		}
	})
	err := s.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2 // flag has said why
	}
	if s.NArg() > 0 {
		mistakes = append(mistakes, fmt.Errorf("unexpected argument %q", s.Arg(0)))
	}
	return s.refuse(mistakes...)
}

// refuse prints the mistakes and returns the exit code; -1 if there are none.
func (s settings) refuse(mistakes ...error) int {
	code := -1
	for _, m := range mistakes {
		if m != nil {
			fmt.Fprintf(s.stderr, "%s: %v\n", s.Name(), m)
			code = 2
		}
	}
	return code
}

// logger writes records of the level and above as lines of key=value.
func logger(w io.Writer, level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("log level %q: use debug, info, warn or error", level)
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: l})), nil
}

// failed prints why a command ended and returns its exit code. Ending because
// somebody asked for it is no failure.
func failed(ctx context.Context, stderr io.Writer, command string, err error) int {
	if err == nil || ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return 0
	}
	fmt.Fprintf(stderr, "countersign %s: %v\n", command, err)
	return 1
}
