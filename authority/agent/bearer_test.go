package agent_test

import (
	"errors"
	"strings"
	"testing"

	"countersign.dev/authority/agent"
	"countersign.dev/authority/agent/agenttest"
)

func TestBearerIsExactlyOneToken(t *testing.T) { // B81
	longest := strings.Repeat("x", 8<<10)
	for _, tt := range []struct {
		name  string
		in    []string
		want  string
		whose error
	}{
		{"as usual", []string{"Bearer a.b.c"}, "a.b.c", nil},
		{"scheme in lower case", []string{"bearer a.b.c"}, "a.b.c", nil},
		{"scheme in capitals", []string{"BEARER a.b.c"}, "a.b.c", nil},
		{"several spaces", []string{"Bearer   a.b.c"}, "a.b.c", nil},
		{"8 KiB", []string{"Bearer " + longest}, longest, nil},
		{"more than 8 KiB", []string{"Bearer " + longest + "x"}, "", agent.ErrTooLong},
		{"no header", nil, "", agent.ErrBearer},
		{"empty", []string{""}, "", agent.ErrBearer},
		{"no token", []string{"Bearer"}, "", agent.ErrBearer},
		{"only a space", []string{"Bearer "}, "", agent.ErrBearer},
		{"no scheme", []string{"a.b.c"}, "", agent.ErrBearer},
		{"tab for space", []string{"Bearer\ta.b.c"}, "", agent.ErrBearer},
		{"space before", []string{" Bearer a.b.c"}, "", agent.ErrBearer},
		{"Basic", []string{"Basic YTpi"}, "", agent.ErrBearer},
		{"DPoP", []string{"DPoP a.b.c"}, "", agent.ErrBearer},
		{"two headers", []string{"Bearer a.b.c", "Bearer a.b.c"}, "", agent.ErrBearer},
		{"a bad and a good header", []string{"Basic YTpi", "Bearer a.b.c"}, "", agent.ErrBearer},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := agent.Bearer(tt.in)
			if got != tt.want || !errors.Is(err, tt.whose) {
				t.Errorf("got %q, %v; want %q, %v", got, err, tt.want, tt.whose)
			}
			if err != nil && !errors.Is(err, agent.ErrRefused) {
				t.Errorf("%v is no refusal", err)
			}
		})
	}
}

// Two tokens in one header are one malformed token.
func TestListOfTokensIsRefused(t *testing.T) { // B81
	w := newWorld(t)
	pa := w.pa(t)
	token, err := agent.Bearer([]string{"Bearer " + pa.Token(t, agenttest.Claims{Sub: "a"}) + ", Bearer " + pa.Token(t, agenttest.Claims{Sub: "b"})})
	if err != nil {
		t.Fatal(err)
	}
	w.refuses(t, token, agent.ErrMalformed)
}
