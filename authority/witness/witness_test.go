package witness

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority/verify"
	"golang.org/x/mod/sumdb/tlog"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func newSigner(t *testing.T, name string) Signer {
	t.Helper()
	secret, err := NewSigner(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ParseSigner(secret + "\n")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func checkpoint(size int64, content string, at time.Time) verify.LogCheckpoint {
	return verify.LogCheckpoint{Log: "https://harbor.example/oauth/log", Size: size, Root: tlog.RecordHash([]byte(content)), At: at}
}

// R80: the note is that of C2SP to the byte, made again here from its text.
func TestTheNoteIsAsPublished(t *testing.T) {
	s := newSigner(t, "witness.example/w1")
	c := checkpoint(7, "a", noon)
	note, err := s.Sign(c, noon.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	text := "harbor.example/oauth/log\n7\n" + base64.StdEncoding.EncodeToString(c.Root[:]) + "\n"
	body, encoded, ok := strings.Cut(note, "\n— witness.example/w1 ")
	if !ok || body != text || !strings.HasSuffix(encoded, "\n") || strings.Count(encoded, "\n") != 1 {
		t.Fatalf("%q", note)
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(encoded, "\n"))
	if err != nil || len(raw) != 4+8+64 {
		t.Fatalf("%d bytes, %v", len(raw), err)
	}
	parts := strings.SplitN(s.Key().String(), "+", 3)
	material, err := base64.StdEncoding.DecodeString(parts[2])
	if err != nil || material[0] != 4 {
		t.Fatal(parts, err)
	}
	id := sha256.Sum256(append([]byte("witness.example/w1\n"), material...))
	if !bytes.Equal(raw[:4], id[:4]) || parts[1] != fmt.Sprintf("%x", id[:4]) {
		t.Errorf("key id %x, %s", raw[:4], parts[1])
	}
	seconds := binary.BigEndian.Uint64(raw[4:])
	message := fmt.Sprintf("cosignature/v1\ntime %d\n%s", noon.Unix()+60, text)
	if seconds != uint64(noon.Unix()+60) || !ed25519.Verify(material[1:], []byte(message), raw[12:]) {
		t.Errorf("time %d, and the signature is of something else", seconds)
	}
}

// R80: what a witness signed says when it saw which checkpoint, and nothing else
// passes for it.
func TestOnlyTheWitnessSaysWhatItSaw(t *testing.T) {
	s, other := newSigner(t, "witness.example/w1"), newSigner(t, "witness.example/w1")
	c := checkpoint(7, "a", noon)
	seen := noon.Add(time.Minute)
	sign := func(s Signer, c verify.LogCheckpoint, at time.Time) string {
		note, err := s.Sign(c, at)
		if err != nil {
			t.Fatal(err)
		}
		return note
	}
	good := sign(s, c, seen)
	_, line, _ := strings.Cut(sign(other, c, seen), "\n\n")
	elsewhere, later := c, c
	elsewhere.Log = "https://other.example/log"
	later.At = seen.Add(skew + time.Millisecond)
	for name, tt := range map[string]struct {
		note string
		key  Key
		of   verify.LogCheckpoint
		now  time.Time
		good bool
	}{
		"as it is":                    {good, s.Key(), c, noon.Add(time.Hour), true},
		"beside another's":            {good + line, s.Key(), c, noon.Add(time.Hour), true},
		"a clock a little behind":     {good, s.Key(), c, seen.Add(-skew), true},
		"another witness's":           {good, other.Key(), c, noon.Add(time.Hour), false},
		"another size":                {good, s.Key(), checkpoint(8, "a", noon), noon.Add(time.Hour), false},
		"another root":                {good, s.Key(), checkpoint(7, "b", noon), noon.Add(time.Hour), false},
		"another log":                 {good, s.Key(), elsewhere, noon.Add(time.Hour), false},
		"a time that is not yet":      {good, s.Key(), c, seen.Add(-skew - time.Second), false},
		"signed after it was seen":    {good, s.Key(), later, noon.Add(time.Hour), false},
		"another text":                {strings.Replace(good, "\n7\n", "\n8\n", 1), s.Key(), checkpoint(8, "a", noon), noon.Add(time.Hour), false},
		"no note":                     {"", s.Key(), c, noon.Add(time.Hour), false},
		"a note that nobody signed":   {strings.SplitAfter(good, "\n\n")[0], s.Key(), c, noon.Add(time.Hour), false},
		"a signature that is cut":     {good[:len(good)-9] + "\n", s.Key(), c, noon.Add(time.Hour), false},
		"a blank line that is no end": {good + "\n", s.Key(), c, noon.Add(time.Hour), false},
	} {
		at, err := tt.key.Open(tt.note, tt.of, tt.now)
		if tt.good && (err != nil || !at.Equal(seen)) || !tt.good && (!errors.Is(err, ErrCosignature) || !at.IsZero()) {
			t.Errorf("%s: %v, %v", name, at, err)
		}
	}
	for i := range good {
		b := []byte(good)
		b[i] ^= 1
		if _, err := s.Key().Open(string(b), c, noon.Add(time.Hour)); err == nil {
			t.Errorf("byte %d may be another", i)
		}
	}
}

func TestKeysAreReadBack(t *testing.T) {
	secret, err := NewSigner("witness.example/w1")
	if err != nil {
		t.Fatal(err)
	}
	s, err := ParseSigner(secret)
	if err != nil {
		t.Fatal(err)
	}
	k, err := ParseKey(" " + s.Key().String() + "\n")
	if err != nil || k.String() != s.Key().String() || k.Name() != "witness.example/w1" {
		t.Errorf("%v, %v", k, err)
	}
	if printed := fmt.Sprint(s); strings.Contains(printed, "witness") {
		t.Error("a private key is printed")
	}
	public := s.Key().String()
	for _, bad := range []string{"", "a", "a+b", public + "A", "x" + public, strings.Replace(public, "+", "+0", 1), secret, strings.Replace(public, "+B", "+A", 1)} {
		if _, err := ParseKey(bad); !errors.Is(err, ErrKey) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, bad := range []string{"", public, secret + "A", strings.Replace(secret, "w1", "w2", 1)} {
		if _, err := ParseSigner(bad); !errors.Is(err, ErrKey) {
			t.Errorf("%v", err)
		}
	}
	for _, bad := range []string{"", "a b", "a+b", "a\xff"} {
		if _, err := NewSigner(bad); !errors.Is(err, ErrKey) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// R80: what was added since a look was signed since that look, whatever a clock says.
func TestAClockThatWentBackIsFlagged(t *testing.T) {
	last := Seen{checkpoint(7, "a", noon), noon.Add(10 * time.Minute)}
	for name, tt := range map[string]struct {
		shown verify.LogCheckpoint
		want  string
	}{
		"later":                          {checkpoint(8, "b", noon.Add(11*time.Minute)), ""},
		"a little before the look":       {checkpoint(8, "b", noon.Add(10*time.Minute-skew)), ""},
		"not seen then":                  {checkpoint(8, "b", noon.Add(10*time.Minute-skew-time.Millisecond)), "not there yet"},
		"before the former":              {checkpoint(8, "b", noon.Add(-time.Millisecond)), "fewer of them later"},
		"an older signature of the same": {checkpoint(7, "a", noon.Add(-time.Hour)), ""},
		"a later signature of the same":  {checkpoint(7, "a", noon.Add(time.Hour)), ""},
	} {
		if got := ClockBack(last, tt.shown); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	// The former was signed by a clock that runs ahead of ours.
	ahead := Seen{checkpoint(7, "a", noon.Add(20*time.Second)), noon}
	if got := ClockBack(ahead, checkpoint(8, "b", noon.Add(10*time.Second))); !strings.Contains(got, "fewer of them later") {
		t.Errorf("%q", got)
	}
}

// R78, R80: what a witness may sign after what.
func TestAWitnessSignsOnlyWhatContinues(t *testing.T) {
	last := Seen{checkpoint(7, "a", noon), noon}
	other := checkpoint(7, "a", noon)
	other.Log = "https://other.example/log"
	for name, tt := range map[string]struct {
		shown verify.LogCheckpoint
		now   time.Time
		want  error
	}{
		"the same":           {checkpoint(7, "a", noon), noon, nil},
		"of another root":    {checkpoint(7, "b", noon), noon, verify.ErrProof},
		"shrunk":             {checkpoint(6, "a", noon), noon, verify.ErrProof},
		"grown, no proof":    {checkpoint(8, "b", noon), noon, verify.ErrProof},
		"another log":        {other, noon, verify.ErrProof},
		"our own clock back": {checkpoint(7, "a", noon), noon.Add(-time.Second), ErrClock},
	} {
		if err := Continues(last, tt.shown, nil, tt.now); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
