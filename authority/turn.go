package authority

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"countersign.dev/authority/canonical"
	"countersign.dev/authority/receiptlog"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"github.com/google/uuid"
)

// What a turn may hold.
const (
	maxTurnID  = 256 // characters of a context's or message's id
	maxTool    = 128
	maxActions = 100
	// maxContent bounds scopes and actions together, in bytes: a receipt is never
	// larger than those who verify it read.
	maxContent = 40 << 10
)

// clockSkew is how far apart the clocks of a Brand, of ours and of another
// instance's may be.
const clockSkew = 30 * time.Second

// served is a turn on its way to a receipt.
type served struct {
	Turn
	token   claims
	payload []byte // of the token
	undated bool   // nobody says when it began
	grant   uuid.UUID
	scopes  []string // each once
	actions []receiptlog.Action
	content []byte // digest of what a retry must repeat
	came    time.Time
	facts   turnFacts
	lost    map[string]time.Time // scopes that the grant lost lately
	shifted map[string]time.Time // scopes that have other details now than in the token, and since when
	brand   *tenants.Brand

	at     time.Time // the receipt's ts
	jws    string
	result *Result
}

// read takes a turn apart as far as no database is needed.
func (a *Authority) read(ctx context.Context, brand *tenants.Brand, t Turn, now time.Time) (*served, error) {
	s := &served{Turn: t, came: now, brand: brand}
	for _, id := range []string{t.ContextID, t.MessageID} {
		if !isName(id, maxTurnID) {
			return nil, fmt.Errorf("%w: contextId and messageId are 1 to %d characters", ErrMalformed, maxTurnID)
		}
	}
	if s.Began.IsZero() {
		s.Began, s.undated = now, true
	}
	if s.Began.After(now.Add(clockSkew)) {
		return nil, fmt.Errorf("%w: it begins in the future", ErrMalformed)
	}
	if s.Began.After(now) {
		s.Began = now
	}
	if err := s.readActions(); err != nil {
		return nil, err
	}
	for _, scope := range t.ScopesUsed {
		if !slices.Contains(s.scopes, scope) {
			s.scopes = append(s.scopes, scope)
		}
	}
	repeats := map[string]any{"scopesUsed": s.scopes, "actions": s.actions}
	for name, hash := range map[string]string{"messageHash": t.MessageHash, "replyHash": t.ReplyHash} {
		if hash == "" {
			continue
		}
		if _, ok := receiptlog.Hash(hash); !ok {
			return nil, fmt.Errorf("%w: %s is not the base64url of 32 bytes", ErrMalformed, name)
		}
		if t.Kept.IsZero() { // what we have kept has one text
			repeats[name] = hash
		}
	}
	content, err := canonical.Of(repeats)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if len(content) > maxContent {
		return nil, fmt.Errorf("%w: scopes and actions are more than %d KiB", ErrMalformed, maxContent>>10)
	}
	sum := sha256.Sum256(content)
	s.content = sum[:]
	return s, s.readToken(ctx, a.proof, brand)
}

// readToken believes nothing of a token but what the Brand's own keys signed for
// this Brand. Whether it has ended is another question: settle.
func (s *served) readToken(ctx context.Context, proof Verifier, brand *tenants.Brand) error {
	if err := s.proveToken(ctx, proof, brand); err != nil {
		return err
	}
	if s.Agent != "" && s.Agent != s.token.ClientID { // M18
		return ErrToken
	}
	if time.Unix(s.token.IssuedAt, 0).After(s.Began.Add(clockSkew)) {
		return ErrToken // nothing began under it before it was there
	}
	var err error
	if s.grant, err = uuid.Parse(s.token.GrantID); err != nil {
		return ErrToken
	}
	return nil
}

func (s *served) proveToken(ctx context.Context, proof Verifier, brand *tenants.Brand) error {
	if s.Claims != nil { // it was, and the Brand may have moved since
		s.payload = s.Claims
		if s.token.read(s.Claims) != nil {
			return ErrToken
		}
		return nil
	}
	payload, err := proof.Verify(ctx, brand.ID, signing.TypToken, s.Token)
	if errors.Is(err, signing.ErrNotOurs) || errors.Is(err, signing.ErrNoKey) {
		return ErrToken
	}
	if err != nil {
		return fmt.Errorf("verify token at %s: %w", brand.ID, err)
	}
	if s.token.read(payload) != nil || s.token.Issuer != brand.Issuer || s.token.Audience != brand.InterfaceURL {
		return ErrToken
	}
	s.payload = payload
	return nil
}

func (s *served) readActions() error {
	if len(s.Actions) > maxActions {
		return fmt.Errorf("%w: more than %d actions", ErrMalformed, maxActions)
	}
	for _, a := range s.Actions {
		if !isName(a.Tool, maxTool) {
			return fmt.Errorf("%w: a tool is named in 1 to %d characters", ErrMalformed, maxTool)
		}
		if a.Args != nil && a.ArgsHash != "" {
			return fmt.Errorf("%w: an action has arguments or their hash, not both", ErrMalformed)
		}
		hash, err := argsHash(a)
		if err != nil {
			return fmt.Errorf("%w: arguments: %w", ErrMalformed, err)
		}
		s.actions = append(s.actions, receiptlog.Action{Tool: a.Tool, ArgsHash: hash})
	}
	return nil
}

func argsHash(a Action) (string, error) {
	if a.Args != nil {
		return canonical.Hash(a.Args)
	}
	if a.ArgsHash == "" {
		return "", nil
	}
	if _, ok := receiptlog.Hash(a.ArgsHash); !ok {
		return "", errors.New("argsHash is not the base64url of 32 bytes")
	}
	return a.ArgsHash, nil
}

// isName reports whether text is printable, and of 1 to most characters.
func isName(text string, most int) bool {
	return text != "" && utf8.ValidString(text) && utf8.RuneCountInString(text) <= most &&
		!strings.ContainsFunc(text, unicode.IsControl)
}

// payloadOf is what a JWS of our own says.
func payloadOf(jws string) json.RawMessage {
	_, rest, _ := strings.Cut(jws, ".")
	body, _, _ := strings.Cut(rest, ".")
	payload, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return nil
	}
	return payload
}

// signingInput is what the signature of a JWS covers.
func signingInput(jws string) string { return jws[:max(0, strings.LastIndexByte(jws, '.'))] }
