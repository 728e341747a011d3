package authority_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// happen writes n events as the rules do, with texts of every kind in them.
func happen(t *testing.T, w *authoritytest.World, brand tenants.BrandID, n int, text func(i int) string) {
	t.Helper()
	for i := range n {
		var request, grant any
		if i%2 == 0 {
			request = uuid.New()
		}
		if i%3 == 0 {
			grant = uuid.New()
		}
		w.Exec(t, `INSERT INTO audit_events (brand_id, at, actor, actor_id, channel, event, request_id, grant_id, trace, detail)
			VALUES ($1, $2, 'user', $3, 'page', 'grant.tried', $4, $5, $6, json_build_object('b', 1, 'a', $3::text, 'list', '{x,y}'::text[]))`,
			brand, w.Clock.Now().Add(time.Duration(i)*time.Microsecond), text(i), request, grant, text(i+1))
	}
}

func plain(i int) string { return fmt.Sprintf("guest-%d", i) }

// failing is what *testing.T and *rapid.T have in common here.
type failing interface {
	Helper()
	Fatalf(format string, args ...any)
}

// faulty is the first thing that is wrong.
func faulty(t failing, err error) *authority.Fault {
	t.Helper()
	var f *authority.Fault
	if !errors.As(err, &f) {
		t.Fatalf("no fault was found: %v", err)
	}
	return f
}

func export(t *testing.T, a *authority.Authority, brand tenants.BrandID, which authority.Events) string {
	t.Helper()
	var out bytes.Buffer
	err := a.Trail(t.Context(), brand, which, 1<<30, func(e authority.Entry) error {
		line, err := e.Line()
		out.Write(line)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// What the table chains, Go verifies by itself, whatever stands in it: from the
// database and from an export.
func TestATrailIsVerifiedWithoutTheDatabasesHelp(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	if p, err := a.VerifyTrail(t.Context(), w.Hotel.ID, nil); err != nil || p.Head.Seq != 0 {
		t.Fatalf("nothing has happened: %+v, %v", p, err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("aé\u2028\n\r\t\"\\<&>\x7f😀 ")))
		happen(t, w, w.Hotel.ID, 3, func(int) string { return text.Draw(rt, "text") })
	})
	happen(t, w, w.Shop.ID, 3, plain)
	proof, err := a.VerifyTrail(t.Context(), w.Hotel.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	n := int64(w.Count(t, `SELECT count(*) FROM audit_events WHERE brand_id = 'harbor-hotel'`))
	if proof.Events != n || proof.Head.Seq != n || proof.Erased != 0 {
		t.Fatalf("%+v of %d", proof, n)
	}
	lines := export(t, a, w.Hotel.ID, authority.Events{})
	offline, err := authority.VerifyExport(strings.NewReader(lines), nil)
	if err != nil || offline.Head.String() != proof.Head.String() || offline.Events != n {
		t.Fatalf("%+v, %v", offline, err)
	}
	// The head on paper survives being read again.
	head, err := authority.ParseHead(proof.Head.String())
	if err != nil {
		t.Fatal(err)
	}
	happen(t, w, w.Hotel.ID, 2, plain)
	if _, err := a.VerifyTrail(t.Context(), w.Hotel.ID, &head); err != nil {
		t.Errorf("grown since it was remembered: %v", err)
	}
	// What came after a remembered head is verified alone.
	rest, err := authority.VerifyExport(strings.NewReader(export(t, a, w.Hotel.ID, authority.Events{Since: head.Seq})), &head)
	if err != nil || rest.Events != 2 {
		t.Errorf("%+v, %v", rest, err)
	}
	if _, err := authority.VerifyExport(strings.NewReader(export(t, a, w.Hotel.ID, authority.Events{Since: head.Seq})), nil); err == nil {
		t.Error("a file that begins in the middle counts without a head")
	}
	for _, bad := range []string{"", "1", "1:", "0:" + proof.Head.Hash.String(), "x:" + proof.Head.Hash.String(), proof.Head.String() + "A", "-" + proof.Head.String()} {
		if _, err := authority.ParseHead(bad); err == nil {
			t.Errorf("%q is a head", bad)
		}
	}
}

// The example in AUDIT.md was computed by another program: the format does not
// move with our code.
func TestTheFormatStandsStill(t *testing.T) {
	raw, err := os.ReadFile("AUDIT.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, found := strings.Cut(string(raw), "\n    {")
	example, _, _ = strings.Cut("{"+example, "\n")
	if !found {
		t.Fatal("AUDIT.md has no example")
	}
	p, err := authority.VerifyExport(strings.NewReader(example), nil)
	const head = "1:mXIttX8Pl58r8EvszTEmcM6n-ChG4zLxQsPQEI2liC4"
	if err != nil || p.Head.String() != head {
		t.Errorf("%v, %v", p.Head, err)
	}
}
