package e2e

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority/receiptlog"
	"github.com/go-jose/go-jose/v4"
	"golang.org/x/mod/sumdb/tlog"
)

// R79: what a real server signs is verified offline by a script of a hundred lines, in
// another language and with a library of others; and one bit or one claim that is not
// as it was is refused with the reason.
func TestTheScriptForBrandsVerifiesWhatWeSign(t *testing.T) {
	p := theProduct(t)
	hotel := p.hotel(t)
	f, g := p.saved(t, hotel), newGiven(t)
	at := []string{"--jwks", "jwks", "--issuer", hotel.Issuer, "--audience", hotel.InterfaceURL, "--agent", p.Agent.Issuer}
	commands := map[string][]string{
		"token":     append([]string{"token", "token"}, at...),
		"receipt":   append([]string{"receipt", "receipt"}, at...),
		"inclusion": append([]string{"receipt", "receipt", "--entry", "entry", "--inclusion", "inclusion", "--checkpoint", "newer"}, at...),
		"task":      append([]string{"task", "task", "--receipts", "receipts"}, at...),
		"log":       append([]string{"log", "newer", "--checkpoint", "older", "--consistency", "consistency"}, at...),
	}
	for name, args := range commands {
		if said, exit := g.run(f, args...); exit != 0 || !strings.HasPrefix(said, "It holds. {") {
			t.Errorf("%s: exit %d, %s", name, exit, said)
		}
	}
	if said, exit := g.run(f.but("token", f["token"]+"x"), commands["token"]...); exit != 1 || !strings.HasPrefix(said, "Refused: ") || strings.Count(said, "\n") != 1 {
		t.Errorf("a bad token: exit %d, %s", exit, said)
	}
	if said, exit := g.run(f, "token", "token", "--jwks", "jwks", "--wrong", "x"); exit != 1 {
		t.Errorf("an unknown flag: exit %d, %s", exit, said)
	}
	looks := manyBits(t, f, commands)
	looks = append(looks, otherClaims(t, f, commands)...)
	g.mustSay(looks)
}

// manyBits changes bits of everything that a proof rests on.
func manyBits(t *testing.T, f files, commands map[string][]string) []looked {
	t.Helper()
	var looks []looked
	for _, tt := range []struct{ command, file string }{
		{"token", "token"}, {"receipt", "receipt"}, {"task", "task"}, {"log", "newer"}, {"log", "older"},
	} {
		jws := f[tt.file]
		if strings.HasPrefix(jws, "{") {
			jws = jwsIn(t, jws)
		}
		// Four bits of the last character are of nothing, and yet it is not the same.
		last := strings.IndexByte(alphabet, jws[len(jws)-1])
		spelt := jws[:len(jws)-1] + alphabet[last^1:][:1]
		looks = append(looks, looked{tt.file + ", spelt otherwise", f.but(tt.file, spelt), commands[tt.command], "base64url: "})
		body := strings.IndexByte(jws, '.') + 1
		for i, flipped := range flips(jws) {
			l := looked{fmt.Sprintf("%s, byte %d", tt.file, i), f.but(tt.file, flipped), commands[tt.command], "Refused: "}
			if i >= body && i+1 < len(jws) && jws[i] != '.' && jws[i+1] != '.' && isBase64(flipped[i]) {
				l.want = "signature verification failed"
			}
			looks = append(looks, l)
		}
	}
	var line struct{ Entry, Salt string }
	if err := json.Unmarshal([]byte(f["entry"]), &line); err != nil {
		t.Fatal(err)
	}
	for i, flipped := range flips(line.Entry) {
		text := marshal(t, map[string]string{"entry": flipped, "salt": line.Salt})
		looks = append(looks, looked{fmt.Sprint("entry, byte ", i), f.but("entry", text), commands["inclusion"], "Refused: "})
	}
	for i, flipped := range flips(line.Salt) {
		text := marshal(t, map[string]string{"entry": line.Entry, "salt": flipped})
		looks = append(looks, looked{fmt.Sprint("salt, byte ", i), f.but("entry", text), commands["inclusion"], "Refused: "})
	}
	for name, command := range map[string]string{"inclusion": "inclusion", "consistency": "log"} {
		var proof struct{ Hashes []string }
		if err := json.Unmarshal([]byte(f[name]), &proof); err != nil || len(proof.Hashes) == 0 {
			t.Fatalf("%v: %s", err, f[name])
		}
		add := func(what, want string, hashes ...string) {
			text := marshal(t, map[string][]string{"hashes": hashes})
			looks = append(looks, looked{name + ", " + what, f.but(name, text), commands[command], want})
		}
		for i, hash := range proof.Hashes {
			for j, flipped := range flips(hash) {
				others := slices.Clone(proof.Hashes)
				others[i] = flipped
				add(fmt.Sprintf("hash %d, byte %d", i, j), "Refused: ", others...)
			}
		}
		add("one less", "a hash is missing", proof.Hashes[1:]...)
		add("one more", name, append([]string{proof.Hashes[0]}, proof.Hashes...)...)
	}
	return looks
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

func isBase64(c byte) bool { return strings.IndexByte(alphabet, c) >= 0 }

// otherClaims has a key that counts sign what the authority would not.
func otherClaims(t *testing.T, f files, commands map[string][]string) []looked {
	t.Helper()
	l := newLiar(t)
	f = f.but("jwks", l.among(f["jwks"]))
	var looks []looked
	add := func(name, command, want string, f files, args ...string) {
		looks = append(looks, looked{name, f, append(slices.Clone(commands[command]), args...), want})
	}
	token, receipt, task := f["token"], jwsIn(t, f["receipt"]), jwsIn(t, f["task"])
	claims := func(file, command, jws string, changes map[string]any) {
		for name, value := range changes {
			want := name
			if name == "extra" {
				want = "members"
			}
			add(fmt.Sprintf("%s with %s %v", file, name, value), command, "Refused: "+want, f.but(file, l.otherwise(jws, name, value)))
		}
	}
	var times struct{ Iat, Exp int64 }
	decode(t, token, 1, &times)
	as := func(at int64) []string { return []string{"--at", time.Unix(at, 0).UTC().Format(time.RFC3339)} }
	add("the liar's own token", "token", "", f.but("token", l.otherwise(token, "x", 1)))
	add("in the last second", "token", "", f, as(times.Exp-1)...)
	add("at exp", "token", "exp", f, as(times.Exp)...)
	add("a clock that is 30 s behind", "token", "", f, as(times.Iat-30)...)
	add("a clock that is more behind", "token", "iat", f, as(times.Iat-31)...)
	claims("token", "token", token, map[string]any{
		"iss": "https://others.example", "aud": "https://others.example", "client_id": "https://mallory.example", "sub": nil, "scope": "",
		"grant_id": nil, "jti": 7, "exp": "1e9", "iat": nil,
	})
	claims("token", "token", token, map[string]any{"aud": []string{"https://others.example"}, "exp": 1.5})
	claims("receipt", "receipt", receipt, map[string]any{
		"brand": "https://others.example", "grantId": nil, "user": "", "pa": 1, "scopesUsed": "bookings:read", "actions": []any{map[string]any{}},
		"ts": "2026-11-30T12:00:00Z", "extra": true,
	})
	claims("receipt", "receipt", receipt, map[string]any{"ts": "2999-11-30T12:00:00.000Z"})
	claims("task", "task", task, map[string]any{
		"brand": "https://others.example", "grantId": "other", "user": "other", "pa": "other", "count": 4, "ts": "today", "contextId": nil, "extra": 1,
	})
	older, newer := f["older"], f["newer"]
	claims("newer", "log", newer, map[string]any{"log": "https://others.example/log", "size": -1, "root": nil, "ts": nil, "extra": 1})

	var root receiptlog.Checkpoint
	decode(t, older, 1, &root)
	other := receiptlog.Text(tlog.RecordHash([]byte("other")))
	add("a task of another root", "task", "receipts, or their order", f.but("task", l.otherwise(task, "root", other)))
	lines := strings.Split(f["receipts"], "\n")
	add("a receipt left out", "task", "count", f.but("receipts", strings.Join(lines[1:], "\n")))
	lines[0], lines[1] = lines[1], lines[0]
	add("receipts in another order", "task", "receipts, or their order", f.but("receipts", strings.Join(lines, "\n")))
	add("another receipt's entry", "inclusion", "entry", f.but("receipt", lines[0]))
	add("a log that does not reach", "inclusion", "inclusion: entry", f.but("newer", older))
	add("a log of another root", "inclusion", "inclusion", f.but("newer", l.otherwise(newer, "root", other)))
	add("a fork", "log", "consistency", f.but("newer", l.otherwise(newer, "root", other)))
	add("another past", "log", "consistency", f.but("older", l.otherwise(older, "root", other)))
	add("a log that shrank", "log", "it had", f.but("newer", older).but("older", newer))
	add("two logs of one size", "log", "consistency", f.but("older", l.otherwise(newer, "root", other)))
	add("the same twice", "log", "", f.but("older", newer))
	add("no proof", "log", "no such file", f, "--consistency", "nowhere")
	add("no agent", "token", "agent", f, "--agent", "")
	return append(looks, otherHeads(t, f, commands["token"], l)...)
}

// otherHeads are tokens whose claims are good and whose heads are not.
func otherHeads(t *testing.T, f files, command []string, l liar) []looked {
	t.Helper()
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(f["token"], ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	typed := func() *jose.SignerOptions { return (&jose.SignerOptions{}).WithType("at+jwt") }
	nameless, stranger := l.key, newLiar(t).key
	nameless.KeyID, stranger.KeyID = "", "stranger"
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"liar","typ":"at+jwt"}`)) + "." + strings.Split(f["token"], ".")[1] + "."
	// An RSA key among the Brand's keys is not one for this script.
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	other := liar{t, jose.JSONWebKey{Key: rsaKey, KeyID: "rsa", Algorithm: "RS256", Use: "sig"}}
	f = f.but("jwks", other.among(f["jwks"]))
	var looks []looked
	for want, token := range map[string]string{
		"\"alg\"":         other.signs(payload, other.key, typed()),
		"header":          l.signs(payload, l.key, &jose.SignerOptions{}),
		"pact-receipt":    l.signs(payload, l.key, (&jose.SignerOptions{}).WithType("pact-receipt+jws")),
		"alg,jku,kid,typ": l.signs(payload, l.key, typed().WithHeader("jku", "https://mallory.example")),
		"multiple":        l.signs(payload, nameless, typed()),
		"no applicable":   l.signs(payload, stranger, typed()),
		"alg":             none,
	} {
		looks = append(looks, looked{"a head for " + want, f.but("token", token), command, want})
	}
	return looks
}

// R79: every proof of a log of up to seventeen entries leads the script to the same
// roots as our own tree.
func TestTheScriptForBrandsKnowsTheTree(t *testing.T) {
	const most = 17
	var stored []tlog.Hash
	reader := tlog.HashReaderFunc(func(at []int64) ([]tlog.Hash, error) {
		out := make([]tlog.Hash, len(at))
		for i, n := range at {
			out[i] = stored[n]
		}
		return out, nil
	})
	l, g := newLiar(t), newGiven(t)
	base := files{"jwks": l.among(`{"keys":[]}`)}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	texts := func(hashes []tlog.Hash) string {
		out := []string{}
		for _, h := range hashes {
			out = append(out, receiptlog.Text(h))
		}
		return marshal(t, map[string]any{"hashes": out})
	}
	var heads, receipts, entries []string
	for size := range int64(most + 1) {
		root, err := tlog.TreeHash(size, reader)
		must(err)
		heads = append(heads, l.says("countersign-checkpoint+jws", receiptlog.Checkpoint{
			Log: "https://a.example/log", Size: size, Root: receiptlog.Text(root), TS: "2026-11-30T12:00:00.000Z",
		}))
		receipt := l.says("pact-receipt+jws", receiptlog.Claims{
			GrantID: "g", User: "u", PA: "p", Brand: "https://b.example", ScopesUsed: []string{}, Actions: []receiptlog.Action{},
			TS: fmt.Sprintf("2026-11-30T12:00:00.0%02dZ", size),
		})
		receipts = append(receipts, receipt)
		salt := []byte("salt")
		entry, leaf, err := receiptlog.Entry{Seq: size, Grant: "g", At: fmt.Sprintf("2026-11-30T12:00:00.0%02dZ", size), Receipt: receiptlog.SealReceipt(salt, receipt[:strings.LastIndexByte(receipt, '.')])}.Leaf()
		must(err)
		entries = append(entries, marshal(t, map[string]string{"entry": string(entry), "salt": base64.RawURLEncoding.EncodeToString(salt)}))
		more, err := tlog.StoredHashesForRecordHash(size, leaf, reader)
		must(err)
		stored = append(stored, more...)
	}
	var looks []looked
	at := []string{"--jwks", "jwks", "--issuer", "https://a.example", "--audience", "https://b.example"}
	// An entry that seals a receipt, and says in the open that it is of another turn.
	for name, e := range map[string]receiptlog.Entry{"grant": {Grant: "h", At: "2026-11-30T12:00:00.000Z"}, "time": {Grant: "g", At: "2026-11-30T12:00:00.001Z"}} {
		salt := []byte("salt")
		e.Receipt = receiptlog.SealReceipt(salt, receipts[0][:strings.LastIndexByte(receipts[0], '.')])
		entry, leaf, err := e.Leaf()
		must(err)
		f := maps.Clone(base)
		maps.Copy(f, files{
			"receipt": receipts[0], "entry": marshal(t, map[string]string{"entry": string(entry), "salt": base64.RawURLEncoding.EncodeToString(salt)}), "inclusion": texts(nil),
			"log": l.says("countersign-checkpoint+jws", receiptlog.Checkpoint{Log: "https://a.example/log", Size: 1, Root: receiptlog.Text(leaf), TS: "2026-11-30T12:00:00.000Z"}),
		})
		looks = append(looks, looked{"another " + name, f, append([]string{"receipt", "receipt", "--entry", "entry", "--inclusion", "inclusion", "--checkpoint", "log"}, at...), "Refused: entry: "})
	}
	for size := range int64(most + 1) {
		for n := range size {
			p, err := tlog.ProveRecord(size, n, reader)
			must(err)
			f := maps.Clone(base)
			maps.Copy(f, files{"receipt": receipts[n], "entry": entries[n], "inclusion": texts(p), "log": heads[size]})
			looks = append(looks, looked{
				fmt.Sprintf("entry %d of %d", n, size), f,
				append([]string{"receipt", "receipt", "--entry", "entry", "--inclusion", "inclusion", "--checkpoint", "log"}, at...), "",
			})
			var hashes []tlog.Hash
			if n > 0 {
				q, err := tlog.ProveTree(size, n, reader)
				must(err)
				hashes = q
			}
			f = maps.Clone(base)
			maps.Copy(f, files{"older": heads[n], "newer": heads[size], "consistency": texts(hashes)})
			looks = append(looks, looked{
				fmt.Sprintf("%d to %d", n, size), f, append([]string{"log", "newer", "--checkpoint", "older", "--consistency", "consistency"}, at...), "",
			})
		}
	}
	g.mustSay(looks)
}
