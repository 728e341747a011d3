package verify

import (
	"encoding/json"
	"fmt"
)

// details are the entries of authorization_details (RFC 9396 §9.1), if the token has
// any. One that cannot be read is refused with the token: what it limits would
// otherwise be allowed without limit.
func details(claims members) ([]json.RawMessage, error) {
	raw, there := claims["authorization_details"]
	if !there {
		return nil, nil
	}
	var entries []json.RawMessage
	if err := json.Unmarshal(raw, &entries); err != nil || len(entries) == 0 {
		return nil, fmt.Errorf("%w: authorization_details is no list of objects", ErrMalformed)
	}
	for _, entry := range entries {
		m, err := parseObject(entry)
		if err == nil {
			_, err = m.text("type")
		}
		if err != nil {
			return nil, fmt.Errorf("%w: authorization_details: %v", ErrMalformed, err)
		}
	}
	return entries, nil
}
