package agent

import (
	"crypto/sha256"
	"sync"
	"time"
)

// proof is what a verified signature has shown: these claims, by that key.
type proof struct {
	claims claims
	key    keyID
}

// tokenID is the hash of a token. It serves memory alone: ES256 signatures can
// be rewritten, so one token may have several.
type tokenID [sha256.Size]byte

// proven remembers tokens whose signature has verified, because a signature is
// the dearest step of a poll. It saves that step and no other: audience, times,
// the agent's state and the presence of the key are asked every time.
//
// It holds two generations. When the younger is full or as old as any token can
// get, the older is dropped: bounded memory, and nothing to search or sort.
type proven struct {
	mu         sync.Mutex
	generation int // most tokens of one generation
	turned     time.Time
	young, old map[tokenID]proof
}

func newProven(most int) *proven {
	return &proven{generation: max(1, most/2), young: map[tokenID]proof{}}
}

func (p *proven) find(id tokenID, now time.Time) (proof, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.young[id]; ok {
		return known, true
	}
	known, ok := p.old[id]
	if ok {
		p.keep(id, known, now)
	}
	return known, ok
}

func (p *proven) remember(id tokenID, known proof, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keep(id, known, now)
}

func (p *proven) keep(id tokenID, known proof, now time.Time) {
	if len(p.young) >= p.generation || now.Sub(p.turned) > maxLife+2*skew {
		p.old, p.young, p.turned = p.young, map[tokenID]proof{}, now
	}
	p.young[id] = known
}
