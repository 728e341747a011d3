package events

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"github.com/google/uuid"
)

// The events of CAEP 1.0 and of the Shared Signals Framework 1.0 that ours are.
const (
	caep            = "https://schemas.openid.net/secevent/caep/event-type/"
	caepEstablished = caep + "session-established"
	caepRevoked     = caep + "session-revoked"
	caepChanged     = caep + "token-claims-change"
	ssfVerification = "https://schemas.openid.net/secevent/ssf/event-type/verification"
)

// securityEvent is the claims set of a Security Event Token (RFC 8417 §2.2). It has no
// exp and no sub, so that no receiver takes it for an access token (§4.1).
type securityEvent struct {
	Issuer   string                 `json:"iss"`
	Audience string                 `json:"aud"` // the endpoint's address
	ID       uuid.UUID              `json:"jti"` // the same at every attempt
	IssuedAt int64                  `json:"iat"`
	At       int64                  `json:"toe"`
	Subject  any                    `json:"sub_id"` // RFC 9493
	Events   map[string]eventClaims `json:"events"`
	// Message is what a webhook in JSON says, for whoever needs more than CAEP has
	// words for.
	Message json.RawMessage `json:"https://countersign.dev/event"`
}

type eventClaims struct {
	At        int64             `json:"event_timestamp,omitempty"`
	Initiator string            `json:"initiating_entity,omitempty"`
	Reason    map[string]string `json:"reason_admin,omitempty"`
	Claims    map[string]any    `json:"claims,omitempty"`
}

// The subject is a session, which the grant is, of a user through an application.
type (
	complexSubject struct {
		Format      string    `json:"format"`
		Session     opaqueID  `json:"session"`
		User        issuedSub `json:"user"`
		Application uriID     `json:"application"`
	}
	opaqueID struct {
		Format string `json:"format"`
		ID     string `json:"id"`
	}
	issuedSub struct {
		Format  string `json:"format"`
		Issuer  string `json:"iss"`
		Subject string `json:"sub"`
	}
	uriID struct {
		Format string `json:"format"`
		URI    string `json:"uri"`
	}
)

// SecurityEvent is the claims of the event, told to the endpoint by a delivery with the
// id. message is what Message says of it.
func SecurityEvent(to tenants.Receiver, id uuid.UUID, e authority.Event, message []byte, now time.Time) ([]byte, error) {
	set := securityEvent{
		Issuer: to.Issuer, Audience: to.URL, ID: id, IssuedAt: now.Unix(), At: e.At.Unix(), Message: message,
	}
	if e.Type == authority.EventTest {
		set.Subject = opaqueID{"opaque", to.ID}
		set.Events = map[string]eventClaims{ssfVerification: {}}
	} else {
		var d authority.EventData
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return nil, fmt.Errorf("read event %d of %s: %w", e.Seq, e.Brand, err)
		}
		set.Subject = complexSubject{
			"complex", opaqueID{"opaque", e.Grant.String()}, issuedSub{"iss_sub", to.Issuer, d.Subject}, uriID{"uri", d.Agent},
		}
		claims := eventClaims{At: e.At.Unix()}
		uri := caepRevoked
		switch e.Type {
		case "grant.created":
			uri = caepEstablished
		case "grant.widened", "grant.narrowed":
			uri, claims.Claims = caepChanged, map[string]any{"scope": strings.Join(d.Scopes, " ")}
			if len(e.Details) > 0 {
				claims.Claims["authorization_details"] = e.Details
			}
		default:
			claims.Initiator, claims.Reason = initiator(d.Reason), map[string]string{"en": d.Reason}
		}
		set.Events = map[string]eventClaims{uri: claims}
	}
	claims, err := json.Marshal(set)
	if err != nil {
		return nil, fmt.Errorf("write event %d of %s: %w", e.Seq, e.Brand, err)
	}
	return claims, nil
}

// initiator is who brought the end about, in CAEP's words.
func initiator(reason string) string {
	switch reason {
	case "revoked_by_user", "all_unticked", "revoked_by_agent": // an agent gives back in its user's name
		return "user"
	case "expired", "idle", "reuse_detected":
		return "policy"
	case "revoked_by_system":
		return "system"
	}
	return "admin"
}

// letter is what the endpoint is sent of each event: its message, or a Security
// Event Token of it, signed with the Brand's key.
func (c *Courier) letter(ctx context.Context, l line, to tenants.Receiver, d claimed, e authority.Event) ([]byte, error) {
	message, err := Message(e)
	if err != nil || to.Format != tenants.FormatSET {
		return message, err
	}
	claims, err := SecurityEvent(to, d.ID, e, message, c.now())
	if err != nil {
		return nil, err
	}
	jws, err := c.signer.Sign(ctx, l.brand, signing.TypSecurityEvent, claims)
	return []byte(jws), err
}
