package e2e

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority/canonical"
	"countersign.dev/authority/receiptlog"
	"github.com/go-jose/go-jose/v4"
)

// files are what somebody saved, by name.
type files map[string]string

// but is the same with one of them otherwise.
func (f files) but(name, text string) files {
	f = maps.Clone(f)
	f[name] = text
	return f
}

// looked is one use of the script, and what it must say; nothing: it holds.
type looked struct {
	Name  string   `json:"-"`
	Files files    `json:"files"`
	Args  []string `json:"args"`
	want  string
}

// given is the script as a Brand has it: in a folder with jose beside it.
type given struct {
	t      *testing.T
	folder string
	script string
}

func newGiven(t *testing.T) given {
	t.Helper()
	g := given{t: t, folder: t.TempDir()}
	g.script = filepath.Join(g.folder, "verify.mjs")
	source, err := os.ReadFile("../deploy/verify/verify.mjs")
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(source, []byte("\n")); lines > 100 {
		t.Errorf("the script has %d lines; who is to trust it must read it", lines)
	}
	g.write(files{"verify.mjs": string(source)})
	libraries, err := filepath.Abs("node_modules")
	if err == nil {
		err = os.Symlink(libraries, filepath.Join(g.folder, "node_modules"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func (g given) write(f files) {
	g.t.Helper()
	for name, text := range f {
		if err := os.WriteFile(filepath.Join(g.folder, name), []byte(text), 0o600); err != nil {
			g.t.Fatal(err)
		}
	}
}

// run is the script as a process.
func (g given) run(f files, args ...string) (said string, exit int) {
	g.t.Helper()
	g.write(f)
	c := exec.CommandContext(g.t.Context(), "node", append([]string{"verify.mjs"}, args...)...)
	c.Dir = g.folder
	out, _ := c.CombinedOutput() // the exit code says it
	return string(out), c.ProcessState.ExitCode()
}

// mustSay runs it for all looks.
func (g given) mustSay(looks []looked) {
	g.t.Helper()
	var ran []struct {
		Exit int
		Said string
	}
	// The folder is not emptied in between: only what is otherwise is written.
	told, there := slices.Clone(looks), files{}
	for i, l := range told {
		told[i].Files = files{}
		for name, text := range l.Files {
			if there[name] != text {
				told[i].Files[name], there[name] = text, text
			}
		}
	}
	nodeScript(g.t, &ran, told, "many.mjs", g.script, g.folder)
	if len(ran) != len(looks) || len(looks) == 0 {
		g.t.Fatalf("%d of %d looks", len(ran), len(looks))
	}
	for i, l := range looks {
		holds := strings.HasPrefix(ran[i].Said, "It holds.")
		if got := ran[i]; l.want == "" && (got.Exit != 0 || !holds) || l.want != "" && (got.Exit != 1 || holds || !strings.Contains(got.Said, l.want)) {
			g.t.Errorf("%s: exit %d, %q, wanted %q", l.Name, got.Exit, got.Said, l.want)
		}
	}
}

// liar has a key that the keys of a Brand hold too, so that what it signs shows what
// is looked at beside the signature.
type liar struct {
	t   *testing.T
	key jose.JSONWebKey
}

func newLiar(t *testing.T) liar {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return liar{t, jose.JSONWebKey{Key: private, KeyID: "liar", Algorithm: "ES256", Use: "sig"}}
}

func (l liar) among(jwks string) string {
	l.t.Helper()
	var set struct {
		Keys []any `json:"keys"`
	}
	if err := json.Unmarshal([]byte(jwks), &set); err != nil {
		l.t.Fatal(err)
	}
	set.Keys = append(set.Keys, l.key.Public())
	return marshal(l.t, set)
}

// says signs the canonical form of the claims.
func (l liar) says(typ string, claims any) string {
	l.t.Helper()
	text, err := canonical.Of(claims)
	if err != nil {
		l.t.Fatal(err)
	}
	return l.signs(text, l.key, (&jose.SignerOptions{}).WithType(jose.ContentType(typ)))
}

func (l liar) signs(payload []byte, key jose.JSONWebKey, opts *jose.SignerOptions) string {
	l.t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(key.Algorithm), Key: key}, opts)
	if err != nil {
		l.t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		l.t.Fatal(err)
	}
	jws, err := signed.CompactSerialize()
	if err != nil {
		l.t.Fatal(err)
	}
	return jws
}

// otherwise signs what a JWS says, with one claim otherwise; nil: without it.
func (l liar) otherwise(jws, name string, value any) string {
	l.t.Helper()
	var typ struct{ Typ string }
	claims := make(map[string]any)
	decode(l.t, jws, 0, &typ)
	decode(l.t, jws, 1, &claims)
	claims[name] = value
	if value == nil {
		delete(claims, name)
	}
	return l.says(typ.Typ, claims)
}

func decode(t *testing.T, jws string, part int, into any) {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(strings.Split(jws, ".")[part])
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// call asks the authority as the Brand's own server; a nil body is a GET.
func (b brand) call(t *testing.T, path string, body any) (string, http.Header) {
	t.Helper()
	method, in := http.MethodGet, io.Reader(nil)
	if body != nil {
		method, in = http.MethodPost, strings.NewReader(marshal(t, body))
	}
	r, err := http.NewRequestWithContext(t.Context(), method, b.Issuer+path, in)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+b.APIKey)
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %s %v", path, resp.Status, said, err)
	}
	return string(said), resp.Header
}

// checkpointOf waits for a checkpoint of more than so many entries, and returns its size.
func (b brand) checkpointOf(t *testing.T, more int64) (jws string, size int64) {
	t.Helper()
	const promised, pause = 20 * time.Second, 50 * time.Millisecond
	for began := time.Now(); time.Since(began) < promised; time.Sleep(pause) {
		jws, _ = b.call(t, "/log/checkpoint", nil)
		var says receiptlog.Checkpoint
		if decode(t, jws, 1, &says); says.Size > more {
			return jws, says.Size
		}
	}
	t.Fatalf("no checkpoint of more than %d entries in %s", more, promised)
	return "", 0
}

// saved has a conversation of five turns at the hotel, and saves all there is of it.
func (p *product) saved(t *testing.T, b brand) files {
	t.Helper()
	asked := p.ask(t, b, userOf(t), "bookings:read")
	answers(t, b, asked.Link)
	f := files{"token": asked.poll().AccessToken}
	var grant struct {
		ID string `json:"grant_id"`
	}
	decode(t, f["token"], 1, &grant)
	context := "talk of " + t.Name()
	var lines []string
	var seq, older int64
	for i := range 5 {
		receipt, heads := b.call(t, "/receipts", map[string]any{
			"delegation_token": f["token"], "agent": p.Agent.Issuer, "contextId": context, "messageId": fmt.Sprint("m", i),
			"scopesUsed": []string{"bookings:read"}, "actions": []any{map[string]any{"tool": "bookings.list", "args": map[string]any{"é": 1.5}}},
		})
		lines = append(lines, receipt)
		if _, err := fmt.Sscan(heads.Get("Countersign-Log-Seq"), &seq); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			f["older"], older = b.checkpointOf(t, seq)
		}
	}
	var size int64
	f["newer"], size = b.checkpointOf(t, seq)
	f["receipt"], f["receipts"] = lines[4], strings.Join(lines, "\n")
	f["entry"], _ = b.call(t, fmt.Sprint("/log/entries/", seq), nil)
	f["inclusion"], _ = b.call(t, fmt.Sprintf("/log/inclusion?seq=%d&size=%d", seq, size), nil)
	f["consistency"], _ = b.call(t, fmt.Sprintf("/log/consistency?from=%d&to=%d", older, size), nil)
	f["task"], _ = b.call(t, "/receipts/task", map[string]string{"grantId": grant.ID, "contextId": context})
	f["jwks"], _ = b.call(t, "/jwks.json", nil)
	return f
}

// jwsIn is the JWS of {jws, claims}.
func jwsIn(t *testing.T, text string) string {
	t.Helper()
	var one struct{ JWS string }
	if err := json.Unmarshal([]byte(text), &one); err != nil {
		t.Fatal(err)
	}
	return one.JWS
}

// flips are the text with one bit changed: of its first byte, every third, and the last.
func flips(text string) map[int]string {
	out := make(map[int]string)
	for i := range text {
		if i%3 == 0 || i == len(text)-1 {
			b := []byte(text)
			b[i] ^= 1 << (i % 7)
			out[i] = string(b)
		}
	}
	return out
}
