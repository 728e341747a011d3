package check

import (
	"encoding/json"
	"strings"
	"testing"

	"countersign.dev/authority/receiptlog"
	"golang.org/x/mod/sumdb/tlog"
)

// by is the log as another key signs it, of the same entries.
func (l *signedLog) by(p party) *signedLog {
	other := *l
	other.brand = p
	return &other
}

// inLog are the flags that show the second receipt to be under the checkpoint.
func (l *signedLog) inLog(checkpoint string) []string {
	return []string{
		"--audience", "https://harbor.example", "--entry", l.file("entry", l.lines[1]),
		"--inclusion", l.file("inclusion", hashesJSON(tlog.RecordHash([]byte(l.entries[0])))), "--checkpoint", l.file("kept", checkpoint),
	}
}

type asked struct {
	name string
	what string // receipt, log
	in   string
	more []string
	code int
	says string // of the verdict, or of the error
}

func (l *signedLog) all(tests []asked, at ...string) {
	l.t.Helper()
	for _, tt := range tests {
		code, out, errs := verifyCommand(tt.in, append(append([]string{tt.what, "-"}, at...), tt.more...)...)
		if code != tt.code || !strings.Contains(out+errs, tt.says) {
			l.t.Errorf("%s: exit %d\n%s%s", tt.name, code, out, errs)
		}
	}
}

// R75, R78: where a checkpoint was given and nothing was compared with it, the verdict
// is not that it holds; what was left out is told beside the verdict.
func TestNothingHoldsThatWasNotCompared(t *testing.T) {
	l := newLog(t)
	stranger := l.by(newParty(t, "brand-0"))
	one := receiptlog.Edge{}
	one.Append(tlog.RecordHash([]byte(l.entries[0])))
	s := newWitness(t)
	key := []string{"--witness", s.Key().String()}
	strange := stranger.seen(s, 1, one.Root()) + stranger.seen(s, 2, l.edge.Root())
	half := stranger.seen(s, 1, one.Root()) + l.seen(s, 2, l.edge.Root())
	file, now, whole := l.file("strange", strange), l.checkpoint(2, l.edge.Root()), strings.Join(l.lines, "")
	kept := []string{"--checkpoint", file}
	const none = "none of the 2 lines of "
	l.all([]asked{
		{"a whole log", "log", whole, kept, exitRefused, none},
		{"a whole log, witnessed", "log", whole, append(key, kept...), exitRefused, none},
		{"a checkpoint", "log", now, kept, exitRefused, none},
		{"a checkpoint, witnessed", "log", l.seen(s, 2, l.edge.Root()), append(key, kept...), exitRefused, none},
		{"a receipt", "receipt", l.receipts[1], l.inLog(strange), exitRefused, none},
		{"a receipt, witnessed", "receipt", l.receipts[1], append(key, l.inLog(strange)...), exitRefused, none},
		{"a file of nothing", "log", now, []string{"--checkpoint", l.file("empty", "\n\n")}, exitUnknown, "there is none in it"},
		{"a part of it", "log", whole, []string{"--checkpoint", l.file("half", half)}, exitGood, "gives what was signed; 1 of 2 kept lines could not be compared"},
		{"a part of it, witnessed", "log", whole, append(key, "--checkpoint", l.file("half", half)), exitGood, "✓ witness"},
		{"a part of it, a checkpoint", "log", now, []string{"--checkpoint", l.file("half", half)}, exitGood, "continues the last that was kept; 1 of 2"},
	}, "--jwks", l.file("jwks", string(l.brand.jwks())), "--issuer", "https://harbor.example/oauth")
}

// A flag that nothing would be done with is not taken for granted.
func TestAFlagThatIsNotUsedIsRefused(t *testing.T) {
	l := newLog(t)
	witness, some := newWitness(t).Key().String(), l.file("some", l.checkpoint(2, l.edge.Root()))
	brand := []string{"--audience", "https://harbor.example"}
	issuer := []string{"--issuer", "https://harbor.example/oauth"}
	with := func(at []string, more ...string) []string { return append(append([]string{}, at...), more...) }
	l.all([]asked{
		{"a witness of a receipt", "receipt", l.receipts[0], with(brand, "--witness", witness), exitUnknown, "--witness asks for --entry"},
		{"the issuer of a receipt", "receipt", l.receipts[0], with(brand, issuer...), exitUnknown, "--issuer says"},
		{"the checkpoint of a task", "receipt", "x", with(brand, "--receipts", some, "--checkpoint", some), exitUnknown, "--receipts judges"},
		{"the entry of a task", "receipt", "x", with(brand, "--receipts", some, "--entry", some), exitUnknown, "--receipts judges"},
		{"the inclusion of a task", "receipt", "x", with(brand, "--receipts", some, "--inclusion", some), exitUnknown, "--receipts judges"},
		{"the witness of a task", "receipt", "x", with(brand, "--receipts", some, "--witness", witness), exitUnknown, "--receipts judges"},
		{"consistency with nothing", "log", l.checkpoint(2, l.edge.Root()), with(issuer, "--consistency", some), exitUnknown, "--consistency asks for"},
		{"consistency of a whole log", "log", strings.Join(l.lines, ""), with(issuer, "--consistency", some, "--checkpoint", some), exitUnknown, "--consistency is of two"},
		{"a former name of nothing", "log", strings.Join(l.lines, ""), with(issuer, "--former-issuer", "https://old.example"), exitUnknown, "--former-issuer says"},
		{"an empty checkpoint", "log", strings.Join(l.lines, ""), with(issuer, "--checkpoint", ""), exitUnknown, "--checkpoint is given and empty"},
		{"an empty witness", "log", strings.Join(l.lines, ""), with(issuer, "--witness="), exitUnknown, "--witness is given and empty"},
	}, "--jwks", l.file("jwks", string(l.brand.jwks())))
	for flag, value := range map[string]string{"--pa-audience": "https://provider.example", "--status": ""} {
		code, _, errs := verifyCommand("x", "token", "-", "--jwks", some, "--issuer", "https://a.example", "--audience", "https://b.example", flag, value)
		if code != exitUnknown || !strings.Contains(errs, flag) {
			t.Errorf("%s: exit %d, %s", flag, code, errs)
		}
	}
}

// What is kept for years is longer than what stands in one answer.
func TestFilesOfLinesMayBeLong(t *testing.T) {
	l := newLog(t)
	s := newWitness(t)
	var seen strings.Builder
	for line := l.seen(s, 2, l.edge.Root()); seen.Len() <= maxFile; {
		seen.WriteString(line)
	}
	long, whole := l.file("long", seen.String()), strings.Join(l.lines, "")
	at := []string{"--jwks", l.file("jwks", string(l.brand.jwks())), "--issuer", "https://harbor.example/oauth"}
	l.all([]asked{
		{"a whole log", "log", whole, []string{"--checkpoint", long}, exitGood, "gives what was signed."},
		{"a whole log, witnessed", "log", whole, []string{"--checkpoint", long, "--witness", s.Key().String()}, exitGood, "✓ witness"},
		{"a witness's file", "log", seen.String(), []string{"--checkpoint", long, "--witness", s.Key().String()}, exitGood, "continues"},
		{"a line", "log", whole, []string{"--checkpoint", l.file("line", strings.Repeat("x", maxFile+1))}, exitUnknown, "too long"},
	}, at...)
	var edge receiptlog.Edge
	var receipts strings.Builder
	line, _ := json.Marshal(map[string]string{"jws": l.receipts[0], "claims": l.claims[0]})
	for receipts.Len() <= maxFile {
		edge.Append(tlog.RecordHash([]byte(l.claims[0])))
		receipts.Write(append(line, '\n'))
	}
	task, _ := l.brand.signForm("pact-task-receipt+jws", receiptlog.Task{
		GrantID: "g1", User: "guest-1", PA: aria, Brand: "https://harbor.example", ContextID: "talk", Count: edge.Size, Root: receiptlog.Text(edge.Root()), TS: "2026-11-20T12:00:00.000Z",
	})
	l.all([]asked{
		{"a conversation", "receipt", task, []string{"--audience", "https://harbor.example", "--receipts", l.file("receipts", receipts.String())}, exitGood, "all the receipts"},
	}, at[:2]...)
}

// wire.md §2: what a revoked key signed, in the log or of it, counts where a witness
// saw it before, and by no other word; also where the saved keys still hold it.
func TestAWitnessOutlivesTheKey(t *testing.T) {
	l := newLog(t)
	s, other := newWitness(t), newWitness(t)
	fresh := newParty(t, "brand-2")
	archive := func(at string) string {
		var set struct{ Keys []map[string]any }
		if err := json.Unmarshal(l.brand.jwks(), &set); err != nil {
			t.Fatal(err)
		}
		set.Keys[0]["revoked"] = map[string]string{"revoked_at": at, "reason": "stolen"}
		raw, err := json.Marshal(map[string]any{"keys": set.Keys})
		if err != nil {
			t.Fatal(err)
		}
		return l.file("archive", string(raw))
	}
	key := []string{"--witness", s.Key().String()}
	seen, whole := l.seen(s, 2, l.edge.Root()), strings.Join(l.lines, "") // seen 12:02, signed 12:01
	flags := func(more ...[]string) (out []string) {
		for _, m := range more {
			out = append(out, m...)
		}
		return out
	}
	for keys, jwks := range map[string]string{"keys of today": l.file("jwks", string(fresh.jwks())), "keys of then": l.file("then", string(l.brand.jwks()))} {
		for _, tt := range []struct {
			name, revoked string
			more          []string
			code          int
		}{
			{"witnessed before", "2026-11-20T12:02:01Z", key, exitGood},
			{"witnessed later", "2026-11-20T12:01:59Z", key, exitRefused},
			{"witnessed that moment", "2026-11-20T12:02:00Z", key, exitRefused},
			{"another witness", "2026-11-20T12:02:01Z", []string{"--witness", other.Key().String()}, exitRefused},
			{"no witness asked", "2026-11-20T12:02:01Z", nil, exitRefused},
		} {
			at := []string{"--jwks", jwks, "--issuer", "https://harbor.example/oauth", "--archive", archive(tt.revoked)}
			says := "It holds"
			if tt.code == exitRefused {
				says = "key that was revoked"
			}
			l.all([]asked{
				{keys + ", a receipt, " + tt.name, "receipt", l.receipts[1], flags(tt.more, l.inLog(seen)), tt.code, says},
				{keys + ", a whole log, " + tt.name, "log", whole, flags(tt.more, []string{"--checkpoint", l.file("kept", seen)}), tt.code, says},
				{keys + ", a checkpoint, " + tt.name, "log", seen, tt.more, tt.code, says},
			}, at...)
		}
	}
}

// A Brand that moved calls its log by another name, and what was kept by the former
// one is still of it, for whoever says so.
func TestACheckpointOutlivesAMove(t *testing.T) {
	l := newLog(t)
	s := newWitness(t)
	one := receiptlog.Edge{}
	one.Append(tlog.RecordHash([]byte(l.entries[0])))
	moved, _ := l.brand.signForm("countersign-checkpoint+jws", receiptlog.Checkpoint{
		Log: "https://moved.example/oauth/log", Size: 2, Root: receiptlog.Text(l.edge.Root()), TS: "2026-11-20T12:05:00.000Z",
	})
	forked := l.checkpoint(1, tlog.RecordHash([]byte("another")))
	kept := []string{"--checkpoint", l.file("kept", l.seen(s, 1, one.Root())), "--consistency", l.file("consistency", hashesJSON(tlog.RecordHash([]byte(l.entries[1]))))}
	former := []string{"--former-issuer", "https://harbor.example/oauth"}
	with := func(all ...[]string) (out []string) {
		for _, a := range all {
			out = append(out, a...)
		}
		return out
	}
	l.all([]asked{
		{"nothing said", "log", moved, kept, exitRefused, "✗ log"},
		{"its former name", "log", moved, with(kept, former), exitGood, "✓ consistency"},
		{"its first of two", "log", moved, with(kept, []string{"--former-issuer", "https://other.example"}, former), exitGood, "✓ consistency"},
		{"its last of two", "log", moved, with(kept, former, []string{"--former-issuer", "https://other.example"}), exitGood, "✓ consistency"},
		{"another name", "log", moved, with(kept, []string{"--former-issuer", "https://other.example"}), exitRefused, "✗ log"},
		{"another log", "log", moved, with(kept, former, []string{"--checkpoint", l.file("forked", forked)}), exitRefused, "✗ consistency"},
		{"what it shows today", "log", l.checkpoint(2, l.edge.Root()), with(kept, former), exitRefused, "✗ log"},
		{"a whole log, witnessed", "log", strings.Join(l.lines, ""), with(former, kept[:2], []string{"--witness", s.Key().String()}), exitGood, "gives what was signed"},
	}, "--jwks", l.file("jwks", string(l.brand.jwks())), "--issuer", "https://moved.example/oauth")
}
