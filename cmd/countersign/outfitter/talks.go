package outfitter

import (
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"countersign.dev/authority/a2a/surface"
	"countersign.dev/authority/verify"
	"github.com/google/uuid"
)

// What is kept, and how much one person's agent may say, and one agent in all.
const (
	mostTalks      = 10_000
	mostOfOneAgent = mostTalks / 10
	mostTurns      = 1_000
	perMinute      = 60
	perAgentMinute = 600
	turnWindow     = time.Minute
)

// talks are the conversations, in memory: a demo forgets them when it ends.
type talks struct {
	now    func() time.Time
	mu     sync.Mutex
	by     map[uuid.UUID]*talk
	opened map[opening]uuid.UUID // by the message that began it
	said   map[verify.Agent][]time.Time
}

func newTalks(now func() time.Time) *talks {
	return &talks{now: now, by: map[uuid.UUID]*talk{}, opened: map[opening]uuid.UUID{}, said: map[verify.Agent][]time.Time{}}
}

// opening is a message that names no conversation. Whoever sends it again, because
// the reply was lost, means the same one.
type opening struct {
	by      verify.Agent
	message string
}

// talk is one conversation of one agent for one user of its own (M23).
type talk struct {
	opening
	user  string // the Brand user that it runs as, from the first token on; empty: nobody yet
	used  time.Time
	turns map[string]*turn // by messageId
}

type turn struct {
	state state
	grant string // under which it ran
	began time.Time
	does  skill       // acted: what was done
	under verify.Call // and under what, which its receipt is of
	heard said        // what was asked then
	says  said        // what it is answered
	reply []byte      // replied
}

// said is a text and the salt of its hash, which stays for as long as the text does: a
// turn that is countersigned again has the same hashes. Each has its own, so that showing
// one opens no other.
type said struct {
	text string
	salt []byte
}

func newSaid(text string) said {
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // it never fails
	return said{text, salt}
}

func (s said) hash() string { return verify.SaltedHash(s.salt, s.text) }

type state int

const (
	running state = iota // nobody knows yet what comes of it
	waiting              // it came to a step-up, and is heard again
	acted                // done and not countersigned: it gets its receipt when it comes again
	replied
)

// hear gives the message its place. Of any number of the same, one is to be
// served; the others get its reply, or ErrNoReply while there is none.
func (t *talks) hear(c verify.Call, m surface.Message) (uuid.UUID, *turn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, user, grant := t.now(), "", ""
	if c.Delegation != nil {
		user, grant = c.Delegation.User, c.Delegation.Grant
	}
	first := opening{speaker(c), m.ID}
	id, shut := m.Context, surface.ErrContext
	if id == uuid.Nil {
		id, shut = t.opened[first], surface.ErrNoReply // it named no conversation
	}
	one := t.by[id]
	switch {
	case id == uuid.Nil:
	// A conversation of somebody else's, or that runs as another person, is told
	// from none at all by nobody.
	case one == nil, one.by != speaker(c), one.user != "" && one.user != user:
		return id, nil, shut
	default:
		switch before := one.turns[m.ID]; {
		case before == nil && len(one.turns) >= mostTurns:
			return id, nil, surface.Invalid("This conversation is long. Begin another.")
		case before == nil, before.state == waiting:
		case before.state == replied:
			return id, before, nil
		// What was done under one grant is countersigned under no other.
		case before.state == acted && before.grant == grant:
			return id, before, nil
		default:
			return id, nil, surface.ErrNoReply
		}
	}
	if !t.mayTalk(speaker(c), now) {
		return id, nil, surface.ErrBusy
	}
	if one == nil {
		t.makeRoom(c.Agent.Issuer)
		id, one = uuid.New(), &talk{opening: first, turns: map[string]*turn{}}
		t.by[id], t.opened[first] = one, id
	}
	if one.used = now; one.user == "" {
		one.user = user
	}
	fresh := &turn{grant: grant, began: now}
	one.turns[m.ID] = fresh
	return id, fresh, nil
}

// speaker is the agent and its user, and not when the proof of it was made.
func speaker(c verify.Call) verify.Agent {
	return verify.Agent{Issuer: c.Agent.Issuer, Subject: c.Agent.Subject}
}

// waits notes that the turn came to a step-up.
func (t *talks) waits(one *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one.state = waiting
}

// acted notes what was done, on which words and under which delegation: its receipt will
// say so, whatever the message says and shows when it comes again.
func (t *talks) acted(one *turn, c verify.Call, does skill, text string) turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	one.state, one.does, one.under = acted, does, c
	one.heard, one.says = newSaid(text), newSaid(does.says)
	return *one
}

// find is the turn of these ids; nil: it is forgotten.
func (t *talks) find(id uuid.UUID, message string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if talk := t.by[id]; talk != nil {
		return talk.turns[message]
	}
	return nil
}

// replied keeps the reply. It stays the first that was kept, and is what everybody
// gets.
func (t *talks) replied(one *turn, reply []byte) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one.state != replied {
		one.state, one.reply = replied, reply
	}
	return one.reply
}

// look is what is known of a turn.
func (t *talks) look(one *turn) turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return *one
}

// mayTalk keeps to both bounds: an agent that makes up users has its own alone.
// t.mu is held.
func (t *talks) mayTalk(who verify.Agent, now time.Time) bool {
	all := verify.Agent{Issuer: who.Issuer}
	for _, bound := range []struct {
		whose verify.Agent
		most  int
	}{{who, perMinute}, {all, perAgentMinute}} {
		recent := slices.DeleteFunc(t.said[bound.whose], func(at time.Time) bool { return now.Sub(at) >= turnWindow })
		t.said[bound.whose] = recent
		if len(recent) >= bound.most {
			return false
		}
	}
	for one, times := range t.said { // nobody is kept who said nothing lately
		if len(times) == 0 || now.Sub(times[len(times)-1]) >= turnWindow {
			delete(t.said, one)
		}
	}
	t.said[who] = append(t.said[who], now)
	t.said[all] = append(t.said[all], now)
	return true
}

// makeRoom forgets the conversation that was not gone on with for longest: of the
// agent's own where it has many, and of everybody's only where there are too many
// in all. t.mu is held.
func (t *talks) makeRoom(agent string) {
	own := 0
	for _, one := range t.by {
		if one.by.Issuer == agent {
			own++
		}
	}
	if own < mostOfOneAgent && len(t.by) < mostTalks {
		return
	}
	var oldest uuid.UUID
	for id, one := range t.by {
		if own >= mostOfOneAgent && one.by.Issuer != agent {
			continue
		}
		if than := t.by[oldest]; than == nil || one.used.Before(than.used) {
			oldest = id
		}
	}
	delete(t.opened, t.by[oldest].opening)
	delete(t.by, oldest)
}
