package transit

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"testing"

	"countersign.dev/authority/signing"
	"github.com/hashicorp/vault/api"
)

func answered(raw ...any) *api.Secret {
	return &api.Secret{Data: map[string]any{"batch_results": raw}}
}

func signed(reference string, version int, fill byte) map[string]any {
	sig := base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{fill}, 64))
	return map[string]any{"reference": reference, "signature": fmt.Sprintf("vault:v%d:%s", version, sig), "key_version": version}
}

// Every item gets its own signature, whatever the order of the answer.
func TestAnswersAreFoundByReference(t *testing.T) {
	key := laneKey{"a", signing.ES256, 2}
	results := readBatch(answered(signed("2", 2, 2), signed("0", 2, 0), signed("1", 2, 1)), key, 3)
	for i, r := range results {
		if r.Err != nil || len(r.Signature) != 64 || r.Signature[0] != byte(i) {
			t.Errorf("%d: %+v", i, r)
		}
	}
}

// What does not clearly answer an item is an error of that item and of no other.
func TestUnclearAnswersAreErrors(t *testing.T) {
	key := laneKey{"a", signing.ES256, 2}
	short := map[string]any{"reference": "0", "signature": "vault:v2:" + base64.RawURLEncoding.EncodeToString(make([]byte, 63))}
	der := map[string]any{"reference": "0", "signature": "vault:v2:MEUCIQ=="}
	for _, tt := range []struct {
		name   string
		answer *api.Secret
	}{
		{"nothing", nil},
		{"no batch", &api.Secret{Data: map[string]any{"signature": "vault:v2:x"}}},
		{"another version (R35)", answered(signed("0", 1, 0), signed("1", 2, 1))},
		{"two answers for one", answered(signed("0", 2, 0), signed("1", 2, 1), signed("0", 2, 9))},
		{"no answer for one", answered(signed("1", 2, 1))},
		{"no reference", answered(signed("", 2, 0), signed("1", 2, 1))},
		{"a reference that was not given", answered(signed("7", 2, 0), signed("-1", 2, 0), signed("1", 2, 1))},
		{"63 bytes", answered(short, signed("1", 2, 1))},
		{"ASN.1 (B73)", answered(der, signed("1", 2, 1))},
		{"not an object", answered("x", nil, signed("1", 2, 1))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			results := readBatch(tt.answer, key, 2)
			if !errors.Is(results[0].Err, signing.ErrUnavailable) || results[0].Signature != nil {
				t.Errorf("%+v", results[0])
			}
			if tt.answer != nil && len(tt.answer.Data) > 0 && tt.name != "no batch" && results[1].Err != nil {
				t.Errorf("its neighbour: %v", results[1].Err)
			}
		})
	}
}

// An item's error is that item's.
func TestItemErrorsReachTheirItem(t *testing.T) {
	key := laneKey{"a", signing.ES256, 2}
	tooNew := map[string]any{"reference": "0", "error": "requested version for signing is higher than the latest key version", "key_version": 0}
	odd := map[string]any{"reference": "1", "error": "unable to decode input as base64"}
	results := readBatch(answered(tooNew, odd, signed("2", 2, 2)), key, 3)
	if !errors.Is(results[0].Err, signing.ErrNoKey) {
		t.Errorf("%v", results[0].Err)
	}
	if err := results[1].Err; err == nil || errors.Is(err, signing.ErrNoKey) || errors.Is(err, signing.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	if results[2].Err != nil {
		t.Error(results[2].Err)
	}
}

func FuzzMark(f *testing.F) {
	for _, s := range []string{"vault:v1:abc", "vault:v:abc", "vault:v-1:abc", "vault:v01:", "vault:v1", "v1:abc", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if v, rest, ok := parseMark(s); ok {
			again, same, ok := parseMark(fmt.Sprintf("vault:v%d:%s", v, rest))
			if !ok || again != v || same != rest || v < 1 {
				t.Errorf("%q: %d %q, then %d %q", s, v, rest, again, same)
			}
		}
	})
}
