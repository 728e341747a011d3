package verify

import (
	"encoding/json"
	"errors"
	"testing"
)

// P47: details come with the token or not at all; one that cannot be read is no
// token, since what it limits would be allowed without limit.
func TestDetailsAreReadOrRefused(t *testing.T) {
	for raw, want := range map[string]int{
		``: 0, `[{"type":"stay_charge","amount":200}]`: 1, `[{"type":"a"},{"type":"b"}]`: 2,
		`null`: -1, `[]`: -1, `{}`: -1, `"x"`: -1, `[null]`: -1, `["x"]`: -1, `[{}]`: -1, `[{"type":1}]`: -1, `[{"type":""}]`: -1, `[{"Type":"a"}]`: -1,
	} {
		claims := members{}
		if raw != "" {
			claims["authorization_details"] = json.RawMessage(raw)
		}
		got, err := details(claims)
		if want < 0 && (!errors.Is(err, ErrMalformed) && !errors.Is(err, ErrIncomplete) || got != nil) || want >= 0 && (err != nil || len(got) != want) {
			t.Errorf("%s: %s, %v", raw, got, err)
		}
	}
}
