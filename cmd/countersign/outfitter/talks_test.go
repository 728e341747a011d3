package outfitter

import (
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority/a2a/surface"
	"countersign.dev/authority/verify"
	"github.com/google/uuid"
)

func call(agent, sub, user, grant string) verify.Call {
	c := verify.Call{Agent: verify.Agent{Issuer: agent, Subject: sub, Expires: time.Now()}}
	if user != "" {
		c.Delegation = &verify.Delegation{User: user, Grant: grant}
	}
	return c
}

// M23: a conversation is one agent's, for one user of its own, and from its first
// token on for one person; to everybody else it is as unknown as one that nobody
// began.
func TestWhoseConversationItIs(t *testing.T) {
	k := newTalks(time.Now)
	id, _, err := k.hear(call("aria", "alex", "", ""), surface.Message{ID: "m1"})
	if err != nil {
		t.Fatal(err)
	}
	in := func(c verify.Call, message string) error {
		_, _, err := k.hear(c, surface.Message{ID: message, Context: id})
		return err
	}
	if err := in(call("aria", "alex", "ff-1", "g1"), "m2"); err != nil {
		t.Errorf("the first token: %v", err)
	}
	for what, c := range map[string]verify.Call{
		"another agent":           call("bot", "alex", "ff-1", "g1"),
		"another user of its own": call("aria", "sam", "ff-1", "g1"),
		"another person":          call("aria", "alex", "ff-2", "g2"),
		"nobody":                  call("aria", "alex", "", ""),
	} {
		if err := in(c, "m3"); !errors.Is(err, surface.ErrContext) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, _, err := k.hear(call("aria", "alex", "", ""), surface.Message{ID: "m1", Context: uuid.New()}); !errors.Is(err, surface.ErrContext) {
		t.Errorf("unknown: %v", err)
	}
	if _, _, err := k.hear(call("aria", "alex", "ff-2", "g2"), surface.Message{ID: "m1"}); !errors.Is(err, surface.ErrNoReply) {
		t.Errorf("the first message again, for another person: %v", err)
	}
	if err := in(call("aria", "alex", "ff-1", "g1"), "m3"); err != nil {
		t.Errorf("the rightful next: %v", err)
	}
}

// One of any number of the same message is served; a step-up is heard again; what
// was done under one grant gets its receipt under no other; the first reply stays.
func TestAMessageIsServedOnce(t *testing.T) {
	k := newTalks(time.Now)
	alex := call("aria", "alex", "ff-1", "g1")
	id, first, err := k.hear(alex, surface.Message{ID: "m0"})
	if err != nil {
		t.Fatal(err)
	}
	k.replied(first, []byte("one"))
	if got := k.replied(first, []byte("two")); string(got) != "one" {
		t.Errorf("the reply became %q", got)
	}
	// Whoever lost the first reply does not know its conversation.
	if same, one, err := k.hear(alex, surface.Message{ID: "m0"}); err != nil || same != id || string(k.look(one).reply) != "one" {
		t.Errorf("the first message again: %v, %v", same, err)
	}
	if other, _, err := k.hear(call("aria", "sam", "", ""), surface.Message{ID: "m0"}); err != nil || other == id {
		t.Errorf("somebody else's first message: %v", err)
	}
	m := surface.Message{ID: "m1", Context: id}
	var all sync.WaitGroup
	served := make(chan *turn, 50)
	for range cap(served) {
		all.Go(func() {
			_, one, err := k.hear(alex, m)
			if err == nil {
				served <- one
			} else if !errors.Is(err, surface.ErrNoReply) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(served) != 1 {
		t.Fatalf("%d of the same message are served", len(served))
	}
	one := <-served
	k.waits(one)
	_, again, err := k.hear(alex, m)
	if err != nil || again == one {
		t.Fatalf("after the step-up: %v", err)
	}
	k.acted(again, verify.Call{}, skills[0], "Return the boots")
	if _, _, err := k.hear(call("aria", "alex", "ff-1", "g2"), m); !errors.Is(err, surface.ErrNoReply) {
		t.Errorf("under another grant: %v", err)
	}
	if _, same, err := k.hear(alex, m); err != nil || same != again {
		t.Errorf("without its receipt: %v", err)
	}
}

// One person's agent may say so much, and one agent so much in all; neither shuts
// anybody else out, nor has them forgotten.
func TestHowMuchAnAgentMaySay(t *testing.T) {
	now := time.Now()
	k := newTalks(func() time.Time { return now })
	next := 0
	says := func(agent, sub string) (uuid.UUID, error) {
		next++
		id, _, err := k.hear(call(agent, sub, "", ""), surface.Message{ID: strconv.Itoa(next)})
		return id, err
	}
	sams, err := says("bot", "sam")
	if err != nil {
		t.Fatal(err)
	}
	for range perMinute {
		if _, err := says("aria", "alex"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := says("aria", "alex"); !errors.Is(err, surface.ErrBusy) {
		t.Errorf("one more: %v", err)
	}
	for i := range perAgentMinute - perMinute {
		if _, err := says("aria", strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := says("aria", "somebody new"); !errors.Is(err, surface.ErrBusy) {
		t.Errorf("an agent that makes up users: %v", err)
	}
	if _, err := says("bot", "kim"); err != nil {
		t.Errorf("another agent: %v", err)
	}
	for range 2 * mostOfOneAgent / perAgentMinute {
		now = now.Add(turnWindow)
		for i := range perAgentMinute {
			if _, err := says("aria", strconv.Itoa(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, _, err := k.hear(call("bot", "sam", "", ""), surface.Message{ID: "later", Context: sams}); err != nil {
		t.Errorf("another agent's conversation: %v", err)
	}
	if len(k.by) > mostOfOneAgent+2 || len(k.opened) != len(k.by) {
		t.Errorf("%d conversations are kept, and %d beginnings", len(k.by), len(k.opened))
	}
	// Nor does one conversation grow for ever.
	for i := range mostTurns {
		k.by[sams].turns[strconv.Itoa(-i)] = &turn{}
	}
	if _, _, err := k.hear(call("bot", "sam", "", ""), surface.Message{ID: "too long", Context: sams}); err == nil {
		t.Error("a conversation without an end")
	}
}
