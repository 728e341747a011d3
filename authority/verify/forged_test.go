package verify

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority/receiptlog"
	"golang.org/x/mod/sumdb/tlog"
)

// book is a log whose writer has the Brand's key and writes what he likes. What is
// wrong in it nobody can see but by the rule that forbids it.
type book struct {
	t     testing.TB
	key   signer
	keys  Keys
	edge  receiptlog.Edge
	last  string
	lines []string
	texts []string // of the entries
	jws   []string
}

func newBook(t testing.TB) *book {
	t.Helper()
	b := &book{t: t, key: newSigner(t)}
	var err error
	if b.keys, err = ParseKeys([]byte(`{"keys":[` + b.key.jwk(`,"kid":"k1"`) + `]}`)); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *book) sign(typ, kid string, claims string) string {
	b.t.Helper()
	return b.key.sign(b.t, fmt.Sprintf(`{"alg":"ES256","typ":%q%s}`, typ, kid), claims)
}

// says are the claims of a good receipt, with changes.
func (b *book) says(change func(*receiptlog.Claims)) string {
	b.t.Helper()
	c := receiptlog.Claims{GrantID: "g", User: "u", PA: "a", Brand: brandURL, ScopesUsed: []string{"s"}, Actions: []receiptlog.Action{{Tool: "look"}}, TS: receiptlog.At(noon)}
	if change != nil {
		change(&c)
	}
	payload, err := c.Payload()
	if err != nil {
		b.t.Fatal(err)
	}
	return string(payload)
}

// write adds a receipt, and its line as change makes it.
func (b *book) write(claims string, change func(e *receiptlog.Entry, line map[string]string)) {
	b.t.Helper()
	jws := b.sign("pact-receipt+jws", `,"kid":"k1"`, claims)
	salt, message := []byte("salt"), fmt.Sprintf("m%d", b.edge.Size)
	e := receiptlog.Entry{
		Seq: b.edge.Size, Brand: "b", Direction: receiptlog.Inbound, Grant: "g", Token: "t", At: receiptlog.At(noon), Previous: b.last,
		Message: receiptlog.SealMessage(salt, "c", message), Receipt: receiptlog.SealReceipt(salt, signedPart(jws)),
	}
	line := map[string]string{"salt": encode(salt), "jws": jws, "contextId": "c", "messageId": message}
	if change != nil {
		change(&e, line)
	}
	text, leaf, err := e.Leaf()
	if err != nil {
		b.t.Fatal(err)
	}
	line["entry"] = string(text)
	b.edge.Append(leaf)
	b.last = receiptlog.Text(leaf)
	b.lines, b.texts, b.jws = append(b.lines, marshal(b.t, line)+"\n"), append(b.texts, string(text)), append(b.jws, jws)
}

// whole verifies the log as it was written, every root of which its writer signed.
func (b *book) whole() error {
	_, _, err := WholeLog(b.keys, strings.NewReader(strings.Join(b.lines, "")), Archive{}, LogCheckpoint{Size: b.edge.Size, Root: b.edge.Root()})
	return err
}

// R74: a log that is one tree, whose writer signed its root, is refused all the same
// where an entry is not of the receipt beside it; the error names the member.
func TestALogIsOfItsReceipts(t *testing.T) {
	good := newBook(t)
	for range 3 {
		good.write(good.says(nil), nil)
	}
	if err := good.whole(); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		claims func(*receiptlog.Claims)
		line   func(*receiptlog.Entry, map[string]string)
		names  string
	}{
		"grant":    {nil, func(e *receiptlog.Entry, _ map[string]string) { e.Grant = "other" }, "grant"},
		"time":     {nil, func(e *receiptlog.Entry, _ map[string]string) { e.At = receiptlog.At(noon.Add(time.Second)) }, "at"},
		"place":    {nil, func(e *receiptlog.Entry, _ map[string]string) { e.Seq = 7 }, "seq"},
		"follower": {nil, func(e *receiptlog.Entry, _ map[string]string) { e.Previous = "" }, "previous"},
		"message":  {nil, func(_ *receiptlog.Entry, l map[string]string) { l["messageId"] = "m2" }, "message: of another"},
		"context":  {nil, func(_ *receiptlog.Entry, l map[string]string) { l["contextId"] = "c2" }, "message: of another"},
		"receipt": {nil, func(e *receiptlog.Entry, _ map[string]string) {
			e.Receipt = receiptlog.SealReceipt([]byte("salt"), "x")
		}, "receipt: of another"},
		"brand":      {nil, func(e *receiptlog.Entry, _ map[string]string) { e.Brand = "b2" }, "brand"},
		"half of it": {nil, func(_ *receiptlog.Entry, l map[string]string) { delete(l, "jws") }, "jws"},
		"its salt": {nil, func(_ *receiptlog.Entry, l map[string]string) {
			delete(l, "jws")
			delete(l, "contextId")
			delete(l, "messageId")
		}, "jws"},
		"its ids":    {nil, func(_ *receiptlog.Entry, l map[string]string) { delete(l, "jws"); delete(l, "salt") }, "jws"},
		"salt":       {nil, func(_ *receiptlog.Entry, l map[string]string) { l["salt"] = "c2FsdA!" }, "salt"},
		"no tool":    {func(c *receiptlog.Claims) { c.Actions[0].Tool = "" }, nil, "receipt"},
		"no user":    {func(c *receiptlog.Claims) { c.User = "" }, nil, "receipt"},
		"not a hash": {func(c *receiptlog.Claims) { c.Actions[0].ArgsHash = "x" }, nil, "receipt"},
	} {
		b := newBook(t)
		b.write(b.says(nil), nil)
		b.write(b.says(tt.claims), tt.line)
		if err := b.whole(); !errors.Is(err, ErrLog) || !strings.Contains(err.Error(), "entry 1: "+tt.names) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// An erased entry, too, is of the Brand.
	bare := func(e *receiptlog.Entry, l map[string]string) { e.Brand = "b2"; clear(l) }
	erased := newBook(t)
	erased.write(erased.says(nil), nil)
	erased.write(erased.says(nil), bare)
	if err := erased.whole(); !errors.Is(err, ErrLog) || !strings.Contains(err.Error(), "entry 1: brand") {
		t.Errorf("erased, of another Brand: %v", err)
	}
	twice := newBook(t)
	twice.write(twice.says(nil), nil)
	twice.lines[0] = strings.Replace(twice.lines[0], `{`, `{"messageId":"other",`, 1)
	if err := twice.whole(); !errors.Is(err, ErrMalformed) {
		t.Errorf("a member twice: %v", err)
	}
	// Fewer lines than were signed, and other ones.
	less := newBook(t)
	less.write(less.says(nil), nil)
	less.write(less.says(nil), nil)
	less.lines = less.lines[:1]
	if err := less.whole(); !errors.Is(err, ErrLog) {
		t.Errorf("one line less: %v", err)
	}
}

// R74: nobody shows of two receipts for one message the one he likes. Erased lines
// are of messages that nobody knows; and a message is a grant's and a conversation's.
func TestAMessageHasOneReceipt(t *testing.T) {
	of := func(context, message string) func(*receiptlog.Entry, map[string]string) {
		return func(e *receiptlog.Entry, l map[string]string) {
			e.Message = receiptlog.SealMessage([]byte("salt"), context, message)
			l["contextId"], l["messageId"] = context, message
		}
	}
	other := func(c *receiptlog.Claims) { c.Actions[0].Tool = "book" }
	b := newBook(t)
	b.write(b.says(nil), of("c", "m"))
	b.write(b.says(nil), of("c2", "m"))
	b.write(b.says(nil), of("c", "m2"))
	b.write(b.says(nil), of("c,", "m"))
	b.write(b.says(nil), of("c", ",m"))
	b.write(b.says(func(c *receiptlog.Claims) { c.GrantID = "g2" }), func(e *receiptlog.Entry, l map[string]string) {
		of("c", "m")(e, l)
		e.Grant = "g2"
	})
	for range 2 {
		b.write(b.says(nil), func(_ *receiptlog.Entry, l map[string]string) { clear(l) })
	}
	if err := b.whole(); err != nil {
		t.Fatal(err)
	}
	b.write(b.says(other), of("c", "m"))
	if err := b.whole(); !errors.Is(err, ErrLog) || !strings.Contains(err.Error(), "entry 8: message: it has a receipt") {
		t.Errorf("two receipts of one message: %v", err)
	}
}

// The receipts of a Brand that moved name two interfaces. Whether it moved its log
// cannot tell: it is flagged, and where.
func TestALogSaysWhereItsBrandMoved(t *testing.T) {
	b := newBook(t)
	there := func(c *receiptlog.Claims) { c.Brand = "https://moved.example" }
	for _, change := range []func(*receiptlog.Claims){nil, nil, there, there} {
		b.write(b.says(change), nil)
	}
	flags := func(lines []string) (found []string) {
		_, report, err := WholeLog(b.keys, strings.NewReader(strings.Join(lines, "")), Archive{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range report {
			if c.Result == Flagged {
				found = append(found, c.Name+": "+c.Detail)
			}
		}
		return found
	}
	if got := flags(b.lines[:2]); got != nil {
		t.Error(got)
	}
	if got := flags(b.lines); len(got) != 1 || !strings.HasPrefix(got[0], "brand: ") || !strings.Contains(got[0], "1 times, the last from entry 2 on: https://moved.example") {
		t.Error(got)
	}
}

// A receipt names its key, its five names, and what was done: one that is signed and
// says less is none.
func TestAReceiptLeavesNothingOut(t *testing.T) {
	b := newBook(t)
	opts := ReceiptOptions{Brand: brandURL, Now: noon}
	for name, tt := range map[string]struct {
		kid    string
		change func(*receiptlog.Claims)
		want   error
	}{
		"good":       {`,"kid":"k1"`, nil, nil},
		"no kid":     {``, nil, ErrUnknownKey},
		"no user":    {`,"kid":"k1"`, func(c *receiptlog.Claims) { c.User = "" }, ErrClaims},
		"no tool":    {`,"kid":"k1"`, func(c *receiptlog.Claims) { c.Actions[0].Tool = "" }, ErrClaims},
		"not a hash": {`,"kid":"k1"`, func(c *receiptlog.Claims) { c.Actions[0].ArgsHash = "x" }, ErrClaims},
	} {
		jws := b.sign("pact-receipt+jws", tt.kid, b.says(tt.change))
		if _, _, err := Receipt(b.keys, jws, nil, opts); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// R75, R78: a checkpoint says a size that can be, a root, and when; not of the
// future.
func TestACheckpointLeavesNothingOut(t *testing.T) {
	b := newBook(t)
	const log = brandIssuer + "/log"
	root := receiptlog.Text(b.edge.Root())
	for name, tt := range map[string]struct {
		change map[string]any
		log    string
		want   error
	}{
		"good":            {nil, log, nil},
		"no log asked":    {nil, "", ErrOptions},
		"another log":     {map[string]any{"log": "https://elsewhere.example/log"}, log, ErrIssuer},
		"less than none":  {map[string]any{"size": -1}, log, ErrMalformed},
		"no number":       {map[string]any{"size": "3"}, log, ErrMalformed},
		"not a hash":      {map[string]any{"root": root[1:]}, log, ErrMalformed},
		"no root":         {map[string]any{"root": ""}, log, ErrIncomplete},
		"of the future":   {map[string]any{"ts": receiptlog.At(noon.Add(time.Hour))}, log, ErrNotYetValid},
		"to the second":   {map[string]any{"ts": noon.Format(time.RFC3339)}, log, ErrClaims},
		"a log of no one": {map[string]any{"log": ""}, log, ErrIncomplete},
	} {
		claims := map[string]any{"log": log, "size": 0, "root": root, "ts": receiptlog.At(noon)}
		for k, v := range tt.change {
			claims[k] = v
		}
		c, _, err := Checkpoint(b.keys, b.sign("countersign-checkpoint+jws", `,"kid":"k1"`, marshal(t, claims)), tt.log, noon)
		if !errors.Is(err, tt.want) || err != nil && c.Log != "" {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}

// An entry has one form, though a tree can be made over any.
func TestAnEntryHasOneForm(t *testing.T) {
	b := newBook(t)
	b.write(b.says(nil), nil)
	text := b.texts[0]
	for name, bad := range map[string]string{
		"a space": strings.Replace(text, ",", ", ", 1), "a member more": strings.Replace(text, "{", `{"aa":1,`, 1),
		"a member twice": strings.Replace(text, "{", `{"at":"x",`, 1), "another spelling": strings.Replace(text, `"at"`, `"At"`, 1),
		"before the first": strings.Replace(text, `"seq":0`, `"seq":-1`, 1), "no object": `7`, "nothing": ``,
	} {
		l := Logged{Entry: bad, Checkpoint: LogCheckpoint{Size: 1, Root: tlog.RecordHash([]byte(bad))}}
		if _, _, err := Inclusion(l, ""); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	l := Logged{Entry: text, Checkpoint: LogCheckpoint{Size: 1, Root: b.edge.Root()}}
	if _, _, err := Inclusion(l, ""); err != nil {
		t.Error(err)
	}
	// One that says to be behind the end, or of no receipt, with the reason.
	l.Checkpoint.Size = 0
	if _, _, err := Inclusion(l, ""); !errors.Is(err, ErrProof) || !strings.Contains(err.Error(), "entry 0 of 0") {
		t.Error(err)
	}
	l.Checkpoint.Size = 1
	if _, _, err := Inclusion(l, b.jws[0]); !errors.Is(err, ErrProof) || !strings.Contains(err.Error(), "without the salt") {
		t.Error(err)
	}
	// What the entry says of the receipt is what the receipt says, sealed or not.
	for name, change := range map[string]func(*receiptlog.Entry){
		"grant": func(e *receiptlog.Entry) { e.Grant = "other" },
		"at":    func(e *receiptlog.Entry) { e.At = receiptlog.At(noon.Add(time.Second)) },
		"":      nil,
	} {
		b := newBook(t)
		b.write(b.says(nil), func(e *receiptlog.Entry, _ map[string]string) {
			if change != nil {
				change(e)
			}
		})
		l := Logged{Entry: b.texts[0], Salt: []byte("salt"), Checkpoint: LogCheckpoint{Size: 1, Root: b.edge.Root(), KID: "k1"}}
		_, _, err := Inclusion(l, b.jws[0])
		if name == "" && err != nil || name != "" && (!errors.Is(err, ErrProof) || !strings.Contains(err.Error(), name+": the receipt is of another")) {
			t.Errorf("%s: %v", name, err)
		}
		_, _, ofReceipt := Receipt(b.keys, b.jws[0], nil, ReceiptOptions{Brand: brandURL, Now: noon, Logged: &l})
		if !errors.Is(ofReceipt, errors.Unwrap(err)) {
			t.Errorf("%s: %v", name, ofReceipt)
		}
	}
	// A log that is shorter than it was: nobody needs hashes to see that.
	older, newer := LogCheckpoint{Log: "l", Size: 2}, LogCheckpoint{Log: "l", Size: 1}
	if _, err := Consistency(older, newer, nil); !errors.Is(err, ErrProof) || !strings.Contains(err.Error(), "it had 2 entries and has 1") {
		t.Error(err)
	}
}

// A task receipt is of one conversation of the Brand asked about, and of receipts
// each of which holds and is of the same grant.
func TestATaskReceiptIsOfItsReceipts(t *testing.T) {
	b := newBook(t)
	var good, other receiptlog.Edge
	claims, foreign := b.says(nil), b.says(func(c *receiptlog.Claims) { c.GrantID = "other" })
	good.Append(tlog.RecordHash([]byte(claims)))
	other.Append(tlog.RecordHash([]byte(foreign)))
	of := func(text string) string { return b.sign("pact-receipt+jws", `,"kid":"k1"`, text) }
	task := func(root tlog.Hash, change map[string]any) string {
		says := map[string]any{"brand": brandURL, "contextId": "c", "count": 1, "grantId": "g", "pa": "a", "root": receiptlog.Text(root), "ts": receiptlog.At(noon), "user": "u"}
		for k, v := range change {
			says[k] = v
		}
		raw, err := json.Marshal(says)
		if err != nil {
			t.Fatal(err)
		}
		return b.sign("pact-task-receipt+jws", `,"kid":"k1"`, string(raw))
	}
	opts := ReceiptOptions{Brand: brandURL, Grant: "g", User: "u", Agent: "a", Now: noon}
	stranger := newSigner(t).sign(t, `{"alg":"ES256","typ":"pact-receipt+jws","kid":"k1"}`, claims)
	for name, tt := range map[string]struct {
		jws     string
		receipt string
		change  func(*ReceiptOptions)
		want    error
	}{
		"good":                             {task(good.Root(), nil), of(claims), nil, nil},
		"no Brand asked":                   {task(good.Root(), nil), of(claims), func(o *ReceiptOptions) { o.Brand = "" }, ErrOptions},
		"another Brand":                    {task(good.Root(), nil), of(claims), func(o *ReceiptOptions) { o.Brand = "b" }, ErrBrand},
		"another grant":                    {task(good.Root(), nil), of(claims), func(o *ReceiptOptions) { o.Grant = "h" }, ErrGrant},
		"another user":                     {task(good.Root(), nil), of(claims), func(o *ReceiptOptions) { o.User = "v" }, ErrUser},
		"another agent":                    {task(good.Root(), nil), of(claims), func(o *ReceiptOptions) { o.Agent = "b" }, ErrNotTransferable},
		"a claim more":                     {task(good.Root(), map[string]any{"aa": 1}), of(claims), nil, ErrClaims},
		"says another Brand":               {task(good.Root(), map[string]any{"brand": "b"}), of(claims), nil, ErrBrand},
		"another's receipt, nothing asked": {task(other.Root(), nil), of(foreign), func(o *ReceiptOptions) { o.Grant, o.User, o.Agent = "", "", "" }, ErrGrant},
		"not a root":                       {task(good.Root(), map[string]any{"root": "x"}), of(claims), nil, ErrClaims},
		"two of one":                       {task(good.Root(), map[string]any{"count": 2}), of(claims), nil, ErrDiffers},
		"another's receipt":                {task(other.Root(), nil), of(foreign), nil, ErrGrant},
		"a receipt nobody signed":          {task(good.Root(), nil), stranger, nil, ErrSignature},
	} {
		asked := opts
		if tt.change != nil {
			tt.change(&asked)
		}
		if _, _, err := TaskReceipt(b.keys, tt.jws, []string{tt.receipt}, asked); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// wire.md §2: of a whole log, too, what a revoked key signed counts only where another
// key signed a checkpoint behind it, before the compromise.
func TestAWholeLogOfARevokedKey(t *testing.T) {
	b := newBook(t)
	b.write(b.says(nil), nil)
	one := b.edge.Root()
	b.write(b.says(nil), nil)
	fresh := newSigner(t)
	keys, err := ParseKeys([]byte(`{"keys":[` + fresh.jwk(`,"kid":"k2"`) + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	revoked := b.key.jwk(`,"kid":"k1","revoked":{"revoked_at":"` + noon.Format(time.RFC3339) + `"}`)
	archive, err := ParseArchive([]byte(`{"keys":[` + revoked + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		checkpoint LogCheckpoint
		want       error
	}{
		"by another key, before": {LogCheckpoint{Size: 2, Root: b.edge.Root(), KID: "k2", At: noon.Add(-time.Second)}, nil},
		"of less":                {LogCheckpoint{Size: 1, Root: one, KID: "k2", At: noon.Add(-time.Second)}, ErrRevokedKey},
		"by the same key":        {LogCheckpoint{Size: 2, Root: b.edge.Root(), KID: "k1", At: noon.Add(-time.Second)}, ErrRevokedKey},
		"not before":             {LogCheckpoint{Size: 2, Root: b.edge.Root(), KID: "k2", At: noon}, ErrRevokedKey},
	} {
		_, _, err := WholeLog(keys, strings.NewReader(strings.Join(b.lines, "")), archive, tt.checkpoint)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Of several, one that shows it is enough.
	good := LogCheckpoint{Size: 2, Root: b.edge.Root(), KID: "k2", At: noon.Add(-time.Second)}
	late := LogCheckpoint{Size: 2, Root: b.edge.Root(), KID: "k2", At: noon}
	for _, pair := range [][]LogCheckpoint{{good, late}, {late, good}} {
		if _, _, err := WholeLog(keys, strings.NewReader(strings.Join(b.lines, "")), archive, pair...); err != nil {
			t.Error(err)
		}
	}
	for name, bad := range map[string]string{
		"no time":   strings.Replace(revoked, noon.Format(time.RFC3339), "yesterday", 1),
		"no number": strings.Replace(revoked, `{"revoked_at"`, `{"at"`, 1),
		"no word":   b.key.jwk(`,"kid":"k1"`),
		"private":   strings.Replace(revoked, `"kid"`, `"d":"x","kid"`, 1),
		"long":      revoked + strings.Repeat(" ", maxKeySet),
	} {
		if _, err := ParseArchive([]byte(`{"keys":[` + bad + `]}`)); !errors.Is(err, ErrKeys) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, useless := range []string{
		strings.Replace(revoked, `"kid"`, `"use":"enc","kid"`, 1), strings.Replace(revoked, `"kid":"k1",`, "", 1),
	} {
		archive, err := ParseArchive([]byte(`{"keys":[` + useless + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		for _, kid := range []string{"k1", ""} {
			if _, ok := archive.find(kid); ok {
				t.Errorf("%q finds %s", kid, useless)
			}
		}
	}
}
