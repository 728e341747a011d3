package export_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/canonical"
	"countersign.dev/authority/export"
	"countersign.dev/tenants"
	"github.com/google/uuid"
	"sigs.k8s.io/yaml"
)

func unnoted(context.Context) error { return nil }

// hotel is a Brand with something of everything.
func hotel(t *testing.T) (*authoritytest.World, *authority.Authority, export.Archive) {
	t.Helper()
	w := authoritytest.New(t)
	a := w.Authority(nil)
	for i, p := range []string{"guest-1", "guest-2", "guest-3"} {
		who := authority.Caller{Agent: authoritytest.Agent, Sub: "phone-of-" + p}
		s := authoritytest.Begin(t, a, w.Hotel, who, "bookings:read")
		authoritytest.Approve(t, a, w.Hotel, s, p, "bookings:read")
		if i == 2 {
			if err := a.Suspend(t.Context(), w.Hotel.ID, authority.ByOperator(), p); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.Detailed(t, authoritytest.StayCharge())
	details := `[{"type":"stay_charge","amount":4321,"currency":"EUR"}]`
	wanted, err := a.BeginWith(t.Context(), w.Hotel, authoritytest.Alex, authority.Wish{Scopes: []string{"extras:order"}, Details: &details})
	if err != nil {
		t.Fatal(err)
	}
	authoritytest.Approve(t, a, w.Hotel, wanted, "guest-1", "extras:order")
	s := authoritytest.Begin(t, a, w.Shop, authoritytest.Alex, "orders:read")
	authoritytest.Approve(t, a, w.Shop, s, "shopper", "orders:read")
	now := w.Clock.Now()
	id := uuid.New()
	w.Exec(t, `INSERT INTO people (id, email, email_typed, name, language, created_at) VALUES ($1, 'olga@x.example', 'Olga@x.example', 'Olga', 'en', $2)`, id, now)
	w.Exec(t, `INSERT INTO memberships VALUES ('harbor-hotel', $1, 'owner', $2, $2)`, id, now)
	w.Exec(t, `INSERT INTO login_connections (brand_id, id, issuer, client_id, client_secret_sealed, live, created_at)
		VALUES ('harbor-hotel', gen_random_uuid(), 'https://idp.example', 'our-client', 'sealed-secret', true, $1)`, now)
	w.Exec(t, `INSERT INTO webhook_endpoints (brand_id, id, url, events, secret_sealed, enabled, created_at)
		VALUES ('harbor-hotel', 'aaaaaaaaaaaa', 'https://hook.example', '{grant.created}', 'sealed-secret', true, $1)`, now)
	w.Exec(t, `INSERT INTO api_keys (brand_id, id, name, rights, secret_hash, created_at) VALUES ('harbor-hotel', 'bbbbbbbbbbbb', 'checkout', '{admin}', 'secret-hash', $1)`, now)
	w.Exec(t, `INSERT INTO brand_domains (brand_id, host, token, added_at) VALUES ('harbor-hotel', 'hotel.example', 'publish-me', $1)`, now)
	w.Exec(t, `INSERT INTO brand_logos VALUES ('harbor-hotel', 'a picture', 'h', $1)`, now)
	return w, a, export.Archive{Authority: a, DB: w.DB, Keys: w.Keys, Now: w.Clock.Now}
}

// unpack reads an archive, and holds every file against the manifest.
func unpack(t *testing.T, raw []byte) (export.Manifest, map[string]string) {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = string(text)
	}
	var m export.Manifest
	if err := json.Unmarshal([]byte(files["manifest.json"]), &m); err != nil {
		t.Fatal(err)
	}
	for _, f := range m.Files {
		sum := sha256.Sum256([]byte(files[f.Name]))
		if f.SHA256 != hex.EncodeToString(sum[:]) || f.Bytes != int64(len(files[f.Name])) ||
			strings.HasSuffix(f.Name, ".ndjson") && f.Rows != int64(strings.Count(files[f.Name], "\n")) {
			t.Errorf("the manifest is wrong about %s: %+v", f.Name, f)
		}
	}
	if len(m.Files)+1 != len(files) {
		t.Errorf("%d files, %d in the manifest", len(files), len(m.Files))
	}
	return m, files
}

// R66: the archive holds everything of the Brand, nothing of another, no secret;
// and it proves itself without us.
func TestTheArchiveHoldsTheBrandAndProvesItself(t *testing.T) {
	w, a, archive := hotel(t)
	var raw bytes.Buffer
	if _, err := archive.Write(t.Context(), &raw, w.Hotel.ID, unnoted); err != nil {
		t.Fatal(err)
	}
	m, files := unpack(t, raw.Bytes())
	everything := ""
	for name, text := range files {
		everything += text
		for _, hidden := range []string{"secret-hash", "sealed", "phone-of-", "publish-me", "shopper", "fern-and-fell", `"d":`} {
			if strings.Contains(text, hidden) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(hidden))) {
				t.Errorf("%s holds %q", name, hidden)
			}
		}
	}
	for _, shown := range []string{"Olga@x.example", "our-client", "https://hook.example", "checkout", "hotel.example", "a picture", "guest-1", "See your bookings"} {
		if !strings.Contains(everything, shown) {
			t.Errorf("%q is nowhere", shown)
		}
	}
	// The trail, against the head that stands in the database.
	head, err := a.TrailHead(t.Context(), w.Hotel.ID)
	if err != nil || head.String() != m.Head {
		t.Errorf("head %s, in the archive %s, %v", head, m.Head, err)
	}
	if p, err := authority.VerifyExport(strings.NewReader(files["audit.ndjson"]), &head); err != nil || p.Events != head.Seq {
		t.Errorf("%+v, %v", p, err)
	}
	// What people were shown fits its hash, which stands in the trail.
	lines := strings.Split(strings.TrimSpace(files["consents.ndjson"]), "\n")
	if len(lines) != 4 {
		t.Errorf("%d answers", len(lines))
	}
	for _, line := range lines {
		var c struct{ Record, Hash string }
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256([]byte(c.Record))
		if c.Hash != base64.RawURLEncoding.EncodeToString(sum[:]) {
			t.Errorf("hash %s of %s", c.Hash, c.Record)
		}
	}
	// So do the values that the trail holds only digests of.
	var told struct {
		Seq     int64
		Salt    authority.Octets
		Details []json.RawMessage `json:"authorization_details"`
	}
	if err := json.Unmarshal([]byte(files["event-details.ndjson"]), &told); err != nil || len(told.Details) != 1 {
		t.Fatalf("%q, %v", files["event-details.ndjson"], err)
	}
	form, err := canonical.JSON(told.Details[0])
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(append(told.Salt, form...))
	fact := strings.Split(files["audit.ndjson"], "\n")[told.Seq-1]
	if !strings.Contains(fact, authority.Octets(sum[:]).String()) || strings.Contains(files["audit.ndjson"], "4321") {
		t.Errorf("the trail has %s", fact)
	}
	jwks, err := w.Keys.JWKS(t.Context(), w.Hotel.ID)
	if err != nil || files["jwks.json"] != string(jwks.Body) {
		t.Errorf("%s, %v", files["jwks.json"], err)
	}
	// brand.yaml is the Brand: applied, it changes nothing.
	var f tenants.File
	if err := yaml.UnmarshalStrict([]byte(files["brand.yaml"]), &f); err != nil {
		t.Fatal(err)
	}
	facts, err := tenants.PlanFile(t.Context(), a.Editor(authority.ByOperator()), tenants.Site{PublicURL: authoritytest.PublicURL}, f)
	if err != nil || len(facts) != 0 {
		t.Errorf("%v, %v", facts, err)
	}
	for _, file := range m.Files {
		if !strings.Contains(files["README.md"], "`"+file.Name+"`") {
			t.Errorf("the README does not speak of %s", file.Name)
		}
	}
}

// A closed Brand can be exported until it is emptied, and so can a new one.
func TestABrandThatIsNotOpenCanBeExported(t *testing.T) {
	w, a, archive := hotel(t)
	if _, err := a.Close(t.Context(), w.Hotel.ID, authority.ByOperator()); err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(tenants.ClosedFor - time.Second)
	if _, err := a.Leave(t.Context(), w.Hotel.ID); err != nil {
		t.Fatal(err)
	}
	w.Exec(t, `INSERT INTO brands (id, provider_id, name, mode, state, delegation, interface_url, issuer, created_at)
		VALUES ('new', 'demo', 'New', 'hosted', 'pending', true, 'https://new.example', 'https://new.example/oauth', $1)`, w.Clock.Now())
	for id, grants := range map[tenants.BrandID]int{w.Hotel.ID: 4, "new": 0} {
		var raw bytes.Buffer
		if _, err := archive.Write(t.Context(), &raw, id, unnoted); err != nil {
			t.Fatal(err)
		}
		if _, files := unpack(t, raw.Bytes()); strings.Count(files["grants.ndjson"], "\n") != grants {
			t.Errorf("%s: %s", id, files["grants.ndjson"])
		}
	}
}

// R82: what cannot be written down does not begin; and half an archive is none.
func TestAnExportIsNotedAndWhole(t *testing.T) {
	w, _, archive := hotel(t)
	refused := errors.New("the trail is away")
	answer := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	err := archive.Serve(answer, r, w.Hotel.ID, func(context.Context) error { return refused }, func(error) { t.Error("it began") })
	if !errors.Is(err, refused) || answer.Body.Len() != 0 || answer.Header().Get("Content-Type") != "" {
		t.Errorf("%v, %d bytes as %s", err, answer.Body.Len(), answer.Header().Get("Content-Type"))
	}
	var whole bytes.Buffer
	if _, err := archive.Write(t.Context(), &whole, w.Hotel.ID, unnoted); err != nil {
		t.Fatal(err)
	}
	for _, most := range []int{1, whole.Len() / 2, whole.Len() - 1} {
		if _, err := archive.Write(t.Context(), &full{most: most}, w.Hotel.ID, unnoted); err == nil {
			t.Errorf("a disk of %d bytes was enough", most)
		}
		if _, err := zip.NewReader(bytes.NewReader(whole.Bytes()[:most]), int64(most)); err == nil {
			t.Errorf("%d of %d bytes pass for an archive", most, whole.Len())
		}
	}
	// Trouble in the middle breaks the connection off.
	w.Exec(t, `ALTER TABLE suspended_users RENAME TO away`)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := archive.Serve(w, r, "harbor-hotel", unnoted, func(error) {}); err != nil {
			http.Error(w, "trouble", http.StatusInternalServerError)
		}
	}))
	defer s.Close()
	resp, err := http.Get(s.URL)
	if err == nil {
		defer resp.Body.Close()
		if _, err = io.ReadAll(resp.Body); err == nil && resp.StatusCode == http.StatusOK {
			t.Error("half an archive looks like a whole one")
		}
	}
}

type full struct{ most int }

func (f *full) Write(p []byte) (int, error) {
	if f.most -= len(p); f.most < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

// However many grants there are, an export holds some hundred of them at a time.
func TestAnExportHoldsLittle(t *testing.T) {
	w, _, archive := hotel(t)
	const many = 60_000
	w.Exec(t, `INSERT INTO grants (brand_id, id, agent, agent_sub, subject, scopes, created_at, expires_at, ended_at, end_reason)
		SELECT 'harbor-hotel', gen_random_uuid(), 'https://agent.example', 'a' || n, 'guest-' || n, '{bookings:read}', $1, $1, $1, 'expired'
		  FROM generate_series(1, $2::int) n`, w.Clock.Now(), many)
	peak := &watcher{}
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	m, err := archive.Write(t.Context(), peak, w.Hotel.ID, unnoted)
	if err != nil {
		t.Fatal(err)
	}
	const bound = 24 << 20
	if grew := int64(peak.most) - int64(before.HeapAlloc); grew > bound {
		t.Errorf("%d rows held %d MiB", many, grew>>20)
	}
	for _, f := range m.Files {
		if f.Name == "grants.ndjson" && f.Rows != many+4 {
			t.Errorf("%+v", f)
		}
	}
}

// watcher throws everything away and looks at the heap meanwhile.
type watcher struct {
	writes int
	most   uint64
}

func (h *watcher) Write(p []byte) (int, error) {
	if h.writes++; h.writes%20 == 0 {
		runtime.GC()
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		h.most = max(h.most, now.HeapAlloc)
	}
	return len(p), nil
}
