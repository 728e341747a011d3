package verify

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority/canonical"
	"countersign.dev/authority/receiptlog"
	"golang.org/x/mod/sumdb/tlog"
)

// theft is a log of one receipt, the key of which was stolen and revoked at noon.
// The thief has the keys k1 and k3, and writes what he likes; k2 is the Brand's.
type theft struct {
	*book
	other   signer // k2
	keys    Keys   // as somebody saved them before the theft was known: all three
	archive Archive
}

func newTheft(t *testing.T) theft {
	b, other, third := newBook(t), newSigner(t), newSigner(t)
	b.write(b.says(nil), nil)
	keys, err := ParseKeys([]byte(`{"keys":[` + other.jwk(`,"kid":"k2"`) + `,` + b.key.jwk(`,"kid":"k1"`) + `,` + third.jwk(`,"kid":"k3"`) + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	revoked := func(at time.Time) string { return `"revoked":{"revoked_at":"` + at.Format(time.RFC3339) + `"}` }
	archive, err := ParseArchive([]byte(`{"keys":[` + b.key.jwk(`,"kid":"k1",`+revoked(noon)) + `,` + third.jwk(`,"kid":"k3",`+revoked(noon.Add(-time.Hour))) + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	return theft{b, other, keys, archive}
}

// logged is the receipt under a checkpoint.
func (b theft) logged(c LogCheckpoint) *Logged {
	c.Size, c.Root = 1, b.edge.Root()
	return &Logged{Entry: b.texts[0], Salt: []byte("salt"), Checkpoint: c}
}

// wire.md §2: a thief's key passes for another one neither by naming none nor by the
// word of a second key that was stolen.
func TestAStolenKeyPassesForNoOther(t *testing.T) {
	b := newTheft(t)
	claims := marshal(t, receiptlog.Checkpoint{Log: "l", Size: 1, Root: receiptlog.Text(b.edge.Root()), TS: receiptlog.At(noon.Add(-time.Minute))})
	const typ = "countersign-checkpoint+jws"
	nameless := b.sign(typ, "", claims)
	if _, _, err := Checkpoint(b.keys, nameless, "l", noon); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("a checkpoint without a kid: %v", err)
	}
	// The archive reads it, and says that it is worth nothing.
	c, _, err := b.archive.Checkpoint(Keys{}, b.sign(typ, `,"kid":"k1"`, claims), "l", noon)
	if err != nil || c.KID != "k1" || !errors.Is(b.archive.Vouches(c), ErrRevokedKey) {
		t.Errorf("%+v, %v", c, err)
	}
	other := b.other.sign(t, fmt.Sprintf(`{"alg":"ES256","typ":%q,"kid":"k2"}`, typ), claims)
	if c, _, err := b.archive.Checkpoint(b.keys, other, "l", noon); err != nil || b.archive.Vouches(c) != nil {
		t.Errorf("%+v, %v", c, err)
	}
	form, err := canonical.Of(receiptlog.Task{GrantID: "g", User: "u", PA: "a", Brand: brandURL, ContextID: "c", Count: 1, Root: receiptlog.Text(tlog.RecordHash(payloadIn(b.jws[0]))), TS: receiptlog.At(noon)})
	if err != nil {
		t.Fatal(err)
	}
	task, opts := string(form), ReceiptOptions{Brand: brandURL, Now: noon}
	good := b.sign("pact-task-receipt+jws", `,"kid":"k1"`, task)
	if _, _, err := TaskReceipt(b.keys, good, b.jws, opts); err != nil {
		t.Fatal(err)
	}
	if _, _, err := TaskReceipt(b.keys, b.sign("pact-task-receipt+jws", "", task), b.jws, opts); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("a task receipt without a kid: %v", err)
	}
	opts.Archive, opts.Logged = b.archive, b.logged(LogCheckpoint{KID: "k2", At: noon.Add(-time.Minute)})
	if _, report, err := TaskReceipt(b.keys, good, b.jws, opts); !errors.Is(err, ErrRevokedKey) || len(report) != 1 {
		t.Errorf("a task receipt of a revoked key: %v", err)
	}
}

// wire.md §2: what a revoked key signed counts where another key signed the log
// before, or a witness saw it before; the thief's own word never does.
func TestWhatVouchesForAStolenKey(t *testing.T) {
	b := newTheft(t)
	before, after := noon.Add(-2*time.Hour), noon.Add(time.Second)
	between := noon.Add(-time.Minute) // k3 was revoked by then, k1 was not
	for name, tt := range map[string]struct {
		checkpoint LogCheckpoint
		want       error
	}{
		"another key":                               {LogCheckpoint{KID: "k2", At: before}, nil},
		"another key, later":                        {LogCheckpoint{KID: "k2", At: after}, ErrRevokedKey},
		"another key, at that moment":               {LogCheckpoint{KID: "k2", At: noon}, ErrRevokedKey},
		"no key":                                    {LogCheckpoint{At: before}, ErrRevokedKey},
		"its own":                                   {LogCheckpoint{KID: "k1", At: before}, ErrRevokedKey},
		"a second stolen one":                       {LogCheckpoint{KID: "k3", At: before}, ErrRevokedKey},
		"its own, witnessed before":                 {LogCheckpoint{KID: "k1", At: before, Witnessed: before}, nil},
		"its own, witnessed later":                  {LogCheckpoint{KID: "k1", At: before, Witnessed: after}, ErrRevokedKey},
		"its own, witnessed at that moment":         {LogCheckpoint{KID: "k1", At: before, Witnessed: noon}, ErrRevokedKey},
		"a second stolen one, witnessed before":     {LogCheckpoint{KID: "k3", At: before, Witnessed: before}, nil},
		"a second stolen one, witnessed in between": {LogCheckpoint{KID: "k3", At: before, Witnessed: between}, ErrRevokedKey},
		"another key, witnessed later":              {LogCheckpoint{KID: "k2", At: before, Witnessed: after}, nil},
		"another key, both later":                   {LogCheckpoint{KID: "k2", At: after, Witnessed: after}, ErrRevokedKey},
	} {
		opts := ReceiptOptions{Brand: brandURL, Now: noon, Archive: b.archive, Logged: b.logged(tt.checkpoint)}
		if _, _, err := Receipt(b.keys, b.jws[0], nil, opts); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
		_, report, err := WholeLog(b.keys, strings.NewReader(b.lines[0]), b.archive, opts.Logged.Checkpoint)
		if !errors.Is(err, tt.want) || tt.want != nil && len(report) == 0 {
			t.Errorf("%s: the whole log: %v", name, err)
		}
	}
	// Nor of a receipt whose key is good, that it is in the log.
	b.write(b.says(nil), nil)
	good := b.other.sign(t, `{"alg":"ES256","typ":"pact-receipt+jws","kid":"k2"}`, b.says(nil))
	opts := ReceiptOptions{Brand: brandURL, Now: noon, Archive: b.archive, Logged: b.logged(LogCheckpoint{KID: "k1", At: before})}
	if _, report, err := Receipt(b.keys, good, nil, opts); !errors.Is(err, ErrRevokedKey) || report[len(report)-1].Name != "checkpoint" {
		t.Errorf("%v: %v", err, report)
	}
}
