package check

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"countersign.dev/authority/receiptlog"
	"countersign.dev/authority/verify"
	"countersign.dev/authority/witness"
	"countersign.dev/cmd/countersign/pa/discovery"
	"golang.org/x/mod/sumdb/tlog"
)

// saved is what is judged without any network: files, and what to expect.
type saved struct {
	file, jwks, archive          string
	issuer, audience             string
	former                       names // issuers that the Brand had
	checkpoint, entry, inclusion string
	consistency, receipts        string
	metadata                     string
	at                           time.Time
	json                         bool
	stdin                        io.Reader
	witness                      *witness.Key // nil: none is asked for
	demands                      bool         // the checkpoints to compare with must be cosigned
	keys                         verify.Keys
	revoked                      verify.Archive
	data                         []byte
}

// names is a flag that may be given several times.
type names []string

// String implements flag.Value.
func (n *names) String() string { return strings.Join(*n, " ") }

// Set implements flag.Value.
func (n *names) Set(one string) error {
	*n = append(*n, one)
	return nil
}

// finding is a verdict on something other than a token.
type finding struct {
	Valid    bool      `json:"valid"`
	Reason   string    `json:"reason,omitempty"`
	Sections []section `json:"sections"`
	Says     any       `json:"says,omitempty"`
	holds    string
}

type section struct {
	Title  string        `json:"title"`
	Checks verify.Report `json:"checks"`
}

// look adds a section, and refuses where it must.
func (f *finding) look(title string, report verify.Report, err error) bool {
	f.Sections = append(f.Sections, section{title, report})
	if err != nil && f.Reason == "" {
		f.Reason = err.Error()
	}
	return err == nil
}

// runSaved is "countersign verify receipt|log|card".
func runSaved(what string, args []string, stdin io.Reader, stdout io.Writer) error {
	s, err := parseSaved(what, args, stdin)
	if err != nil {
		return err
	}
	f, err := map[string]func(*saved) (finding, error){"receipt": judgeReceipt, "log": judgeLog, "card": judgeCard}[what](s)
	if err != nil {
		return err
	}
	f.Valid = f.Reason == ""
	if s.json {
		out := json.NewEncoder(stdout)
		out.SetIndent("", "  ")
		err = out.Encode(f)
	} else {
		err = f.print(stdout)
	}
	if err == nil && !f.Valid {
		return errRefused
	}
	return err
}

func parseSaved(what string, args []string, stdin io.Reader) (*saved, error) {
	s := &saved{stdin: stdin}
	var at, key string
	flags := flag.NewFlagSet("countersign verify "+what, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.BoolVar(&s.json, "json", false, "")
	if what == "card" {
		flags.StringVar(&s.metadata, "metadata", "", "")
	} else {
		flags.StringVar(&s.jwks, "jwks", "", "")
		flags.StringVar(&s.archive, "archive", "", "")
		flags.StringVar(&s.issuer, "issuer", "", "")
		flags.Var(&s.former, "former-issuer", "")
		flags.StringVar(&s.checkpoint, "checkpoint", "", "")
		flags.StringVar(&key, "witness", "", "")
		flags.StringVar(&at, "at", "", "")
	}
	switch what {
	case "receipt":
		flags.StringVar(&s.audience, "audience", "", "")
		flags.StringVar(&s.entry, "entry", "", "")
		flags.StringVar(&s.inclusion, "inclusion", "", "")
		flags.StringVar(&s.receipts, "receipts", "", "")
	case "log":
		flags.StringVar(&s.consistency, "consistency", "", "")
	}
	for len(args) > 0 {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		if args = flags.Args(); len(args) == 0 {
			break
		}
		if s.file != "" {
			return nil, fmt.Errorf("%d words too many; one FILE, the rest are --flags", len(args))
		}
		s.file, args = args[0], args[1:]
	}
	if err := noneEmpty(flags); err != nil {
		return nil, err
	}
	if at != "" {
		var err error
		if s.at, err = parseTime(at); err != nil {
			return nil, err
		}
	}
	if err := s.readWitness(key); err != nil {
		return nil, err
	}
	switch {
	case s.file == "" || isJWT(s.file):
		return nil, errors.New(`no FILE; "-" reads standard input`)
	case what == "card":
		return s, s.read(what)
	case s.jwks == "":
		return nil, errors.New("nothing to check it against: --jwks FILE")
	case what == "receipt" && s.audience == "":
		return nil, errors.New("--audience URL is required: the Brand's interface URL")
	case s.useless(what) != nil:
		return nil, s.useless(what)
	case what == "receipt" && (s.entry == "") != (s.inclusion == "" && s.checkpoint == ""), what == "receipt" && (s.inclusion == "") != (s.checkpoint == ""):
		return nil, errors.New("--entry, --inclusion and --checkpoint show together that it is in the log")
	case (what == "log" || s.checkpoint != "") && s.issuer == "":
		return nil, errors.New("--issuer URL is required: the log is {issuer}/log")
	}
	return s, s.read(what)
}

// useless is why a flag would not be looked at: whoever gives it would take the
// verdict for one on it.
func (s *saved) useless(what string) error {
	switch {
	case s.receipts != "" && (s.entry != "" || s.inclusion != "" || s.checkpoint != "" || s.witness != nil):
		return errors.New("--receipts judges a task receipt, which stands in no log: nothing would be done with --entry, --inclusion, --checkpoint or --witness")
	case what == "receipt" && s.witness != nil && s.entry == "":
		return errors.New("--witness asks for --entry, --inclusion and --checkpoint beside it: a witness signs the log, and no receipt")
	case what == "receipt" && s.issuer != "" && s.checkpoint == "":
		return errors.New("--issuer says whose log a --checkpoint is of, and there is none")
	case s.former != nil && s.checkpoint == "":
		return errors.New("--former-issuer says what a kept --checkpoint calls the log, and there is none")
	case s.consistency != "" && s.checkpoint == "":
		return errors.New("--consistency asks for --checkpoint FILE beside it: the older one")
	}
	return nil
}

// readWitness takes a witness's key, or the file that it stands in.
func (s *saved) readWitness(key string) error {
	if key == "" {
		return nil
	}
	if !strings.Contains(key, "+") {
		raw, err := readFile(key, nil)
		if err != nil {
			return fmt.Errorf("read the witness's key: %w", err)
		}
		key = string(raw)
	}
	k, err := witness.ParseKey(key)
	if err != nil {
		return fmt.Errorf("--witness: %w", err)
	}
	s.witness = &k
	return nil
}

// read takes the files up that every kind has.
func (s *saved) read(what string) error {
	var err error
	if what != "log" { // which is read as it goes, however long it is
		if s.data, err = readFile(s.file, s.stdin); err != nil {
			return fmt.Errorf("read the %s: %w", what, err)
		}
		if len(bytes.TrimSpace(s.data)) == 0 {
			return errNothing
		}
	}
	if what == "card" {
		return nil
	}
	if s.keys, err = readKeys(context.Background(), discovery.Client{}, "the Brand's keys", s.jwks); err != nil {
		return err
	}
	if s.archive != "" {
		raw, err := readFile(s.archive, nil)
		if err == nil {
			s.revoked, err = verify.ParseArchive(raw)
		}
		if err != nil {
			return fmt.Errorf("read the revoked keys from %s: %w", s.archive, err)
		}
	}
	return nil
}

// signed is a JWS in whatever was saved of it: bare, or {jws, claims}, also as the
// metadata of a message, a line of an export or of a witness's file.
type signed struct {
	JWS     string          `json:"jws"`
	Note    string          `json:"note"`
	Entry   string          `json:"entry"` // of a line of a log, which is not read as a checkpoint
	Claims  json.RawMessage `json:"claims"`
	Receipt *signed         `json:"pact.receipt"`
}

func readSigned(data []byte) (signed, error) {
	data = bytes.TrimSpace(data)
	if !bytes.HasPrefix(data, []byte("{")) {
		return signed{JWS: bare(string(data))}, nil
	}
	var one signed
	if err := json.Unmarshal(data, &one); err != nil {
		return one, errors.New("it begins like JSON, but is not")
	}
	if one.Receipt != nil {
		one = *one.Receipt
	}
	if one.JWS == "" {
		return one, errors.New("there is JSON, but no jws in it")
	}
	return one, nil
}

// readProof reads the hashes of an answer of {issuer}/log/….
func readProof(file string) ([]tlog.Hash, error) {
	raw, err := readFile(file, nil)
	if err != nil {
		return nil, fmt.Errorf("read the proof: %w", err)
	}
	var answer struct {
		Hashes []string `json:"hashes"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, fmt.Errorf("read the proof from %s: not JSON", file)
	}
	if answer.Hashes == nil { // a refusal that was saved proves nothing, and refutes nothing
		return nil, fmt.Errorf("read the proof from %s: there are no hashes in it", file)
	}
	out := make([]tlog.Hash, len(answer.Hashes))
	for i, text := range answer.Hashes {
		var ok bool
		if out[i], ok = receiptlog.Hash(text); !ok {
			return nil, fmt.Errorf("read the proof from %s: hash %d is none", file, i)
		}
	}
	return out, nil
}

func (f finding) print(w io.Writer) error {
	var b strings.Builder
	for _, s := range f.Sections {
		fmt.Fprintf(&b, "%s\n", s.Title)
		for _, check := range s.Checks {
			fmt.Fprintf(&b, "  %s %-11s %s\n", marks[check.Result], check.Name, printable(check.Detail))
		}
	}
	if f.Valid {
		fmt.Fprintf(&b, "\n%s\n", f.holds)
	} else {
		fmt.Fprintf(&b, "\nRefused: %s\n", printable(f.Reason))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
