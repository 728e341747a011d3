package authority

import (
	"slices"
	"strings"
	"testing"
)

// M10: folding keeps each id once, in the order of its first appearance, and
// makes none up; folding again changes nothing.
func FuzzFoldScopes(f *testing.F) {
	for _, s := range []string{"", "a", "a b a", "b a b", "a  b", "A a", "\xff a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, scope string) {
		asked := strings.Fields(scope)
		folded := fold(asked)
		if !slices.Equal(fold(folded), folded) {
			t.Fatalf("%q folds to %q, and that to something else", asked, folded)
		}
		last := -1
		for i, id := range folded {
			first := slices.Index(asked, id)
			if first <= last || slices.Index(folded, id) != i {
				t.Fatalf("%q folds to %q: out of order, twice or made up", asked, folded)
			}
			last = first
		}
		for _, id := range asked {
			if !slices.Contains(folded, id) {
				t.Fatalf("%q folds to %q: %q is lost", asked, folded, id)
			}
		}
	})
}
