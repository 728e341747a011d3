package witness

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority/witness"
)

// read is the line that a look printed, opened with the witness's key.
func (s *seer) read(out string) (line, time.Time) {
	s.t.Helper()
	var l line
	if err := json.Unmarshal([]byte(out), &l); err != nil {
		s.t.Fatalf("%v: %q", err, out)
	}
	k, err := readKey(s.key)
	if err != nil {
		s.t.Fatal(err)
	}
	m := memory{s.file}
	last, err := m.last(k.Key())
	if err != nil {
		s.t.Fatal(err)
	}
	at, err := k.Key().Open(l.Note, last.Checkpoint, s.clock)
	if err != nil {
		s.t.Fatal(err)
	}
	return l, at
}

func (s *seer) lines() int {
	s.t.Helper()
	raw, err := os.ReadFile(s.file)
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.Count(string(raw), "\n")
}

// R78, R80: a log that grows is signed at every look, with the witness's time; what
// was new is remembered, and the proof is asked for from there.
func TestALogThatGrowsIsSigned(t *testing.T) {
	l := newBrandLog(t, "a", "b", "c")
	s := newSeer(t, l)
	first, at := s.read(s.mustSee(exitSigned, "The first look"))
	if !at.Equal(s.clock) || first.JWS == "" || first.ClockBack != "" || s.lines() != 1 {
		t.Errorf("%+v, %v, %d lines", first, at, s.lines())
	}
	s.clock = s.clock.Add(time.Minute)
	if _, at := s.read(s.mustSee(exitSigned, "")); !at.Equal(s.clock) || s.lines() != 1 {
		t.Errorf("the same log: %v, %d lines", at, s.lines())
	}
	for _, entry := range []string{"d", "e", "f"} {
		l.add(entry)
		l.clock, s.clock = l.clock.Add(time.Minute), s.clock.Add(time.Minute)
		s.mustSee(exitSigned, "")
	}
	if s.lines() != 4 {
		t.Errorf("%d lines", s.lines())
	}
	for _, path := range l.asked {
		switch path {
		case "/oauth/jwks.json", "/oauth/log/checkpoint", "/oauth/log/consistency":
		default:
			t.Errorf("it asked for %s", path)
		}
	}
}

// An empty log is the beginning of every log.
func TestALogThatBegins(t *testing.T) {
	l := newBrandLog(t)
	s := newSeer(t, l)
	s.mustSee(exitSigned, "The first look")
	l.add("a", "b")
	l.clock, s.clock = l.clock.Add(time.Minute), s.clock.Add(time.Minute)
	s.mustSee(exitSigned, "")
}

// R78: whoever shows a witness another log than before gets no signature, and leaves
// two of their own that contradict one another; the witness goes on remembering what
// it saw first.
func TestAForkIsNeverSigned(t *testing.T) {
	for name, tt := range map[string]struct {
		fork []string
		says string
	}{
		"a copy that went another way": {[]string{"a", "B", "c", "d"}, "does not begin with"},
		"another log of one size":      {[]string{"a", "B", "c"}, "two logs of 3 entries"},
		"a log that shrank":            {[]string{"a", "b"}, "it had 3 entries and has 2"},
		"a log that was emptied":       {nil, "it had 3 entries and has 0"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newBrandLog(t, "a", "b", "c")
			s := newSeer(t, l)
			s.mustSee(exitSigned, "The first look")
			before := l.checkpoint()
			l.entries = tt.fork
			l.clock, s.clock = l.clock.Add(time.Minute), s.clock.Add(time.Minute)
			var r refusal
			out := s.mustSee(exitRefused, tt.says)
			if err := json.Unmarshal([]byte(out), &r); err != nil || strings.Contains(out, "note") {
				t.Fatalf("%v: %s", err, out)
			}
			part := func(jws string) string { return strings.Split(jws, ".")[1] }
			if part(r.Remembered) != part(before) || part(r.Shown) != part(l.checkpoint()) || !strings.Contains(r.Refused, tt.says) {
				t.Errorf("%+v", r)
			}
			s.mustSee(exitRefused, tt.says)
			l.entries = []string{"a", "b", "c", "d"}
			s.mustSee(exitSigned, "")
		})
	}
}

// R80: the log of a Brand whose clock went back is signed, since its order stands, and
// the witness says so by its own clock: also where the log's own times are in order.
func TestAClockThatWentBackIsTold(t *testing.T) {
	l := newBrandLog(t, "a")
	s := newSeer(t, l)
	s.mustSee(exitSigned, "The first look")
	l.add("b")
	l.clock, s.clock = noon.Add(-time.Hour), s.clock.Add(time.Minute)
	if told, _ := s.read(s.mustSee(exitDoubtful, "clock")); !strings.Contains(told.ClockBack, "fewer of them later") {
		t.Errorf("%+v", told)
	}
	l.add("c")
	l.clock, s.clock = l.clock.Add(time.Minute), s.clock.Add(time.Minute)
	if told, _ := s.read(s.mustSee(exitDoubtful, "clock")); !strings.Contains(told.ClockBack, "not there yet") {
		t.Errorf("%+v", told)
	}
	s.mustSee(exitSigned, "") // nothing was added since
	l.add("d")
	l.clock = noon.Add(time.Hour) // and ahead is nothing that has been
	s.mustSee(exitUnknown, "from the future")
}

// R80: a look at which nothing was new is a look too. What comes after it is younger,
// by the clock of the log and by the witness's own; and the first time at which the
// log was seen to stand so is kept beside it.
func TestALookAtALogThatDidNotGrowIsRemembered(t *testing.T) {
	l := newBrandLog(t, "a")
	s := newSeer(t, l)
	s.mustSee(exitSigned, "The first look")
	l.add("b")
	l.clock, s.clock = l.clock.Add(time.Minute), s.clock.Add(time.Minute)
	s.mustSee(exitSigned, "")
	before, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(s.file, 0o640); err != nil {
		t.Fatal(err)
	}
	grown := s.clock
	for range 2 {
		s.clock = s.clock.Add(time.Hour)
		out, _ := s.read(s.mustSee(exitSigned, ""))
		if out.Again != "" || out.Note == "" {
			t.Errorf("it printed %+v", out)
		}
	}
	after, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	old, now := strings.Split(string(before), "\n"), strings.Split(string(after), "\n")
	var was, is line
	if err := errors.Join(json.Unmarshal([]byte(old[1]), &was), json.Unmarshal([]byte(now[1]), &is)); err != nil || s.lines() != 2 {
		t.Fatalf("%v, %d lines", err, s.lines())
	}
	if old[0] != now[0] || was.JWS != is.JWS || was.Note != is.Note {
		t.Errorf("it forgot what it saw first:\n%s\n%s", before, after)
	}
	k, err := readKey(s.key)
	if err != nil {
		t.Fatal(err)
	}
	if last, err := (memory{s.file}).last(k.Key()); err != nil || !last.At.Equal(s.clock) || !s.clock.Equal(grown.Add(2*time.Hour)) {
		t.Errorf("the last look was %+v, %v", last, err)
	}
	folder, err := os.ReadDir(filepath.Dir(s.file))
	if info, statErr := os.Stat(s.file); err != nil || statErr != nil || len(folder) != 3 || info.Mode().Perm() != 0o640 {
		t.Errorf("%v is left, %v", folder, err)
	}
	// Our own clock is set back to before that look, though after the log grew.
	s.clock = grown.Add(time.Hour)
	s.mustSee(exitUnknown, "the clock of the witness went back")
	// And the log's clock is, which by its own times is in order.
	s.clock = grown.Add(3 * time.Hour)
	l.add("c")
	l.clock = grown.Add(time.Hour)
	if told, _ := s.read(s.mustSee(exitDoubtful, "clock")); !strings.Contains(told.ClockBack, "not there yet") {
		t.Errorf("%+v", told)
	}
	// What another wrote there is not taken up.
	stranger := newSeer(t, l)
	stranger.clock = s.clock
	stranger.mustSee(exitSigned, "The first look")
	theirs := stranger.mustSee(exitSigned, "")
	var foreign line
	if err := json.Unmarshal([]byte(theirs), &foreign); err != nil {
		t.Fatal(err)
	}
	is.Again = foreign.Note
	raw, err := json.Marshal(is)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.file, append(raw, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	s.mustSee(exitUnknown, "not what this witness wrote")
}

// What the witness cannot know it does not sign.
func TestWhatCannotBeLookedAtIsNotSigned(t *testing.T) {
	l := newBrandLog(t, "a")
	s := newSeer(t, l)
	s.mustSee(exitSigned, "The first look")
	l.add("b")
	l.clock, s.clock = l.clock.Add(time.Minute), s.clock.Add(time.Minute)
	checkpoint := l.checkpoint()
	for name, answer := range map[string]func(path string) (int, string){
		"no log":      func(string) (int, string) { return http.StatusNotFound, "" },
		"no JWS":      func(p string) (int, string) { return only(p, "/log/checkpoint", "hello") },
		"cut off":     func(p string) (int, string) { return only(p, "/log/checkpoint", checkpoint[:len(checkpoint)-5]) },
		"no keys":     func(p string) (int, string) { return only(p, "/jwks.json", `{"keys":[]}`) },
		"no proof":    func(p string) (int, string) { return only(p, "/log/consistency", "x") },
		"not hashes":  func(p string) (int, string) { return only(p, "/log/consistency", `{"hashes":["x"]}`) },
		"broken down": func(p string) (int, string) { return http.StatusInternalServerError, "" },
	} {
		l.answer = answer
		if code, out, errs := s.look(); code != exitUnknown || out != "" || errs == "" {
			t.Errorf("%s: exit %d\n%s%s", name, code, out, errs)
		}
	}
	l.answer = func(p string) (int, string) { return only(p, "/log/consistency", `{"hashes":[]}`) }
	s.mustSee(exitRefused, "does not begin with")
	l.answer = nil
	other := newBrandLog(t, "a")
	if code, out, errs := s.run("--key", s.key, "--log", s.file, "--issuer", other.url); code != exitUnknown || out != "" || !strings.Contains(errs, "take another file") {
		t.Errorf("another log: exit %d\n%s%s", code, out, errs)
	}
	l.clock, s.clock = noon, noon // a second before its first look
	s.mustSee(exitUnknown, "the clock of the witness went back")
	if s.lines() != 1 {
		t.Errorf("%d lines", s.lines())
	}
}

func only(path, at, body string) (int, string) {
	if strings.HasSuffix(path, at) {
		return http.StatusOK, body
	}
	return 0, ""
}

// The file is the witness's own word: what another wrote into it is not taken up,
// what was cut off while it was written counts as not written.
func TestTheFileIsTheWitnessesOwn(t *testing.T) {
	l := newBrandLog(t, "a")
	s := newSeer(t, l)
	s.mustSee(exitSigned, "The first look")
	whole, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(s.file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stranger := newSeer(t, l)
	stranger.mustSee(exitSigned, "The first look")
	foreign, err := os.ReadFile(stranger.file)
	if err != nil {
		t.Fatal(err)
	}
	mine, theirs := line{}, newBrandLog(t, "a", "b")
	if err := json.Unmarshal(whole, &mine); err != nil {
		t.Fatal(err)
	}
	swapped, _ := json.Marshal(line{JWS: theirs.checkpoint(), Note: mine.Note})
	for name, text := range map[string]string{
		"another witness's": string(foreign), "another checkpoint": string(swapped) + "\n", "nothing of the kind": "hello\n", "empty": "{}\n",
	} {
		write(text)
		if code, out, errs := s.look(); code != exitUnknown || out != "" || !strings.Contains(errs, "not what this witness wrote") {
			t.Errorf("%s: exit %d\n%s%s", name, code, out, errs)
		}
	}
	write(string(whole) + string(whole[:40]))
	l.add("b")
	l.clock, s.clock = l.clock.Add(time.Minute), s.clock.Add(time.Minute)
	s.mustSee(exitSigned, "")
	s.mustSee(exitSigned, "")
	if s.lines() != 2 {
		t.Errorf("%d lines", s.lines())
	}
}

// Two looks at once are two looks, one after the other.
func TestLooksWaitForOneAnother(t *testing.T) {
	l := newBrandLog(t, "a")
	s := newSeer(t, l)
	s.mustSee(exitSigned, "The first look")
	l.add("b")
	l.clock, s.clock = l.clock.Add(time.Minute), s.clock.Add(time.Minute)
	var mu sync.Mutex
	busy, most := 0, 0
	l.answer = func(path string) (int, string) {
		mu.Lock()
		defer mu.Unlock()
		if strings.HasSuffix(path, "/jwks.json") {
			busy++
			most = max(most, busy)
		}
		if strings.HasSuffix(path, "/log/consistency") || strings.HasSuffix(path, "/log/checkpoint") {
			busy = 0
		}
		return 0, ""
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if code, _, errs := s.look(); code != exitSigned {
				t.Errorf("exit %d: %s", code, errs)
			}
		})
	}
	all.Wait()
	if s.lines() != 2 || most != 1 {
		t.Errorf("%d lines, %d at once", s.lines(), most)
	}
}

func TestTheKeyIsKept(t *testing.T) {
	s := newSeer(t, newBrandLog(t))
	info, err := os.Stat(s.key)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	code, out, _ := s.run("--key", s.key)
	if _, err := witness.ParseKey(out); code != exitSigned || err != nil {
		t.Errorf("exit %d, %v", code, err)
	}
	for _, args := range [][]string{
		{},
		{"--key", s.key, "--name", "other"},
		{"--key", s.key + "x"},
		{"--key", s.key, "--log", s.file},
		{"--key", s.key, "--issuer", "https://a.example"},
		{"--key", s.key, "--log", s.file, "--issuer", "http://a.example/oauth"},
		{"--key", s.key, "more"},
		{"--wrong"},
		{"--key", s.file + "y", "--name", "a b"},
		{"--name", "a"},
	} {
		if code, out, errs := s.run(args...); code != exitUnknown || out != "" || errs == "" {
			t.Errorf("%v: exit %d, %q, %q", args, code, out, errs)
		}
	}
	if code, out, _ := s.run("--help"); code != exitSigned || !strings.Contains(out, "--issuer") {
		t.Errorf("help: exit %d", code)
	}
}
