package verify_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"countersign.dev/authority"
	"countersign.dev/authority/export"
	"countersign.dev/authority/verify"
)

// exported is the log as an export of the Brand holds it.
func (i *issued) exported(t *testing.T) []string {
	t.Helper()
	archive := export.Archive{DB: i.DB, Authority: i.rules, Keys: i.NewKeys(), Now: i.Clock.Now}
	var raw bytes.Buffer
	if _, err := archive.Write(t.Context(), &raw, i.Hotel.ID, func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(raw.Bytes()), int64(raw.Len()))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range z.File {
		if !strings.HasSuffix(f.Name, "receipts.ndjson") {
			continue
		}
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		return strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n")
	}
	t.Fatal("no receipts in the export")
	return nil
}

// R74, R75: the whole log is verified from an export; whatever is deleted, cut off,
// reordered, repeated or changed in it is found, and its place is named. Erasing a
// person changes nothing about that.
func TestTheWholeLogIsVerified(t *testing.T) {
	i := issue(t, 5)
	c := i.checkpoint(t)
	lines := i.exported(t)
	read := func(lines []string, checkpoints ...verify.LogCheckpoint) (verify.LogSummary, error) {
		sum, _, err := verify.WholeLog(i.keys, strings.NewReader(strings.Join(lines, "")), verify.Archive{}, checkpoints...)
		return sum, err
	}
	lines[4] += "\n"
	if sum, err := read(lines, c); err != nil || sum.Entries != 5 || sum.Receipts != 5 || sum.Root != c.Root {
		t.Fatalf("%+v, %v", sum, err)
	}
	swap := func(at int, old, new string) []string {
		out := slices.Clone(lines)
		if out[at] = strings.Replace(out[at], old, new, 1); out[at] == lines[at] {
			t.Fatalf("%q is not in it", old)
		}
		return out
	}
	for name, tt := range map[string]struct {
		lines []string
		names string
	}{
		"deleted":             {slices.Delete(slices.Clone(lines), 2, 3), "entry 2: seq"},
		"reordered":           {[]string{lines[0], lines[2], lines[1], lines[3], lines[4]}, "entry 1: seq"},
		"repeated":            {[]string{lines[0], lines[0], lines[1], lines[2], lines[3]}, "entry 1: seq"},
		"cut off":             {lines[:4], "5 entries were signed and 4 are there"},
		"cut within":          {append(slices.Clone(lines[:4]), lines[4][:30]), "line 5"},
		"late":                {swap(1, `\"late\":false`, `\"late\":true`), "entry 1: late: it was changed"},
		"the last is changed": {swap(4, `\"late\":false`, `\"late\":true`), "the first 5 entries"},
		"message":             {swap(1, `"messageId":"m1"`, `"messageId":"m2"`), "entry 1: message"},
		"receipt":             {swap(1, i.receipts[1].JWS, i.receipts[2].JWS), "entry 1: receipt"},
		"signature":           {swap(1, i.receipts[1].JWS, i.receipts[1].JWS[:len(i.receipts[1].JWS)-4]+"AAAA"), "entry 1: receipt: signature"},
		"a member more":       {swap(1, `{\"at\"`, `{\"aa\":1,\"at\"`), "entry 1: not a well-formed"},
	} {
		_, err := read(tt.lines, c)
		if err == nil || !strings.Contains(err.Error(), tt.names) || !errors.Is(err, verify.ErrLog) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := i.rules.Erase(t.Context(), i.Hotel.ID, authority.ByOperator(), "guest-7"); err != nil {
		t.Fatal(err)
	}
	lines = i.exported(t)
	lines[4] += "\n"
	if sum, err := read(lines, c); err != nil || sum.Erased != 5 || sum.Receipts != 0 {
		t.Errorf("%+v, %v", sum, err)
	}
}
