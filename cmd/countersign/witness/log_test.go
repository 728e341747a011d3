package witness

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority/canonical"
	"countersign.dev/authority/receiptlog"
	"github.com/go-jose/go-jose/v4"
	"golang.org/x/mod/sumdb/tlog"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// brandLog is a Brand's log on the network, honest as long as the test lets it be:
// what is in it, and by which clock it is signed, is the test's.
type brandLog struct {
	t       *testing.T
	url     string // the issuer
	key     jose.JSONWebKey
	entries []string
	clock   time.Time
	mu      sync.Mutex
	asked   []string
	answer  func(path string) (int, string) // in place of its own; nil: none
}

func newBrandLog(t *testing.T, entries ...string) *brandLog {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	l := &brandLog{t: t, key: jose.JSONWebKey{Key: private, KeyID: "brand-1", Algorithm: "ES256", Use: "sig"}, entries: entries, clock: noon}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /oauth/jwks.json", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{l.key.Public()}})
	})
	mux.HandleFunc("GET /oauth/log/checkpoint", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, l.checkpoint()) })
	mux.HandleFunc("GET /oauth/log/consistency", func(w http.ResponseWriter, r *http.Request) {
		from, _ := strconv.ParseInt(r.FormValue("from"), 10, 64) // 0 has no proof
		to, _ := strconv.ParseInt(r.FormValue("to"), 10, 64)
		proof, err := tlog.ProveTree(to, from, l.tree())
		if err != nil {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		texts := []string{}
		for _, h := range proof {
			texts = append(texts, receiptlog.Text(h))
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"hashes": texts})
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		l.asked = append(l.asked, r.URL.Path)
		l.mu.Unlock()
		if l.answer != nil {
			if status, body := l.answer(r.URL.Path); status != 0 {
				w.WriteHeader(status)
				fmt.Fprint(w, body)
				return
			}
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	l.url = server.URL + "/oauth"
	return l
}

// tree reads the hashes of the entries.
func (l *brandLog) tree() tlog.HashReader {
	var stored []tlog.Hash
	reader := tlog.HashReaderFunc(func(at []int64) ([]tlog.Hash, error) {
		out := make([]tlog.Hash, len(at))
		for i, n := range at {
			if n >= int64(len(stored)) {
				return nil, fmt.Errorf("no hash %d", n)
			}
			out[i] = stored[n]
		}
		return out, nil
	})
	for n, entry := range l.entries {
		more, err := tlog.StoredHashes(int64(n), []byte(entry), reader)
		if err != nil {
			l.t.Error(err)
		}
		stored = append(stored, more...)
	}
	return reader
}

func (l *brandLog) checkpoint() string {
	root, err := tlog.TreeHash(int64(len(l.entries)), l.tree())
	if err != nil {
		l.t.Error(err)
	}
	payload, err := canonical.Of(receiptlog.Checkpoint{
		Log: l.url + "/log", Size: int64(len(l.entries)), Root: receiptlog.Text(root), TS: receiptlog.At(l.clock),
	})
	if err != nil {
		l.t.Error(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: l.key}, (&jose.SignerOptions{}).WithType("countersign-checkpoint+jws"))
	if err != nil {
		l.t.Error(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		l.t.Error(err)
	}
	jws, err := signed.CompactSerialize()
	if err != nil {
		l.t.Error(err)
	}
	return jws
}

func (l *brandLog) add(entries ...string) { l.entries = append(slices.Clone(l.entries), entries...) }

// seer is a witness with files of its own, and its clock.
type seer struct {
	t         *testing.T
	log       *brandLog
	key, file string
	clock     time.Time
}

func newSeer(t *testing.T, l *brandLog) *seer {
	t.Helper()
	folder := t.TempDir()
	s := &seer{t, l, filepath.Join(folder, "key"), filepath.Join(folder, "seen.ndjson"), noon.Add(time.Second)}
	if code, out, errs := s.run("--key", s.key, "--name", "witness.example/w1"); code != exitSigned || !strings.HasPrefix(out, "witness.example/w1+") {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	return s
}

func (s *seer) run(args ...string) (code int, stdout, stderr string) {
	s.t.Helper()
	var out, errs bytes.Buffer
	code = run(s.t.Context(), args, func() time.Time { return s.clock }, &out, &errs)
	return code, out.String(), errs.String()
}

func (s *seer) look() (code int, stdout, stderr string) {
	s.t.Helper()
	return s.run("--key", s.key, "--log", s.file, "--issuer", s.log.url)
}

// mustSee is a look that must end so, and say that.
func (s *seer) mustSee(code int, says string) (stdout string) {
	s.t.Helper()
	got, out, errs := s.look()
	if got != code || !strings.Contains(errs, says) || says == "" && errs != "" {
		s.t.Errorf("exit %d instead of %d\n%s%s", got, code, out, errs)
	}
	return out
}
