package verify

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"countersign.dev/authority/canonical"
	"countersign.dev/authority/receiptlog"
)

// maxReceipt bounds a receipt. The authority signs none with more than 40 KiB of
// scopes and actions.
const maxReceipt = 64 << 10

// ReceiptOptions say what a receipt is compared with. What is empty is not compared,
// and the report says so.
type ReceiptOptions struct {
	Brand string   // the interface URL, byte for byte; must be given
	Grant string   // grantId of the delegation
	User  string   // its sub
	Agent string   // its client_id
	Held  []string // its scopes: none other may have been used; nil: not compared
	// Fresh is how far ts may be from Now, for a receipt that has just come; zero:
	// it may be of any time, but not of the future.
	Fresh time.Duration
	Now   time.Time // zero: the present

	// Archive holds the Brand's revoked keys. What one of them signed counts only
	// with Logged (wire.md §2).
	Archive Archive
	// Logged shows that the receipt was in the log; nil: not looked at.
	Logged *Logged
}

// Receipt verifies a receipt (PACT §5.6, M24): what was signed, and that claims, as
// they came beside it, are the same; nil claims are not compared. On a refusal the
// claims are empty and the error is the first rule broken.
func Receipt(keys Keys, jws string, claims []byte, opts ReceiptOptions) (receiptlog.Claims, Report, error) {
	var report Report
	if opts.Brand == "" {
		return receiptlog.Claims{}, nil, fmt.Errorf("%w: the Brand's interface URL must be given", ErrOptions)
	}
	if opts.Now.IsZero() {
		opts.Now = time.Now()
	}
	e, err := unsealArchived(&report, keys, jws, "pact-receipt+jws", opts)
	if err != nil {
		return receiptlog.Claims{}, report, err
	}
	c, err := readReceipt(&report, e.payload, claims, opts)
	if err != nil {
		return receiptlog.Claims{}, report, err
	}
	if opts.Logged != nil {
		if err := opts.Archive.Vouches(opts.Logged.Checkpoint); err != nil {
			err = report.judge("checkpoint", err, "")
			return receiptlog.Claims{}, report, err
		}
		if err := opts.Logged.include(&report, jws); err != nil {
			return receiptlog.Claims{}, report, err
		}
	}
	return c, report, nil
}

// sealed is a JWS whose signature was verified.
type sealed struct {
	envelope
	payload []byte
}

// unsealArchived is unseal that also takes a revoked key, where the log shows that
// the receipt is older than the compromise.
func unsealArchived(report *Report, keys Keys, jws, typ string, opts ReceiptOptions) (sealed, error) {
	header := namesKey(typ)
	if revoked, ok := opts.Archive.find(kidIn(jws)); ok {
		e, err := unseal(report, Keys{set: revoked.keys}, jws, maxReceipt, header)
		if err != nil {
			return sealed{}, err
		}
		if err := report.judge("revoked key", opts.Archive.outlived(revoked, opts.Logged), "logged before "+stamp(revoked.at)+", as another key signed or a witness saw"); err != nil {
			return sealed{}, err
		}
		return sealed{e, payloadIn(jws)}, nil
	}
	e, err := unseal(report, keys, jws, maxReceipt, header)
	return sealed{e, payloadIn(jws)}, err
}

// namesKey is the header of what is kept for years: of this typ, and with a kid. A
// token without one may be of any published key; here it matters which, since the
// key may have been stolen since, and then passes for none of the revoked.
func namesKey(typ string) func(envelope) error {
	return func(e envelope) error {
		if err := tokenType(e.header, typ); err != nil {
			return err
		}
		if e.kid == "" {
			return fmt.Errorf("%w: the header names none", ErrUnknownKey)
		}
		return nil
	}
}

// readReceipt judges every claim and returns the first broken rule.
func readReceipt(report *Report, payload, beside []byte, opts ReceiptOptions) (receiptlog.Claims, error) {
	var first error
	judge := func(name string, err error, detail string) {
		if report.judge(name, err, detail); err != nil && first == nil {
			first = err
		}
	}
	c, err := receiptClaims(payload)
	judge("claims", err, "the seven of a receipt, canonical")
	if err != nil {
		return c, err
	}
	if beside == nil {
		report.skip("beside", "no claims came beside the JWS")
	} else {
		form, err := canonical.JSON(beside)
		if err != nil || !bytes.Equal(form, payload) {
			err = ErrDiffers
		}
		judge("beside", err, "the claims beside the JWS are what was signed")
	}
	same := func(name, got, want string, refusal error) {
		switch {
		case want == "":
			report.skip(name, fmt.Sprintf("%q; nothing to compare with", got))
		case got != want:
			judge(name, fmt.Errorf("%w: %q instead of %q", refusal, got, want), "")
		default:
			judge(name, nil, got)
		}
	}
	same("brand", c.Brand, opts.Brand, ErrBrand)
	same("grantId", c.GrantID, opts.Grant, ErrGrant)
	same("user", c.User, opts.User, ErrUser)
	same("pa", c.PA, opts.Agent, ErrNotTransferable)
	switch beyond := slices.IndexFunc(c.ScopesUsed, func(s string) bool { return !slices.Contains(opts.Held, s) }); {
	case opts.Held == nil:
		report.skip("scopesUsed", strings.Join(c.ScopesUsed, " ")+"; nothing to compare with")
	case beyond >= 0:
		judge("scopesUsed", fmt.Errorf("%w: %q was not held", ErrScope, c.ScopesUsed[beyond]), "")
	default:
		judge("scopesUsed", nil, "all were held")
	}
	judge("ts", timely(c.TS, opts), c.TS)
	return c, first
}

// timely judges a ts: to the millisecond, with an offset, not of the future.
func timely(ts string, opts ReceiptOptions) error {
	at, err := time.Parse("2006-01-02T15:04:05.000Z07:00", ts)
	switch {
	case err != nil:
		return fmt.Errorf("%w: ts is not RFC 3339 to the millisecond", ErrClaims)
	case at.After(opts.Now.Add(skew)):
		return fmt.Errorf("%w: %s, and it is %s", ErrNotYetValid, ts, stamp(opts.Now))
	case opts.Fresh > 0 && opts.Now.Sub(at) > opts.Fresh:
		return fmt.Errorf("%w: %s, and it is %s", ErrExpired, ts, stamp(opts.Now))
	}
	return nil
}

// receiptClaims reads exactly the seven claims, each of its kind (M24).
func receiptClaims(payload []byte) (receiptlog.Claims, error) {
	var c receiptlog.Claims
	m, err := parseObject(payload)
	if err == nil {
		err = json.Unmarshal(payload, &c)
	}
	if err != nil {
		return c, fmt.Errorf("%w: %v", ErrClaims, err)
	}
	// Written again they must be the same to the byte: no member more, none under
	// another spelling, and in the canonical form.
	if form, err := c.Payload(); err != nil || !bytes.Equal(form, payload) {
		return c, fmt.Errorf("%w: not the seven in their canonical form", ErrClaims)
	}
	for _, name := range []string{"grantId", "user", "pa", "brand", "ts"} {
		if _, err := m.text(name); err != nil {
			return c, fmt.Errorf("%w: %w", ErrClaims, err)
		}
	}
	for _, a := range c.Actions {
		if _, ok := receiptlog.Hash(a.ArgsHash); a.Tool == "" || a.ArgsHash != "" && !ok {
			return c, fmt.Errorf("%w: an action without a tool, or whose argsHash is none", ErrClaims)
		}
	}
	return c, nil
}

// Actions compares what a receipt says was done with arguments that somebody has:
// nil where their hash is the action's.
func Actions(a receiptlog.Action, args []byte) error {
	hash, err := canonical.Hash(args)
	if err == nil && hash != a.ArgsHash {
		err = fmt.Errorf("%w: arguments of %q", ErrDiffers, a.Tool)
	}
	return err
}

// kidIn reads the kid of a JWS that nobody verified.
func kidIn(jws string) string {
	head, _, _ := strings.Cut(jws, ".")
	raw, err := base64.RawURLEncoding.DecodeString(head)
	if err != nil {
		return ""
	}
	m, err := parseObject(raw)
	if err != nil {
		return ""
	}
	kid, _ := m.text("kid")
	return kid
}

func payloadIn(jws string) []byte {
	_, rest, _ := strings.Cut(jws, ".")
	body, _, _ := strings.Cut(rest, ".")
	payload, _ := decodePart(body) // unseal has decoded it
	return payload
}
