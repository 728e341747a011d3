package check

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority/statuslist"
)

// list is the Brand's status list, where index 1 is INVALID and 2 SUSPENDED.
func (s *scene) list(by party, change map[string]any) string {
	s.t.Helper()
	answers := statuslist.New(8, statuslist.Valid)
	answers.Set(1, statuslist.Invalid)
	answers.Set(2, statuslist.Suspended)
	lst, err := answers.Encode()
	if err != nil {
		s.t.Fatal(err)
	}
	now := time.Now()
	claims := map[string]any{
		"sub": s.url + "/oauth/status/0", "iat": now.Unix(), "exp": now.Add(10 * time.Minute).Unix(), "ttl": 5,
		"status_list": map[string]any{"bits": 2, "lst": lst},
	}
	for name, value := range change {
		claims[name] = value
	}
	return by.sign("statuslist+jwt", claims)
}

func (s *scene) tokenAt(index int) string {
	return s.token(map[string]any{"status": map[string]any{
		"status_list": map[string]any{"idx": index, "uri": s.url + "/oauth/status/0"},
	}})
}

// R54: with a saved list the verdict covers what happened since; every way in
// which the list does not speak for the token is a refusal with its reason, and
// a list that could not be read is no verdict.
func TestTheVerdictCoversTheStatusList(t *testing.T) {
	s := newScene(t)
	jwks := s.file("jwks", string(s.brand.jwks()))
	offline := []string{"token", "-", "--jwks", jwks, "--issuer", s.url + "/oauth", "--audience", s.url, "--status"}
	later := time.Now().Add(11 * time.Minute).Format(time.RFC3339)
	for _, tt := range []struct {
		name, token, list string
		args              []string
		exit              int
		says              string
	}{
		{"valid", s.tokenAt(0), s.list(s.brand, nil), nil, exitGood, "✓ status"},
		{"revoked", s.tokenAt(1), s.list(s.brand, nil), nil, exitRefused, "Refused: revoked"},
		{"suspended", s.tokenAt(2), s.list(s.brand, nil), nil, exitRefused, "Refused: suspended for now"},
		{"expired", s.tokenAt(0), s.list(s.brand, nil), []string{"--at", later}, exitRefused, "Refused: unusable status list: expired"},
		{"another list", s.tokenAt(0), s.list(s.brand, map[string]any{"sub": s.url + "/oauth/status/1"}), nil, exitRefused, "and the token names"},
		{"another key", s.tokenAt(0), s.list(newParty(t, "brand-1"), nil), nil, exitRefused, "signature does not verify"},
		{"nobody's key", s.tokenAt(0), s.list(newParty(t, "mallory-1"), nil), nil, exitRefused, "not published"},
		{"not a list", s.tokenAt(0), "<html>", nil, exitRefused, "well-formed"},
		{"a token without a status", s.token(nil), s.list(s.brand, nil), nil, exitRefused, "the token names none"},
		{"a bad token, whatever the list says", s.token(map[string]any{"aud": "https://ferry.example"}), s.list(s.brand, nil), nil, exitRefused, "for another audience"},
	} {
		args := append(append(offline[:len(offline):len(offline)], s.file("list", tt.list)), tt.args...)
		code, out, errs := verifyCommand(tt.token, args...)
		if code != tt.exit || !strings.Contains(out, tt.says) {
			t.Errorf("%s: exit %d\n%s%s", tt.name, code, out, errs)
		}
		if tt.exit == exitGood && strings.Contains(out, "✗") || tt.exit == exitRefused && !strings.Contains(out, "✗") {
			t.Errorf("%s: the marks say otherwise\n%s", tt.name, out)
		}
	}
	for _, file := range []string{s.file("empty", " \n"), s.folder + "/missing"} {
		if code, out, errs := verifyCommand(s.tokenAt(0), append(offline[:len(offline):len(offline)], file)...); code != exitUnknown || out != "" || errs == "" {
			t.Errorf("%s: exit %d, %q, %q", file, code, out, errs)
		}
	}
	if len(*s.requests) != 0 {
		t.Errorf("fetched %v", *s.requests)
	}
}

func TestTheJSONVerdictShowsTheList(t *testing.T) {
	s := newScene(t)
	var v struct {
		Valid      bool
		Reason     string
		Status     []struct{ Name, Result string } `json:"status_list"`
		Delegation *struct {
			Status struct {
				URI string
				IDX int
			}
		}
	}
	list := s.file("list", s.list(s.brand, nil))
	code, out, _ := verifyCommand(s.tokenAt(0), "token", "-", "--card", s.url, "--json", "--status", list)
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != exitGood || !v.Valid || len(v.Status) == 0 || v.Delegation.Status.URI != s.url+"/oauth/status/0" {
		t.Errorf("exit %d, %v, %s", code, err, out)
	}
	v.Delegation = nil
	code, out, _ = verifyCommand(s.tokenAt(1), "token", "-", "--card", s.url, "--json", "--status", list)
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != exitRefused || v.Valid || v.Reason != "revoked" || v.Delegation != nil {
		t.Errorf("exit %d, %v, %s", code, err, out)
	}
}
