package check

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"time"
)

type arguments struct {
	file                         string
	card, jwks, issuer, audience string
	status                       string
	paJWT, paJWKS, paAudience    string
	at                           time.Time
	allowSplit, json             bool
}

func parseArguments(args []string) (arguments, error) {
	var a arguments
	var at string
	flags := flag.NewFlagSet("countersign verify token", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error says it; the usage is printed for -h
	flags.StringVar(&a.card, "card", "", "")
	flags.StringVar(&a.jwks, "jwks", "", "")
	flags.StringVar(&a.issuer, "issuer", "", "")
	flags.StringVar(&a.audience, "audience", "", "")
	flags.StringVar(&a.status, "status", "", "")
	flags.StringVar(&a.paJWT, "pa-jwt", "", "")
	flags.StringVar(&a.paJWKS, "pa-jwks", "", "")
	flags.StringVar(&a.paAudience, "pa-audience", "", "")
	flags.StringVar(&at, "at", "", "")
	flags.BoolVar(&a.allowSplit, "allow-split", false, "")
	flags.BoolVar(&a.json, "json", false, "")

	// FILE may stand before, between or behind the flags.
	for len(args) > 0 {
		if err := flags.Parse(args); err != nil {
			return a, err
		}
		args = flags.Args()
		if len(args) == 0 {
			break
		}
		if a.file != "" {
			return a, fmt.Errorf("%d words too many; one FILE, the rest are --flags", len(args))
		}
		a.file, args = args[0], args[1:]
	}
	if err := noneEmpty(flags); err != nil {
		return a, err
	}
	if at != "" {
		var err error
		if a.at, err = parseTime(at); err != nil {
			return a, err
		}
	}
	return a, a.complete()
}

// noneEmpty refuses a flag that is given and empty, as of a variable of the shell
// that is not set: it would be as if it were not there, and nothing compared with it.
func noneEmpty(flags *flag.FlagSet) (err error) {
	flags.Visit(func(f *flag.Flag) {
		if f.Value.String() == "" {
			err = fmt.Errorf("--%s is given and empty", f.Name)
		}
	})
	return err
}

func (a arguments) complete() error {
	switch {
	case a.file == "":
		return errors.New(`no FILE with the token; "-" reads standard input`)
	case isJWT(a.file): // the error of opening it would print it
		return errors.New(`this is a token and no FILE: pipe it in and give "-", since a command line stands in histories and process lists`)
	case a.card == "" && a.jwks == "":
		return errors.New("nothing to check it against: --card URL, or --jwks FILE with --issuer and --audience")
	case a.card == "" && (a.issuer == "" || a.audience == ""):
		return errors.New("without --card, --jwks needs --issuer and --audience beside it")
	case a.paJWKS != "" && a.paJWT == "":
		return errors.New("--pa-jwks checks a pa-jwt, and there is no --pa-jwt")
	case a.paJWKS != "" && a.paAudience == "":
		return errors.New("--pa-jwks needs --pa-audience: the audience that the Brand's Provider assigned")
	case a.paJWKS == "" && a.paAudience != "":
		return errors.New("--pa-audience is compared when the pa-jwt is checked, which needs --pa-jwks")
	}
	return nil
}

func parseTime(s string) (time.Time, error) {
	if seconds, err := strconv.ParseInt(s, 10, 64); err == nil {
		return time.Unix(seconds, 0), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, fmt.Errorf("--at %q is neither RFC 3339, as in 2026-11-20T12:00:00Z, nor seconds since 1970", s)
	}
	return t, nil
}
