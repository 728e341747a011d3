package check

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"countersign.dev/authority/verify"
)

// verdict is what was found, ready to print.
type verdict struct {
	Valid      bool               `json:"valid"`
	Reason     string             `json:"reason,omitempty"`
	PAJWT      verify.Report      `json:"pa_jwt,omitempty"`
	Checks     verify.Report      `json:"checks"`
	Status     verify.Report      `json:"status_list,omitempty"`
	Delegation *verify.Delegation `json:"delegation,omitempty"`
}

// judge looks at the pa-jwt first, as a Brand does (PACT §5.5), then at the
// token. The error is a failure to judge, never a judgement.
func judge(s subject) (verdict, error) {
	var v verdict
	opts := verify.Options{Issuer: s.issuer, Audience: s.audience, Now: s.now}
	switch {
	case s.paJWT == "":
		opts.Alone = true
	case s.paKeys == nil:
		issuer := claimedIssuer(s.paJWT)
		if issuer == "" {
			return v, errors.New("the pa-jwt has no iss that can be read")
		}
		opts.Agent = issuer
		v.PAJWT = verify.Report{{Name: "signature", Result: verify.Skipped, Detail: "no --pa-jwks; its iss is taken on trust"}}
	default:
		agent, report, err := verify.PAJWT(*s.paKeys, s.paJWT, s.paAudience, s.now)
		v.PAJWT = report
		if err != nil {
			v.Reason = "the pa-jwt: " + err.Error()
			return v, nil
		}
		opts.Agent = agent.Issuer
	}
	d, report, err := verify.Token(s.keys, s.token, opts)
	v.Checks = report
	if err != nil {
		v.Reason = reason(s, err)
		return v, nil
	}
	if s.status != "" {
		if v.Status, err = judgeStatus(s, d); err != nil {
			v.Reason = err.Error()
			return v, nil
		}
	}
	v.Valid, v.Delegation = true, &d
	return v, nil
}

// judgeStatus looks at the list first, then at what it says of the token.
func judgeStatus(s subject, d verify.Delegation) (verify.Report, error) {
	list, report, err := verify.ParseStatusList(s.keys, s.status, s.now)
	if err != nil {
		return report, err
	}
	of, err := list.Judge(d, s.now)
	return append(report, of...), err
}

// reason says why the token is refused. That the key is unknown explains nothing
// to somebody who took another Brand's token or card by mistake, so the token's
// own word is told where it differs. It is nobody's proof and changes nothing
// about the refusal.
func reason(s subject, refused error) string {
	claimed := claimedIssuer(s.token)
	if errors.Is(refused, verify.ErrUnknownKey) && claimed != "" && claimed != s.issuer {
		return fmt.Sprintf("the token names another issuer: %.200q, and not this Brand's, %q", claimed, s.issuer)
	}
	return refused.Error()
}

// claimedIssuer reads the iss of a JWT that nobody verified; empty where none
// can be read.
func claimedIssuer(jwt string) string {
	var claims map[string]json.RawMessage
	var issuer string
	parts := strings.Split(jwt, ".")
	if len(parts) == 3 {
		payload, _ := base64.RawURLEncoding.DecodeString(parts[1]) // nothing decoded is no JSON below
		_ = json.Unmarshal(payload, &claims)
		_ = json.Unmarshal(claims["iss"], &issuer)
	}
	return issuer
}

var marks = map[verify.Result]string{verify.Passed: "✓", verify.Failed: "✗", verify.Skipped: "–", verify.Flagged: "!"}

func (v verdict) print(w io.Writer) error {
	var b strings.Builder
	section := func(title string, report verify.Report) {
		if len(report) == 0 {
			return
		}
		fmt.Fprintf(&b, "%s\n", title)
		for _, check := range report {
			fmt.Fprintf(&b, "  %s %-10s %s\n", marks[check.Result], check.Name, printable(check.Detail))
		}
	}
	section("The pa-jwt", v.PAJWT)
	section("The delegation token", v.Checks)
	section("The status list", v.Status)
	switch {
	case v.Valid && len(v.Status) > 0:
		fmt.Fprintln(&b, "\nIt holds, and had not been revoked or suspended when the list was made.")
	case v.Valid:
		fmt.Fprintln(&b, "\nIt holds, as far as can be known offline: whether it was revoked since, the Brand's status list says (--status).")
	default:
		fmt.Fprintf(&b, "\nRefused: %s\n", printable(v.Reason))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (v verdict) printJSON(w io.Writer) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(v)
}

// printable keeps claims, which strangers wrote, from steering the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
}
