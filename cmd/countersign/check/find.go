package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// holder is any JSON object that may hold a token: a token answer, a line that
// "pa login --json" wrote, or an entry of an agent's token file.
type holder struct {
	AccessToken string `json:"access_token"`
	Issuer      string `json:"issuer"`
	Interface   string `json:"interface"`
}

// errNothing is no verdict on a token: there was none.
var errNothing = errors.New("no token came in")

// findToken takes the token out of what a file holds. Of several it takes the
// one of this Brand.
func findToken(data []byte, issuer, audience string) (string, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		token := bare(string(data))
		if token == "" {
			return "", errNothing
		}
		// Whatever it is, the verdict is verify's to give.
		return token, nil
	}
	all, err := holders(data)
	if err != nil {
		return "", err
	}
	var ours []holder
	for _, h := range all {
		if h.Issuer == issuer || h.Interface == audience || h.Issuer == "" && h.Interface == "" {
			ours = append(ours, h)
		}
	}
	switch {
	case len(all) == 0:
		return "", errors.New("read the token: there is JSON, but no access_token in it")
	case len(ours) == 0 && len(all) == 1:
		return all[0].AccessToken, nil // another Brand's token: let the verdict say so
	case len(ours) == 1:
		return ours[0].AccessToken, nil
	}
	return "", fmt.Errorf("read the token: %d tokens for this Brand among %d in the file; give the one you mean alone", len(ours), len(all))
}

// holders walks one or many JSON objects, at most as deep as a token file.
func holders(data []byte) ([]holder, error) {
	var found []holder
	decoder := json.NewDecoder(bytes.NewReader(data))
	for decoder.More() {
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, errors.New("read the token: it begins like JSON, but is not")
		}
		found = append(found, within(value, 3)...)
	}
	return found, nil
}

func within(value json.RawMessage, depth int) []holder {
	var h holder
	if json.Unmarshal(value, &h) == nil && h.AccessToken != "" {
		return []holder{h}
	}
	var members map[string]json.RawMessage
	if depth == 0 || json.Unmarshal(value, &members) != nil {
		return nil
	}
	var found []holder
	for _, member := range members {
		found = append(found, within(member, depth-1)...)
	}
	return found
}

// bare is a token as it is pasted: with blanks around it, or with the scheme of
// the header it came from.
func bare(s string) string {
	s = strings.TrimSpace(s)
	if scheme, rest, _ := strings.Cut(s, " "); strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(rest)
	}
	return s
}
