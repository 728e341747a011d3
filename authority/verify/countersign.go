package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"countersign.dev/authority/canonical"
	"countersign.dev/authority/receiptlog"
)

// ErrConflict says that another turn was countersigned under this context and
// message id.
var ErrConflict = errors.New("another turn has this message id")

// ErrReceipt says that what came back is no receipt for this turn.
var ErrReceipt = errors.New("not a receipt for this turn")

// receiptType is the typ of a receipt (PACT §5.6).
const receiptType = "pact-receipt+jws"

// Turn is what an agent's message had done under a delegation.
type Turn struct {
	ContextID  string   // of the conversation
	MessageID  string   // of the agent's message; with ContextID the identity of the turn
	ScopesUsed []string // those of the delegation that were needed; may be none
	Acts       []Act    // in the order done; may be none
	// Began is when the message came; zero: now. A turn may end a little after its
	// token or grant did.
	Began time.Time
	// MessageHash and ReplyHash, if given, bind what was said and what was answered into
	// the log: SaltedHash of each, with a salt that you keep beside the text and forget
	// with it. Without them the log says which message was answered, and not what it said.
	MessageHash, ReplyHash string
}

// SaltedHash is the hash of a text as Turn takes it: base64url of SHA-256 over the salt,
// at least 16 random bytes, and the text. Short texts are found by trying where there is
// none.
func SaltedHash(salt []byte, text string) string {
	return receiptlog.HashText(string(salt) + text)
}

// Act is one thing done. Args is encoded as JSON and hashed by the authority; where
// it must not leave the house, ArgsHash is its hash: base64url of SHA-256 over the
// RFC 8785 form. Both empty: it had no arguments; a nil map or pointer in Args is the
// JSON value null.
type Act struct {
	Tool     string
	Args     any
	ArgsHash string
}

// Countersigned is the receipt of a turn. It goes as it is into
// metadata["pact.receipt"] of the answer (M24).
type Countersigned struct {
	JWS    string          `json:"jws"`
	Claims json.RawMessage `json:"claims"`
}

type turnBody struct {
	Token      string    `json:"delegation_token"`
	Agent      string    `json:"agent"` // who showed the token, as its pa-jwt proved (M18)
	ContextID  string    `json:"contextId"`
	MessageID  string    `json:"messageId"`
	ScopesUsed []string  `json:"scopesUsed"`
	Acts       []actBody `json:"actions"`
	Began      string    `json:"began,omitempty"`
	Message    string    `json:"messageHash,omitempty"`
	Reply      string    `json:"replyHash,omitempty"`
}

type actBody struct {
	Tool     string          `json:"tool"`
	Args     json.RawMessage `json:"args,omitempty"`
	ArgsHash string          `json:"argsHash,omitempty"`
}

// Countersign has the authority sign for a turn that was served under the caller's
// delegation (right receipts), and checks that it signed this one. The same turn
// again gives the same receipt, so trying again is safe; another one under the same
// ids is ErrConflict. ErrUnavailable: not now; and where it is ErrWaiting too, the
// authority has the turn, judges it as of now, and signs it by itself as soon as it can.
// Pending keeps either kind.
func (v *Verifier) Countersign(ctx context.Context, c Call, t Turn) (Countersigned, error) {
	body, err := Served{c, t}.body()
	if err != nil {
		return Countersigned{}, err
	}
	var got Countersigned
	err = v.ask(ctx, "/receipts", body, &got)
	if answer := new(RefusedError); errors.As(err, &answer) && answer.Status == http.StatusConflict {
		return Countersigned{}, fmt.Errorf("%w: %w", ErrConflict, err)
	}
	if err != nil {
		return Countersigned{}, err
	}
	if err := v.checkReceipt(ctx, got, *c.Delegation, t); err != nil {
		return Countersigned{}, err
	}
	return got, nil
}

func (t Turn) body(c Call) (turnBody, error) {
	if t.ContextID == "" || t.MessageID == "" {
		return turnBody{}, fmt.Errorf("%w: a turn has a ContextID and a MessageID", ErrOptions)
	}
	b := turnBody{Token: c.token, Agent: c.Agent.Issuer, ContextID: t.ContextID, MessageID: t.MessageID, ScopesUsed: []string{}, Acts: []actBody{}, Message: t.MessageHash, Reply: t.ReplyHash}
	b.ScopesUsed = append(b.ScopesUsed, t.ScopesUsed...)
	for _, act := range t.Acts {
		one := actBody{Tool: act.Tool, ArgsHash: act.ArgsHash}
		if act.Args != nil {
			args, err := json.Marshal(act.Args)
			if err != nil {
				return turnBody{}, fmt.Errorf("arguments of %s: %w", act.Tool, err)
			}
			one.Args = args
		}
		b.Acts = append(b.Acts, one)
	}
	if !t.Began.IsZero() {
		b.Began = t.Began.UTC().Format("2006-01-02T15:04:05.000Z07:00")
	}
	return b, nil
}

// checkReceipt makes sure that the Brand's key signed for this turn, act by act with
// its arguments, and that the claims beside it are the signed ones: what is handed
// on is looked at by others.
func (v *Verifier) checkReceipt(ctx context.Context, got Countersigned, d Delegation, t Turn) error {
	e, err := open(got.JWS, maxReceipt)
	if err == nil {
		err = e.readHeader(got.JWS)
	}
	if err == nil {
		err = tokenType(e.header, receiptType)
	}
	if err == nil {
		err = v.keys.verify(ctx, &e)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrReceipt, err)
	}
	var unread Report // for people who look at one receipt
	c, err := readReceipt(&unread, payloadIn(got.JWS), got.Claims, ReceiptOptions{
		Brand: v.audience, Grant: d.Grant, User: d.User, Agent: d.Agent, Held: d.Scopes, Now: v.now(),
	})
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrReceipt, err)
	case got.Claims == nil:
		return fmt.Errorf("%w: no claims came beside it", ErrReceipt)
	case !t.shows(c.ScopesUsed) || len(c.Actions) != len(t.Acts):
		return fmt.Errorf("%w: it is for other acts or scopes", ErrReceipt)
	}
	for i, act := range c.Actions {
		hash, err := t.Acts[i].hash()
		if err != nil || act.Tool != t.Acts[i].Tool || act.ArgsHash != hash {
			return fmt.Errorf("%w: it is for other acts", ErrReceipt)
		}
	}
	return nil
}

// hash is what a receipt says of the act's arguments; empty: it had none.
func (a Act) hash() (string, error) {
	if a.Args == nil {
		return a.ArgsHash, nil
	}
	args, err := json.Marshal(a.Args)
	if err != nil {
		return "", err
	}
	return canonical.Hash(args)
}

// shows reports whether these are the turn's scopes, in whatever order.
func (t Turn) shows(used []string) bool {
	for _, scope := range t.ScopesUsed {
		if !slices.Contains(used, scope) {
			return false
		}
	}
	return !slices.ContainsFunc(used, func(scope string) bool { return !slices.Contains(t.ScopesUsed, scope) })
}
