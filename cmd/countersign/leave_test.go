package main

import (
	"archive/zip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
)

func allowedAtHotel(t *testing.T, w *authoritytest.World, subject string) {
	t.Helper()
	a := w.Authority(nil)
	s := authoritytest.Begin(t, a, w.Hotel, authority.Caller{Agent: authoritytest.Agent, Sub: "phone of " + subject}, "bookings:read")
	authoritytest.Approve(t, a, w.Hotel, s, subject, "bookings:read")
}

// R66: the archive goes into a file of the operator's own, whose trail verifies
// without a database; a file that is there is not overwritten.
func TestABrandIsExportedFromTheShell(t *testing.T) {
	w := authoritytest.NewAt(t, time.Now())
	allowedAtHotel(t, w, "guest-1")
	database := serviceURL(t, w)
	dir := t.TempDir()
	to := filepath.Join(dir, "hotel.zip")
	code, out, errs := typed(t, "brand", "export", "--brand", "harbor-hotel", "-f", to, "--database-url", database)
	if code != 0 || !strings.Contains(out, "holds everything of harbor-hotel") {
		t.Fatalf("exit %d, %q, %q", code, out, errs)
	}
	if i, err := os.Stat(to); err != nil || i.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", i, err)
	}
	before, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	if code, _, _ := typed(t, "brand", "export", "--brand", "harbor-hotel", "-f", to, "--database-url", database); code == 0 {
		t.Error("the file was written over")
	}
	if now, err := os.ReadFile(to); err != nil || string(now) != string(before) {
		t.Errorf("the file is another, %v", err)
	}
	z, err := zip.OpenReader(to)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	trail := filepath.Join(dir, "audit.ndjson")
	raw, err := z.Open("audit.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(trail)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadFrom(raw); err != nil {
		t.Fatal(err)
	}
	f.Close()
	_, head, _ := strings.Cut(out, "head ")
	if code, said, errs := typed(t, "audit", "verify", "--file", trail, "--expect", strings.TrimSpace(head)); code != 0 || !strings.Contains(said, "is sound") {
		t.Errorf("exit %d, %q, %q", code, said, errs)
	}
	if code, out, _ := typed(t, "brand", "export", "--brand", "harbor-hotel", "-f", "-", "--database-url", database); code != 0 || !strings.HasPrefix(out, "PK") {
		t.Errorf("to standard output: exit %d", code)
	}
	if n := w.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'brand.exported' AND actor = 'operator'`); n != 2 {
		t.Errorf("noted %d times", n)
	}
}

// B92: erased from the shell only with --yes, and the output does not name them.
func TestAUserIsErasedFromTheShell(t *testing.T) {
	w := authoritytest.NewAt(t, time.Now())
	allowedAtHotel(t, w, "guest-1")
	database := serviceURL(t, w)
	line := []string{"user", "erase", "--brand", "harbor-hotel", "--subject", "guest-1", "--database-url", database}
	if code, _, errs := typed(t, line...); code != 2 || !strings.Contains(errs, "--yes is required") {
		t.Errorf("exit %d, %q", code, errs)
	}
	if n := w.Count(t, `SELECT count(*) FROM grants WHERE subject = 'guest-1' AND ended_at IS NULL`); n != 1 {
		t.Fatalf("%d grants", n)
	}
	code, out, errs := typed(t, append(line, "--yes")...)
	if code != 0 || !strings.Contains(out, "1 grants have ended") || strings.Contains(out, "guest-1") {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	if code, out, _ := typed(t, append(line, "--yes")...); code != 0 || !strings.Contains(out, "nothing of this user") {
		t.Errorf("again: exit %d, %q", code, out)
	}
	if n := w.Count(t, `SELECT count(*) FROM grants WHERE subject = 'guest-1'`); n != 0 {
		t.Errorf("%d grants", n)
	}
	if code, out, _ := typed(t, "audit", "verify", "--brand", "harbor-hotel", "--database-url", database); code != 0 || !strings.Contains(out, "is sound") {
		t.Errorf("exit %d, %q", code, out)
	}
}

// B76: private keys go by an operator's hand alone, and only when the Brand's data
// has gone; what is printed names that Brand's keys and no other's.
func TestKeysAreDestroyedByHandAndLast(t *testing.T) {
	w := authoritytest.NewAt(t, time.Now())
	database := serviceURL(t, w)
	line := []string{"keys", "destroy", "--brand", "harbor-hotel", "--database-url", database}
	if code, out, errs := typed(t, line...); code == 0 || out != "" || !strings.Contains(errs, "is not closed") {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	a := w.Authority(nil)
	if _, err := a.Close(t.Context(), w.Hotel.ID, authority.ByOperator()); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := typed(t, line...); code == 0 || out != "" || !strings.Contains(errs, "its keys may go when its data has") {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	w.Clock.Advance(tenants.ClosedFor)
	if _, err := a.Leave(t.Context(), w.Hotel.ID); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := typed(t, line...); code != 0 || !strings.Contains(out, "no private key of harbor-hotel is left") {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	var out strings.Builder
	err := printDestroy(&out, "transit", "harbor-hotel", []signing.KeyInfo{
		{Backend: "vault", Alg: signing.ES256, Version: 1},
		{Backend: "vault", Alg: signing.ES256, Version: 2},
		{Backend: "vault", Alg: signing.RS256, Version: 3},
		{Backend: "local", Alg: signing.ES256, Version: 4},
	})
	const want = `# 4 public keys of harbor-hotel stand in the database and stay published. As an operator with deploy/vault/destroy.hcl:
vault write transit/keys/tenant-harbor-hotel-es256/config deletion_allowed=true
vault delete transit/keys/tenant-harbor-hotel-es256
vault write transit/keys/tenant-harbor-hotel-rs256/config deletion_allowed=true
vault delete transit/keys/tenant-harbor-hotel-rs256
# There is no way back from vault delete.
`
	if err != nil || out.String() != want {
		t.Errorf("%v\n%s", err, out.String())
	}
}
