package check

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority/receiptlog"
	"countersign.dev/authority/verify"
	"countersign.dev/authority/witness"
	"golang.org/x/mod/sumdb/tlog"
)

func newWitness(t *testing.T) witness.Signer {
	t.Helper()
	secret, err := witness.NewSigner("witness.example/w1")
	if err != nil {
		t.Fatal(err)
	}
	s, err := witness.ParseSigner(secret)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// seen is a line of the witness's file.
func (l *signedLog) seen(s witness.Signer, size int64, root tlog.Hash) string {
	l.t.Helper()
	return l.beside(l.checkpoint(size, root), s, size, root)
}

// beside is a line with the note of a checkpoint beside some JWS.
func (l *signedLog) beside(jws string, s witness.Signer, size int64, root tlog.Hash) string {
	l.t.Helper()
	at := time.Date(2026, 11, 20, 12, 2, 0, 0, time.UTC)
	note, err := s.Sign(verify.LogCheckpoint{Log: "https://harbor.example/oauth/log", Size: size, Root: root}, at)
	if err != nil {
		l.t.Fatal(err)
	}
	raw, err := json.Marshal(map[string]string{"jws": jws, "note": note})
	if err != nil {
		l.t.Fatal(err)
	}
	return string(raw) + "\n"
}

// R78, R80: who asks for a witness gets nothing for good that the witness did not sign.
func TestAWitnessIsDemanded(t *testing.T) {
	l := newLog(t)
	s, other := newWitness(t), newWitness(t)
	one := receiptlog.Edge{}
	one.Append(tlog.RecordHash([]byte(l.entries[0])))
	first, both := l.seen(s, 1, one.Root()), l.seen(s, 2, l.edge.Root())
	bare, key := l.checkpoint(2, l.edge.Root()), s.Key().String()
	swapped := l.beside(l.checkpoint(2, one.Root()), s, 2, l.edge.Root())
	all := strings.Join(l.lines, "")
	at := []string{"--jwks", l.file("jwks", string(l.brand.jwks())), "--issuer", "https://harbor.example/oauth"}
	kept := func(text string) string { return l.file("kept", text) }
	for _, tt := range []struct {
		name, in string
		more     []string
		code     int
		says     string
	}{
		{"its line", both, []string{"--witness", key}, exitGood, "✓ witness     witness.example/w1 saw it 2026-11-20T12:02:00Z"},
		{"its file: the last line", first + both, []string{"--witness", key}, exitGood, "2 entries"},
		{"its key in a file", both, []string{"--witness", l.file("witness", key+"\n")}, exitGood, "✓ witness"},
		{"nobody is asked for", both, nil, exitGood, "It holds."},
		{"no cosignature", bare, []string{"--witness", key}, exitRefused, "the witness did not sign it"},
		{"another witness", both, []string{"--witness", other.Key().String()}, exitRefused, "the witness did not sign it"},
		{"of another checkpoint", swapped, []string{"--witness", key}, exitRefused, "the note is of another checkpoint"},
		{"before it was seen", both, []string{"--witness", key, "--at", "2026-11-20T12:01:10Z"}, exitRefused, "✗ witness"},
		{"no key", both, []string{"--witness", "a+b+c"}, exitUnknown, ""},
		{"no key file", both, []string{"--witness", l.folder + "/none"}, exitUnknown, ""},
		{
			"against what I kept myself", both,
			[]string{"--witness", key, "--checkpoint", kept(l.checkpoint(1, one.Root())), "--consistency", l.file("consistency", hashesJSON(tlog.RecordHash([]byte(l.entries[1]))))},
			exitGood, "✓ consistency",
		},
		{"a whole log", all, []string{"--witness", key, "--checkpoint", l.file("both", first+both)}, exitGood, "gives what was signed"},
		{"a whole log, not seen", all, []string{"--witness", key, "--checkpoint", l.file("bare", bare)}, exitRefused, "✗ witness"},
		{"a whole log, one not seen", all, []string{"--witness", key, "--checkpoint", l.file("some", first+bare+"\n")}, exitRefused, "✗ witness"},
		{"a whole log alone", all, []string{"--witness", key}, exitUnknown, ""},
		{"an erased one's line", `{"entry":"x"}` + "\n", nil, exitRefused, "entry 0"},
	} {
		code, out, errs := verifyCommand(tt.in, append(append([]string{"log", "-"}, at...), tt.more...)...)
		if code != tt.code || !strings.Contains(out, tt.says) || code == exitUnknown && errs == "" {
			t.Errorf("%s: exit %d\n%s%s", tt.name, code, out, errs)
		}
	}
	inLog := append([]string{
		"receipt", "-", "--audience", "https://harbor.example", "--entry", l.file("entry", l.lines[1]),
		"--inclusion", l.file("inclusion", hashesJSON(tlog.RecordHash([]byte(l.entries[0])))), "--witness", key,
	}, at...)
	for text, code := range map[string]int{both: exitGood, bare: exitRefused} {
		got, out, errs := verifyCommand(l.receipts[1], append(inLog, "--checkpoint", l.file("checkpoint", text))...)
		if got != code || !strings.Contains(out, " witness ") {
			t.Errorf("a receipt: exit %d\n%s%s", got, out, errs)
		}
	}
}
