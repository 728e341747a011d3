package authority_test

import (
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"testing"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/canonical"
)

// What a person wants, said more exactly, is told to the Brand and does not stand in
// the trail, which nobody can edit: there is its type and a digest, which proves the
// value to whoever is shown both. The values go with the person.
func TestTheTrailHoldsNoValues(t *testing.T) {
	w := authoritytest.New(t)
	twoTypes(t, w)
	a := w.Authority(nil)
	both := []string{"bookings:read", "extras:order"}
	detailed(t, w, a, "["+of("stay_charge", "7319")+"]", both...)
	detailed(t, w, a, "["+of("stay_charge", "7320")+"]", both...)

	lines := export(t, a, w.Hotel.ID, authority.Events{})
	if strings.Contains(lines, "7319") || strings.Contains(lines, "7320") || strings.Contains(lines, "EUR") {
		t.Error("a value stands in the trail")
	}
	told, err := authority.Told(t.Context(), w.DB, w.Hotel.ID, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, e := range told {
		for _, d := range e.Details {
			form, err := canonical.JSON(d)
			if err != nil {
				t.Fatal(err)
			}
			said = append(said, e.Type+" "+string(form))
			at, err := authority.ToldAt(t.Context(), w.DB, w.Hotel.ID, []int64{e.Seq})
			if err != nil || len(at) != 1 || len(at[0].Details) != 1 {
				t.Errorf("by its place: %+v, %v", at, err)
			}
			// AUDIT.md says how whoever is shown value and salt finds the digest.
			var salt []byte
			if err := w.Owner.QueryRow(t.Context(), `SELECT salt FROM event_details WHERE seq = $1`, e.Seq).Scan(&salt); err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(slices.Concat(salt, form))
			if !strings.Contains(string(e.Data), `"details":[{"type":"stay_charge","digest":"`+authority.Octets(sum[:]).String()+`"}]`) {
				t.Errorf("the trail has %s", e.Data)
			}
		}
	}
	value := func(amount string) string { return `{"amount":` + amount + `,"currency":"EUR","type":"stay_charge"}` }
	if want := []string{"grant.created " + value("7319"), "grant.narrowed " + value("7320"), "grant.widened " + value("7320")}; !slices.Equal(said, want) {
		t.Errorf("told %q", said)
	}
	if n := w.Count(t, `SELECT count(DISTINCT salt) FROM event_details`); n != 3 {
		t.Errorf("%d salts", n)
	}

	if _, err := a.Erase(t.Context(), w.Hotel.ID, authority.ByOperator(), "guest-1"); err != nil {
		t.Fatal(err)
	}
	if n := w.Count(t, `SELECT count(*) FROM event_details`); n != 0 {
		t.Errorf("%d values outlast the person", n)
	}
	if _, err := a.VerifyTrail(t.Context(), w.Hotel.ID, nil); err != nil {
		t.Errorf("after the erasure: %v", err)
	}
}

// Values that are told are those that were sealed: one that was changed, taken away,
// added or put beside another event is found, and where.
func TestValuesAreVerifiedAgainstTheTrail(t *testing.T) {
	w := authoritytest.New(t)
	twoTypes(t, w)
	a := w.Authority(nil)
	both := []string{"bookings:read", "extras:order"}
	detailed(t, w, a, "", both...)
	detailed(t, w, a, "["+of("stay_charge", "200")+"]", both...)
	detailed(t, w, a, "["+of("stay_charge", "300")+"]", both...)
	const first = `(SELECT min(seq) FROM event_details)`
	at := int64(w.Count(t, `SELECT min(seq) FROM event_details`))
	verify := func() error {
		_, err := a.VerifyTrail(t.Context(), w.Hotel.ID, nil)
		return err
	}
	if err := verify(); err != nil {
		t.Fatal(err)
	}
	w.Exec(t, `CREATE TABLE honest AS TABLE event_details`)
	for name, c := range map[string]struct {
		tamper string
		at     int64
	}{
		"changed":           {`UPDATE event_details SET details = jsonb_set(details, '{0,amount}', '201') WHERE seq = ` + first, at},
		"another salt":      {`UPDATE event_details SET salt = '0123456789abcdef' WHERE seq = ` + first, at},
		"taken away":        {`DELETE FROM event_details WHERE seq = ` + first, at},
		"emptied":           {`UPDATE event_details SET details = '[]' WHERE seq = ` + first, at},
		"one more":          {`UPDATE event_details SET details = details || details WHERE seq = ` + first, at},
		"beside a fact":     {`INSERT INTO event_details SELECT brand_id, 1, salt, details FROM event_details WHERE seq = ` + first, 1},
		"of another change": {`UPDATE event_details d SET (salt, details) = (SELECT salt, details FROM event_details ORDER BY seq DESC LIMIT 1) WHERE seq = ` + first, at},
	} {
		w.Exec(t, c.tamper)
		fault := new(authority.Fault)
		if err := verify(); !errors.As(err, &fault) || fault.Seq != c.at || fault.Field != "details" {
			t.Errorf("%s: %v", name, err)
		}
		w.Exec(t, `DELETE FROM event_details`)
		w.Exec(t, `INSERT INTO event_details TABLE honest`)
	}
	if err := verify(); err != nil {
		t.Errorf("put back: %v", err)
	}
}
