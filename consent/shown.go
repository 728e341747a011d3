package consent

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"countersign.dev/authority"
	"countersign.dev/tenants"
)

// shape is how the question stands on a page.
type shape string

const (
	inFull  shape = "full"
	again   shape = "again" // in full, with the word that the list changed
	inBrief shape = "brief" // no boxes, one Continue
)

// shown is what a form says of the page it stands on. The form's token vouches
// for it, so an answer is recorded for the page that was read: in that language
// and shape, whatever the browser speaks and the Brand wants by now.
type shown struct {
	language string
	shape    shape
	// digest is of everything that the person sees and that could change under
	// the open page: the offered scopes with all their words, the version of the
	// grant that is held (B42), and whatever else the record will repeat.
	digest string
}

func (s shown) String() string {
	return strings.Join([]string{s.language, string(s.shape), s.digest}, ".")
}

// parseShown reads a form's; what is none of ours equals none of ours.
func parseShown(raw string) shown {
	language, rest, _ := strings.Cut(raw, ".")
	of, digest, _ := strings.Cut(rest, ".")
	return shown{language, shape(of), digest}
}

// shown is what the question looks like now.
func (v *visit) shown(q *authority.Question, language string, of shape) (shown, error) {
	var scopes []tenants.Scope
	var details []string
	may := offered(q)
	for _, s := range v.brand.Scopes {
		if slices.Contains(may, s.ID) {
			scopes = append(scopes, s)
			details = append(details, v.said(q, s.ID, language)...)
		}
	}
	raw, err := json.Marshal(struct {
		Scopes            []tenants.Scope
		Version           int
		Days              []int
		AgentName, Reason string
		OtherUser         bool
		Details           []string `json:",omitempty"`
		AgentLogo         string   `json:",omitempty"`
	}{scopes, q.GrantVersion, v.brand.GrantDays, q.AgentName, q.Reason, q.OtherUser, details, q.AgentLogo})
	if err != nil {
		return shown{}, fmt.Errorf("digest of the question: %w", err)
	}
	sum := sha256.Sum256(raw)
	return shown{language, of, base64.RawURLEncoding.EncodeToString(sum[:])}, nil
}

// seen is what that page said, for the record.
func (v *visit) seen(s standing, page shown) authority.Seen {
	q := s.question
	out := authority.Seen{
		Language: page.language, Agent: q.Agent, AgentName: q.AgentName, AgentLogo: q.AgentLogo, Reason: q.Reason, Login: s.signIn(v.h.Now()),
	}
	if page.shape != inBrief {
		out.Days = v.brand.GrantDays
	}
	if page.shape == again {
		out.Notices = append(out.Notices, "list_changed")
	}
	if q.OtherUser {
		out.Notices = append(out.Notices, "another_user_holds_a_grant")
	}
	may := offered(q)
	for _, scope := range v.brand.Scopes {
		if slices.Contains(may, scope.ID) {
			row := authority.SeenAs(scope, page.language)
			row.Held, row.Details = slices.Contains(q.Held, scope.ID), v.said(q, scope.ID, page.language)
			out.Scopes = append(out.Scopes, row)
		}
	}
	return out
}

// said are the details of a scope, each as one text.
func (v *visit) said(q *authority.Question, scope, language string) []string {
	var out []string
	for _, one := range q.DetailsOf(scope) {
		out = append(out, tenants.Plain(v.brand.SayDetail(one.Value, language)))
	}
	return out
}
