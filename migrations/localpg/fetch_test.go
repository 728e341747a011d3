package localpg

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// archive is what a repository offers: the programs of this machine's own
// PostgreSQL, each behind a line of shell, since they do not bear being moved.
func archive(t *testing.T, dir string) []byte {
	t.Helper()
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"initdb", "pg_ctl", "postgres"} {
		line := "#!/bin/sh\nexec '" + filepath.Join(dir, program) + "' \"$@\"\n"
		if err := os.WriteFile(filepath.Join(root, "bin", program), []byte(line), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	packed, err := exec.CommandContext(t.Context(), "tar", "-C", root, "-cJf", "-", "bin").Output()
	if err != nil {
		t.Fatalf("pack; xz is needed (apt-get install xz-utils): %v", err)
	}
	var jar bytes.Buffer
	z := zip.NewWriter(&jar)
	w, err := z.Create("postgres.txz")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(packed); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return jar.Bytes()
}

func TestPostgreSQLIsFetchedWhereThereIsNone(t *testing.T) {
	t.Parallel()
	here := installed(t.Context(), places(), nil)
	if len(here) == 0 {
		t.Fatal("no PostgreSQL; apt-get install postgresql")
	}
	jar := archive(t, here[0].dir)
	sum := sha256.Sum256(jar)
	good := hex.EncodeToString(sum[:])
	for _, tt := range []struct {
		name, sum string
		status    int
		kept      bool
	}{
		{"whole", good, http.StatusOK, true},
		{"another sum", strings.Repeat("0", len(good)), http.StatusOK, false},
		{"not there", good, http.StatusNotFound, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			repository := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(tt.status)
				if strings.HasSuffix(r.URL.Path, ".sha256") {
					_, _ = w.Write([]byte(tt.sum))
					return
				}
				_, _ = w.Write(jar)
			}))
			t.Cleanup(repository.Close)
			cache := t.TempDir()
			got, err := source{repository: repository.URL, cache: cache}.fetch(t.Context(), nil)
			if tt.kept && (err != nil || got.major != here[0].major) {
				t.Errorf("fetched version %d, error %v", got.major, err)
			}
			if !tt.kept && err == nil {
				t.Error("taken all the same")
			}
			// Nothing half-made stays, or the next start would run it.
			left, err := filepath.Glob(filepath.Join(cache, "*"))
			if err != nil {
				t.Fatal(err)
			}
			if kept := len(left) == 1 && left[0] == filepath.Dir(got.dir); tt.kept != kept || !tt.kept && len(left) > 0 {
				t.Errorf("the cache holds %v", left)
			}
		})
	}
}
