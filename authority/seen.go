package authority

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Seen is what a person was shown, word for word, and how it came to them.
// Kept as it is, so that years later an auditor reads what was agreed to.
type Seen struct {
	Language  string      `json:"language"` // BCP 47, of the texts
	Agent     string      `json:"agent"`    // its issuer
	AgentName string      `json:"agent_name"`
	AgentLogo string      `json:"agent_logo,omitempty"` // the hash of the picture
	Scopes    []SeenScope `json:"scopes"`
	Days      []int       `json:"days,omitempty"` // the choices of how long
	Notices   []string    `json:"notices,omitempty"`
	Reason    string      `json:"reason,omitempty"` // the Brand's words, at a step-up
	Login     SeenLogin   `json:"login"`
	// Outdated: a no was given on a page that showed former words; these are
	// the present ones.
	Outdated bool `json:"outdated,omitempty"`
}

// SeenScope is one row of the page.
type SeenScope struct {
	ID          string `json:"id"`
	Description string `json:"description"`
	Undo        string `json:"undo,omitempty"`
	Effect      string `json:"effect"`
	Impact      string `json:"impact"`
	Held        bool   `json:"held"` // already allowed, and marked so
	// Details are the sentences beneath it (RFC 9396).
	Details []string `json:"details,omitempty"`
}

// SeenLogin is how the person had signed in.
type SeenLogin struct {
	At    time.Time `json:"at"`
	Fresh bool      `json:"fresh"` // for this very request
	// By is the issuer that vouched for them then: an OpenID provider, or the Brand's
	// own page. A Brand's connection may change later; empty: from before it was kept.
	By string `json:"by,omitempty"`
}

// digest says under which words, in which language, a scope was agreed to.
type digest struct {
	Language string `json:"language"`
	Words    string `json:"words"`
}

func digestOf(lang string, s SeenScope) digest {
	s.Held, s.Details = false, nil // the words of the scope itself
	raw, _ := json.Marshal(s)      //nolint:errchkjson // strings only
	sum := sha256.Sum256(raw)
	return digest{Language: lang, Words: base64.RawURLEncoding.EncodeToString(sum[:])}
}

// digests are those of the given scopes.
func (s Seen) digests(ids []string) map[string]digest {
	out := make(map[string]digest)
	for _, one := range s.Scopes {
		if slices.Contains(ids, one.ID) {
			out[one.ID] = digestOf(s.Language, one)
		}
	}
	return out
}

// SeenAs is the scope as the page shows it in the language.
func SeenAs(s tenants.Scope, lang string) SeenScope {
	text := s.Text(lang)
	return SeenScope{ID: s.ID, Description: text.Description, Undo: text.Undo, Effect: s.Effect, Impact: s.Impact}
}

// consentRecord is what stands in the database: the page and the answer.
type consentRecord struct {
	Seen
	Answer   string   `json:"answer"`
	Ticked   []string `json:"ticked"`
	Unticked []string `json:"unticked"`
	ForDays  int      `json:"for_days,omitempty"`
	At       string   `json:"at"`
	Subject  string   `json:"subject"`
}

type keptSeen struct{ id, hash string }

// keepSeen stores what the person saw and answered; the id and the hash go into
// the trail, which nobody can change afterwards.
func (c *change) keepSeen(ctx context.Context, d Decision, answer string, grant uuid.UUID) (keptSeen, error) {
	r := consentRecord{
		Seen: d.Seen, Answer: answer, Ticked: []string{}, Unticked: []string{},
		At: c.now.Format(time.RFC3339Nano), Subject: d.Subject,
	}
	for _, s := range d.Seen.Scopes {
		switch {
		case answer == "continued": // a page without boxes
		case answer != "denied" && slices.Contains(d.Ticked, s.ID):
			r.Ticked = append(r.Ticked, s.ID)
		default: // whatever stood ticked beside a no was not agreed to
			r.Unticked = append(r.Unticked, s.ID)
		}
	}
	if answer == "allowed" {
		r.ForDays = d.Days
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return keptSeen{}, fmt.Errorf("record of consent: %w", err)
	}
	sum := sha256.Sum256(raw)
	id := newID()
	const q = `
		INSERT INTO consents (brand_id, id, request_id, grant_id, subject, at, answer, record, hash)
		VALUES (@brand, @id, nullif(@request, '00000000-0000-0000-0000-000000000000'::uuid),
		        nullif(@grant, '00000000-0000-0000-0000-000000000000'::uuid), @subject, @now, @answer, @record, @hash)`
	_, err = c.Exec(ctx, q, pgx.NamedArgs{
		"brand": c.brand, "id": id, "request": d.Request, "grant": grant, "subject": d.Subject,
		"now": c.now, "answer": answer, "record": json.RawMessage(raw), "hash": sum[:],
	})
	if err != nil {
		return keptSeen{}, fmt.Errorf("record of consent: %w", err)
	}
	return keptSeen{id: id.String(), hash: base64.RawURLEncoding.EncodeToString(sum[:])}, nil
}
