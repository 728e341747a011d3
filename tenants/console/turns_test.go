package console_test

import (
	"strings"
	"testing"
)

// One Brand's hundred letters hold up no other Brand's one.
func TestBrandsAreServedInTurn(t *testing.T) {
	s := newSite(t)
	s.Exec(t, `INSERT INTO people (id, email, email_typed, name, language, created_at)
		SELECT ('00000000-0000-0000-0000-00000000000' || n)::uuid, 'p' || n || '@x.example', 'p' || n || '@x.example', 'P', 'en', now() FROM generate_series(1, 2) n`)
	notices := func(brand, person string, many int) {
		s.Exec(t, `INSERT INTO notices (brand_id, id, person_id, kind, detail, created_at)
			SELECT $1, gen_random_uuid(), $2, 'key.revoked', '{}', now() FROM generate_series(1, $3::int)`, brand, "00000000-0000-0000-0000-00000000000"+person, many)
	}
	notices("harbor-hotel", "1", 100)
	notices("fern-and-fell", "2", 1)
	for range 20 { // however often it is woken
		if err := s.console.Upkeep(t.Context(), "harbor-hotel"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.console.Upkeep(t.Context(), "fern-and-fell"); err != nil {
		t.Fatal(err)
	}
	before, others := 0, 0
	for range 101 {
		switch m := s.letter(t); {
		case strings.EqualFold(m.To, "p2@x.example"):
			before = others
		default:
			others++
		}
	}
	if others != 100 || before > 40 {
		t.Errorf("%d letters, %d of another Brand came before", others, before)
	}
}
