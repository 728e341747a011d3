package check

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"countersign.dev/authority/canonical"
	"countersign.dev/authority/receiptlog"
	"golang.org/x/mod/sumdb/tlog"
)

// signForm signs what has a canonical form.
func (p party) signForm(typ string, v any) (jws, payload string) {
	p.t.Helper()
	form, err := canonical.Of(v)
	if err != nil {
		p.t.Fatal(err)
	}
	var claims map[string]any
	if err := json.Unmarshal(form, &claims); err != nil {
		p.t.Fatal(err)
	}
	return p.sign(typ, claims), string(form) // encoding/json sorts members, as RFC 8785 does
}

// signedLog is a log of two receipts as it was saved.
type signedLog struct {
	scene
	receipts, claims, lines, entries []string
	edge                             receiptlog.Edge
	stored                           [][]byte
}

func newLog(t *testing.T) *signedLog {
	l := &signedLog{scene: newScene(t)}
	previous := ""
	for seq := range int64(2) {
		ts := []string{"2026-11-20T12:00:00.000Z", "2026-11-20T12:00:00.001Z"}[seq]
		jws, claims := l.brand.signForm("pact-receipt+jws", receiptlog.Claims{
			GrantID: "g1", User: "guest-1", PA: aria, Brand: "https://harbor.example", ScopesUsed: []string{}, Actions: []receiptlog.Action{}, TS: ts,
		})
		salt := []byte("0123456789abcdef")
		message := []string{"m0", "m1"}[seq]
		text, leaf, err := receiptlog.Entry{
			Seq: seq, Brand: "harbor-hotel", Direction: receiptlog.Inbound, Grant: "g1", Token: "t1", At: ts, Previous: previous,
			Message: receiptlog.SealMessage(salt, "talk", message), Receipt: receiptlog.SealReceipt(salt, jws[:strings.LastIndex(jws, ".")]),
		}.Leaf()
		if err != nil {
			t.Fatal(err)
		}
		previous = receiptlog.Text(leaf)
		var beside []byte
		for _, h := range l.edge.Append(leaf) {
			beside = append(beside, h[:]...)
		}
		l.stored = append(l.stored, beside)
		line, _ := json.Marshal(map[string]string{"entry": string(text), "salt": base64.RawURLEncoding.EncodeToString(salt), "contextId": "talk", "messageId": message, "jws": jws})
		l.receipts, l.claims = append(l.receipts, jws), append(l.claims, claims)
		l.lines, l.entries = append(l.lines, string(line)+"\n"), append(l.entries, string(text))
	}
	return l
}

func (l *signedLog) checkpoint(size int64, root tlog.Hash) string {
	jws, _ := l.brand.signForm("countersign-checkpoint+jws", receiptlog.Checkpoint{
		Log: "https://harbor.example/oauth/log", Size: size, Root: receiptlog.Text(root), TS: "2026-11-20T12:01:00.000Z",
	})
	return jws
}

func hashesJSON(hashes ...tlog.Hash) string {
	var texts []string
	for _, h := range hashes {
		texts = append(texts, receiptlog.Text(h))
	}
	raw, _ := json.Marshal(map[string]any{"hashes": texts})
	return string(raw)
}

// R79 in part: a receipt is judged from saved files alone, with its place in the log.
func TestAReceiptIsJudgedFromFiles(t *testing.T) {
	l := newLog(t)
	jwks := l.file("jwks", string(l.brand.jwks()))
	at := []string{"--jwks", jwks, "--audience", "https://harbor.example"}
	leaf := func(i int) tlog.Hash { return tlog.RecordHash([]byte(l.entries[i])) }
	entry := func(i int) string {
		return l.file("entry", strings.Replace(l.lines[i], "\n", "", 1))
	}
	good := `{"jws":"` + l.receipts[1] + `","claims":` + l.claims[1] + `}`
	inLog := []string{"--entry", entry(1), "--inclusion", l.file("inclusion", hashesJSON(leaf(0))), "--checkpoint", l.file("checkpoint", l.checkpoint(2, l.edge.Root())), "--issuer", "https://harbor.example/oauth"}
	for name, tt := range map[string]struct {
		in   string
		more []string
		code int
		says string
	}{
		"bare":              {l.receipts[1], nil, exitGood, "It holds."},
		"with claims":       {good, nil, exitGood, "✓ beside"},
		"in metadata":       {`{"pact.receipt":` + good + `}`, nil, exitGood, "✓ beside"},
		"in the log":        {good, inLog, exitGood, "✓ inclusion"},
		"altered":           {strings.Replace(good, "guest-1", "guest-2", 1), nil, exitRefused, "Refused: claims differ"},
		"another's entry":   {`{"jws":"` + l.receipts[0] + `"}`, inLog, exitRefused, "of another receipt"},
		"another signature": {l.receipts[1][:len(l.receipts[1])-8] + "AAAAAAAA", nil, exitRefused, "signature does not verify"},
		"another Brand":     {good, []string{"--audience", "https://other.example"}, exitRefused, "of another brand"},
		"half a proof":      {good, inLog[:2], exitUnknown, ""},
		"nothing":           {"", nil, exitUnknown, ""},
		"no jws":            {"{}", nil, exitUnknown, ""},
	} {
		code, out, errs := verifyCommand(tt.in, append(append([]string{"receipt", "-"}, at...), tt.more...)...)
		if code != tt.code || !strings.Contains(out, tt.says) {
			t.Errorf("%s: exit %d\n%s%s", name, code, out, errs)
		}
	}
	if len(*l.requests) != 0 {
		t.Errorf("it asked for %v", *l.requests)
	}
}

// R75: a log of an export, and a checkpoint, against one that was kept.
func TestALogIsJudgedFromFiles(t *testing.T) {
	l := newLog(t)
	at := []string{"--jwks", l.file("jwks", string(l.brand.jwks())), "--issuer", "https://harbor.example/oauth"}
	one := receiptlog.Edge{}
	one.Append(tlog.RecordHash([]byte(l.entries[0])))
	kept, now := l.checkpoint(1, one.Root()), l.checkpoint(2, l.edge.Root())
	forked := l.checkpoint(1, tlog.RecordHash([]byte("another")))
	proof := l.file("consistency", hashesJSON(tlog.RecordHash([]byte(l.entries[1]))))
	larger, empty := l.file("larger", now), l.file("empty", l.checkpoint(0, (&receiptlog.Edge{}).Root()))
	answered := l.file("answered", `{"error":"not_found"}`) // by {issuer}/log/consistency, where there is no proof
	all := strings.Join(l.lines, "")
	for name, tt := range map[string]struct {
		in   string
		more []string
		code int
		says string
	}{
		"whole":           {all, nil, exitGood, "2 entries"},
		"as it was kept":  {all, []string{"--checkpoint", l.file("kept", kept)}, exitGood, "gives what was signed"},
		"all that was":    {all, []string{"--checkpoint", l.file("all", `{"jws":"`+kept+`"}`+"\n"+`{"jws":"`+now+`"}`+"\n")}, exitGood, "gives what was signed"},
		"cut off":         {l.lines[0], []string{"--checkpoint", l.file("now", now)}, exitRefused, "2 entries were signed and 1 are there"},
		"written anew":    {all, []string{"--checkpoint", l.file("forked", forked)}, exitRefused, "not those that were signed"},
		"reordered":       {l.lines[1] + l.lines[0], nil, exitRefused, "entry 0: seq"},
		"a checkpoint":    {now, nil, exitGood, "✓ root"},
		"it has grown":    {now, []string{"--checkpoint", l.file("kept", kept), "--consistency", proof}, exitGood, "✓ consistency"},
		"it was forked":   {now, []string{"--checkpoint", l.file("forked", forked), "--consistency", proof}, exitRefused, "✗ consistency"},
		"no proof":        {now, []string{"--checkpoint", l.file("kept", kept)}, exitUnknown, ""},
		"no proof in it":  {now, []string{"--checkpoint", l.file("kept", kept), "--consistency", answered}, exitUnknown, ""},
		"it is the same":  {kept, []string{"--checkpoint", l.file("kept", kept)}, exitGood, "✓ consistency"},
		"another as long": {kept, []string{"--checkpoint", l.file("forked", forked)}, exitRefused, "two logs of 1 entries"},
		"it has shrunk":   {kept, []string{"--checkpoint", larger}, exitRefused, "it had 2 entries and has 1"},
		"shrunk to none":  {l.checkpoint(0, (&receiptlog.Edge{}).Root()), []string{"--checkpoint", larger}, exitRefused, "it had 2 entries and has 0"},
		"shrunk, asked":   {kept, []string{"--checkpoint", larger, "--consistency", answered}, exitRefused, "it had 2 entries and has 1"},
		"it has begun":    {now, []string{"--checkpoint", empty}, exitGood, "✓ consistency"},
		"begun, asked":    {now, []string{"--checkpoint", empty, "--consistency", answered}, exitGood, "✓ consistency"},
		"begun, whole":    {all, []string{"--checkpoint", empty}, exitGood, "gives what was signed"},
		"none as before":  {l.checkpoint(0, (&receiptlog.Edge{}).Root()), []string{"--checkpoint", empty}, exitGood, "✓ consistency"},
		"another log":     {now, []string{"--issuer", "https://other.example"}, exitRefused, "✗ log"},
		"nothing":         {"", nil, exitUnknown, ""},
	} {
		code, out, errs := verifyCommand(tt.in, append(append([]string{"log", "-"}, at...), tt.more...)...)
		if code != tt.code || !strings.Contains(out, tt.says) {
			t.Errorf("%s: exit %d\n%s%s", name, code, out, errs)
		}
	}
}

// M8, P39: a saved card, and the metadata beside it.
func TestACardIsJudgedFromFiles(t *testing.T) {
	s := newScene(t)
	const card = `{"name":"Harbor Hotel","supportedInterfaces":[{"url":"https://harbor.example"}],"securitySchemes":{
		"paJwt":{"httpAuthSecurityScheme":{"scheme":"Bearer","bearerFormat":"JWT"}},
		"userDelegation":{"oauth2SecurityScheme":{"flows":{"deviceCode":{"deviceAuthorizationUrl":"https://harbor.example/oauth/d",
			"tokenUrl":"https://harbor.example/oauth/t","scopes":{"stay:read":"See your bookings"}}}}}},
		"securityRequirements":[{"schemes":{"paJwt":{"list":[]}}},{"schemes":{"paJwt":{"list":[]},"userDelegation":{"list":[]}}}]}`
	const metadata = `{"issuer":"https://harbor.example/oauth","device_authorization_endpoint":"https://harbor.example/oauth/d","token_endpoint":"https://harbor.example/oauth/t","jwks_uri":"https://harbor.example/oauth/jwks.json"}`
	beside := []string{"--metadata", s.file("metadata", metadata)}
	for name, tt := range map[string]struct {
		in   string
		more []string
		code int
		says string
	}{
		"good":                {card, nil, exitGood, "– metadata"},
		"with metadata":       {card, beside, exitGood, "✓ endpoints"},
		"one requirement":     {strings.Replace(card, `{"schemes":{"paJwt":{"list":[]}}},`, "", 1), nil, exitRefused, "✗ requirements"},
		"two names":           {strings.Replace(card, `"paJwt":{"http`, `"platformJwt":{"httpAuthSecurityScheme":{"scheme":"Bearer","bearerFormat":"JWT"}},"paJwt":{"http`, 1), nil, exitRefused, "✗ identity"},
		"elsewhere":           {strings.Replace(card, "https://harbor.example/oauth/t", "https://evil.example/t", 1), nil, exitRefused, "✗ origin"},
		"metadata of another": {strings.Replace(card, "oauth/d", "oauth/e", 1), beside, exitRefused, "✗ endpoints"},
		"no card":             {"<html>", nil, exitRefused, "✗ card"},
	} {
		code, out, errs := verifyCommand(tt.in, append([]string{"card", "-"}, tt.more...)...)
		if code != tt.code || !strings.Contains(out, tt.says) {
			t.Errorf("%s: exit %d\n%s%s", name, code, out, errs)
		}
	}
}
