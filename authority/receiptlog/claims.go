package receiptlog

import (
	"time"

	"countersign.dev/authority/canonical"
)

// Stamp is how times are written: RFC 3339 in UTC, always to the millisecond.
const Stamp = "2006-01-02T15:04:05.000Z07:00"

// Action is one thing done in a turn.
type Action struct {
	Tool     string `json:"tool"`
	ArgsHash string `json:"argsHash,omitempty"`
}

// Claims are the seven claims of a receipt (M24).
type Claims struct {
	GrantID    string   `json:"grantId"`
	User       string   `json:"user"`
	PA         string   `json:"pa"`
	Brand      string   `json:"brand"` // the interface URL
	ScopesUsed []string `json:"scopesUsed"`
	Actions    []Action `json:"actions"`
	TS         string   `json:"ts"`
}

// Payload is the claims as they are signed.
func (c Claims) Payload() ([]byte, error) {
	if c.ScopesUsed == nil {
		c.ScopesUsed = []string{}
	}
	if c.Actions == nil {
		c.Actions = []Action{}
	}
	return canonical.Of(c)
}

// Task binds the receipts of one conversation in their order: Root is the hash of
// a tree of RFC 6962 whose leaves are the receipts' claims, canonical.
type Task struct {
	GrantID   string `json:"grantId"`
	User      string `json:"user"`
	PA        string `json:"pa"`
	Brand     string `json:"brand"`
	ContextID string `json:"contextId"`
	Count     int64  `json:"count"`
	Root      string `json:"root"` // base64url
	TS        string `json:"ts"`
}

// Checkpoint says how the log stood: Root is the tree's hash over Size entries.
type Checkpoint struct {
	Log  string `json:"log"` // {issuer}/log
	Size int64  `json:"size"`
	Root string `json:"root"` // base64url
	TS   string `json:"ts"`
}

// At formats a time as all of these name it.
func At(t time.Time) string { return t.UTC().Format(Stamp) }
