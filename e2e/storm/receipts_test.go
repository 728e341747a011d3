package storm

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/a2a"
	"countersign.dev/authority/agent/agenttest"
	"countersign.dev/authority/signing"
	"countersign.dev/authority/signing/local"
	"countersign.dev/authority/verify"
	"countersign.dev/tenants"
)

func (c *counter) backends(db *tenants.DB) []signing.Backend {
	return []signing.Backend{local.New(db, c.Master, c.Clock.Now)}
}

// R73: ten thousand messages, to a Brand whose interface we serve and from one that
// serves its own, on two instances. The database ends connections, nobody signs for a
// while, the Brand's agent fails, hangs and dies, everybody is impatient and asks twice
// at once, and half-way one instance is gone. At the end every message that was served
// has exactly one receipt, none that was not has any, and the logs are whole.
func TestTenThousandMessagesHaveOneReceiptEach(t *testing.T) {
	const (
		guests, each     = 150, 40 // of the Hotel, and what each says
		shoppers, visits = 40, 100 // of the Shop, and what is done for each
		messages         = guests*each + shoppers*visits
		workers          = 24
	)
	c := newCounter(t)
	began := time.Now()
	calls, storm := make(chan func(), workers), newClients(c)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for call := range calls {
				call()
			}
		})
	}
	ctx, calm := context.WithCancel(t.Context())
	defer calm()
	var said atomic.Int64
	go c.cut(ctx)
	go c.weather(ctx, &said, messages)
	plain := c.Authority(nil)
	for n := range max(guests, shoppers) {
		if n < guests {
			sub := fmt.Sprint("guest-", n)
			jws := c.delegated(plain, c.Hotel, sub)
			calls <- func() { storm.talks(sub, jws, each, &said) }
		}
		if n < shoppers {
			sub := fmt.Sprint("shopper-", n)
			jws := c.delegated(plain, c.Shop, sub)
			calls <- func() { storm.served(sub, jws, visits, &said) }
		}
	}
	close(calls)
	all.Wait()
	calm()
	c.calm.Store(true)
	t.Logf("%d messages took %v", messages, time.Since(began).Round(time.Millisecond))
	c.judge(storm, messages, shoppers*visits, c.settle())
	t.Logf("with all that was looked at, %v", time.Since(began).Round(time.Millisecond))
}

func (c *counter) delegated(a *authority.Authority, brand *tenants.Brand, sub string) string {
	c.t.Helper()
	who := authority.Caller{Agent: c.pa.Issuer, Sub: sub}
	refresh := delegated(c.t, a, brand, who)
	tokens, err := a.Refresh(c.t.Context(), brand, who, refresh, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return tokens.JWS
}

// weather seals the signer for a while, and ends one instance half-way.
func (c *counter) weather(ctx context.Context, said *atomic.Int64, messages int64) {
	died := false
	for ctx.Err() == nil {
		n := said.Load()
		c.sealed.Store(n > messages/4 && n < messages/3 || n > messages*9/10)
		if !died && n > messages/2 {
			died = true
			close(c.instances[1].dead)
		}
		time.Sleep(time.Millisecond)
	}
}

// settle lets time pass and upkeep run, until nothing waits. It returns how many turns
// broke off with whoever ran them: nobody knows what was done, and that is said.
func (c *counter) settle() (broken int) {
	c.t.Helper()
	const waits = `SELECT (SELECT count(*) FROM turns_accepted) + (SELECT count(*) FROM turns WHERE state = 'answered' AND settled_at IS NULL)`
	c.Clock.Advance(time.Hour)
	rules := c.instances[0].rules
	for range 20 {
		for _, brand := range []*tenants.Brand{c.Hotel, c.Shop} {
			_, _ = rules.Flush(c.t.Context(), brand)
			_, _ = a2a.Drain(c.t.Context(), rules, brand)
		}
		if c.Count(c.t, waits) == 0 {
			broken = c.Count(c.t, `SELECT count(*) FROM turns WHERE state = 'running' AND grant_id IS NOT NULL`)
			if _, err := rules.Purge(c.t.Context(), c.Hotel.ID); err != nil {
				c.t.Error(err)
			}
			return broken
		}
		c.Clock.Advance(time.Minute)
	}
	c.t.Errorf("%d turns wait for ever", c.Count(c.t, waits))
	return broken
}

// judge counts, and verifies both logs from their beginning.
func (c *counter) judge(storm *clients, messages, handedIn, broken int) {
	t := c.t
	const missing = `
		SELECT count(*) FROM turns t
		 WHERE t.grant_id IS NOT NULL AND t.state IN ('answered', 'replied') AND 1 <> (
		       SELECT count(*) FROM receipts r
		        WHERE r.brand_id = t.brand_id AND r.grant_id = t.grant_id AND r.context_id = t.conversation_id::text AND r.message_id = t.message_id)`
	const stray = `
		SELECT count(*) FROM receipts r
		 WHERE r.brand_id = 'harbor-hotel' AND NOT EXISTS (
		       SELECT FROM turns t
		        WHERE t.brand_id = r.brand_id AND t.conversation_id::text = r.context_id AND t.message_id = r.message_id AND t.state IN ('answered', 'replied'))`
	if n := c.Count(t, missing); n != 0 {
		t.Errorf("%d messages were served and have not one receipt", n)
	}
	if n := c.Count(t, stray); n != 0 {
		t.Errorf("%d receipts are of messages that were not served", n)
	}
	served := c.Count(t, `SELECT count(*) FROM turns WHERE state IN ('answered', 'replied')`)
	hotel := c.Count(t, `SELECT count(*) FROM receipts WHERE brand_id = 'harbor-hotel'`)
	shop := c.Count(t, `SELECT count(*) FROM receipts WHERE brand_id = 'fern-and-fell'`)
	if hotel != served || shop != handedIn || served < (messages-handedIn)*8/10 {
		t.Errorf("%d receipts of %d served messages, %d of %d that were handed in", hotel, served, shop, handedIn)
	}
	if n := c.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'incident.not_countersigned'`); n != broken {
		t.Errorf("%d turns have no receipt for good, and %d broke off", n, broken)
	}
	if n := c.Count(t, `SELECT count(*) FROM turns WHERE state = 'running'`); n != 0 {
		t.Errorf("%d turns run for ever", n)
	}
	shown, of := storm.shown()
	const logged = `SELECT count(*) FROM receipts r JOIN unnest($1::text[], $2::text[]) s (jws, message_id) USING (jws, message_id)`
	if n := c.Count(t, logged, shown, of); n != len(shown) {
		t.Errorf("%d receipts were shown, and %d of them stand in a log", len(shown), n)
	}
	t.Logf("%d of %d messages were served, %d handed in", served, messages-handedIn, shop)
	c.whole(c.Hotel, int64(hotel))
	c.whole(c.Shop, int64(shop))
}

// whole verifies the Brand's log as an export holds it, against a checkpoint.
func (c *counter) whole(brand *tenants.Brand, entries int64) {
	t, rules := c.t, c.Authority(nil)
	doc, err := c.NewKeys().JWKS(t.Context(), brand.ID)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := verify.ParseKeys(doc.Body)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := rules.Checkpoint(t.Context(), brand)
	if err != nil {
		t.Fatal(err)
	}
	checkpoint, _, err := verify.Checkpoint(keys, signed.JWS, brand.LogURI(), c.Clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	var lines bytes.Buffer
	out := json.NewEncoder(&lines)
	err = rules.EachLogged(t.Context(), brand.ID, func(l authority.LoggedReceipt) error {
		return out.Encode(map[string]string{
			"entry": l.Entry, "salt": base64.RawURLEncoding.EncodeToString(l.Salt), "jws": l.JWS, "contextId": l.ContextID, "messageId": l.MessageID,
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	sum, _, err := verify.WholeLog(keys, &lines, verify.Archive{}, checkpoint)
	if err != nil || sum.Entries != entries || sum.Receipts != entries {
		t.Errorf("the log of %s: %+v of %d, %v", brand.ID, sum, entries, err)
	}
}

// clients are the personal agents, and the Shop's own server.
type clients struct {
	c    *counter
	http *http.Client
	mu   sync.Mutex
	jws  map[string]string // the receipts that anybody was shown, and of which message
}

func newClients(c *counter) *clients {
	const patience, idle = 10 * time.Second, 64
	return &clients{
		c: c, jws: map[string]string{},
		http: &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: idle}},
	}
}

// shown are the receipts that anybody was shown, and of which message each is.
func (s *clients) shown() (jws, messages []string) {
	for receipt, message := range s.jws {
		jws, messages = append(jws, receipt), append(messages, message)
	}
	return jws, messages
}

// show remembers a receipt; no two messages have one.
func (s *clients) show(jws, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of, there := s.jws[jws]; there && of != message {
		s.c.t.Errorf("%s has the receipt of %s", message, of)
	}
	s.jws[jws] = message
}

// post sends to one instance or the other; 0: nobody answered.
func (s *clients) post(n int, path string, header http.Header, body string) (int, string) {
	r, err := http.NewRequestWithContext(s.c.t.Context(), http.MethodPost, s.c.instances[n%2].url+path, strings.NewReader(body))
	if err != nil {
		s.c.t.Error(err)
		return 0, ""
	}
	r.Header = header
	resp, err := s.http.Do(r)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, ""
	}
	return resp.StatusCode, string(text)
}

// talks is one person's agent, which says so much in one conversation, and at times
// everything twice at once.
func (s *clients) talks(sub, token string, messages int, said *atomic.Int64) {
	header := http.Header{
		"Authorization": {"Bearer " + s.c.pa.Token(s.c.t, agenttest.Claims{Sub: sub})}, "X-A2a-User-Delegation": {"Bearer " + token},
		"Content-Type": {"application/a2a+json"},
	}
	contextID := ""
	for n := range messages {
		id := fmt.Sprint(sub, "-", n)
		const impatient = 8
		if n%impatient == impatient-1 {
			var twice sync.WaitGroup
			twice.Go(func() { s.say(n+1, id, contextID, header) })
			s.say(n, id, contextID, header)
			twice.Wait()
		} else if got := s.say(n, id, contextID, header); got != "" {
			contextID = got
		}
		said.Add(1)
	}
}

// say sends one message until it has its reply, or none for good.
func (s *clients) say(n int, id, contextID string, header http.Header) string {
	message := map[string]any{"messageId": id, "role": "ROLE_USER", "parts": []any{map[string]any{"text": "What of December?"}}}
	if contextID != "" {
		message["contextId"] = contextID
	}
	body, _ := json.Marshal(map[string]any{"message": message})
	const patience, spent = 12, 3
	for try, without := 0, 0; try < patience; try++ {
		status, text := s.post(n+try, "/a2a/"+string(s.c.Hotel.ID)+"/message:send", header, string(body))
		switch {
		case status == http.StatusOK:
			var reply struct {
				Message struct {
					ContextID string
					Metadata  map[string]struct {
						JWS string `json:"jws"`
					}
				}
			}
			err := json.Unmarshal([]byte(text), &reply)
			receipt := reply.Message.Metadata["pact.receipt"].JWS
			if err != nil || receipt == "" {
				s.c.t.Errorf("%s was served without a receipt: %s, %v", id, text, err)
			}
			s.show(receipt, id)
			return reply.Message.ContextID
		case strings.Contains(text, "has no reply"):
			if without++; without == spent {
				return ""
			}
		case strings.Contains(text, "not sent again"), strings.Contains(text, "will have no reply"):
			return ""
		case status == http.StatusBadRequest, status == http.StatusUnauthorized:
			s.c.t.Errorf("%s: %d %s", id, status, text)
			return ""
		}
		time.Sleep(5 * time.Millisecond)
	}
	return ""
}

// served is the Shop's server, which hands in what was done for one person: one by one,
// and many at once.
func (s *clients) served(sub, token string, turns int, said *atomic.Int64) {
	header := http.Header{"Authorization": {"Bearer " + s.c.key}, "Content-Type": {"application/json"}}
	turn := func(n int) map[string]any {
		return map[string]any{
			"delegation_token": token, "agent": s.c.pa.Issuer, "contextId": "talk-of-" + sub, "messageId": fmt.Sprint(sub, "-", n),
			"scopesUsed": []string{"bookings:read"}, "actions": []any{map[string]any{"tool": "fittings.list", "args": map[string]int{"n": n % 3}}},
			"began": s.c.Clock.Now(),
		}
	}
	const alone, batch = 25, 15
	for n := range alone {
		body, _ := json.Marshal(turn(n))
		s.handIn(n, "/receipts", header, body, func(status int, text string) bool {
			var got struct {
				JWS string `json:"jws"`
			}
			if status == http.StatusOK && json.Unmarshal([]byte(text), &got) == nil {
				s.show(got.JWS, fmt.Sprint(sub, "-", n))
			}
			return status == http.StatusOK || status == http.StatusAccepted
		})
		said.Add(1)
	}
	for from := alone; from < turns; from += batch {
		var list []any
		for n := from; n < min(from+batch, turns); n++ {
			list = append(list, turn(n))
		}
		body, _ := json.Marshal(map[string]any{"turns": list})
		var twice sync.WaitGroup
		for n := range 2 {
			twice.Go(func() {
				s.handIn(from+n, "/receipts/batch", header, body, func(status int, text string) bool {
					var got struct {
						Results []struct {
							Status  int
							Receipt struct {
								JWS string `json:"jws"`
							}
						}
					}
					if status != http.StatusOK || json.Unmarshal([]byte(text), &got) != nil || len(got.Results) != len(list) {
						return false
					}
					for i, r := range got.Results {
						switch r.Status {
						case http.StatusOK:
							s.show(r.Receipt.JWS, fmt.Sprint(sub, "-", from+i))
						case http.StatusAccepted:
						default:
							return false
						}
					}
					return true
				})
			})
		}
		twice.Wait()
		said.Add(int64(len(list)))
	}
}

// handIn offers turns until all of them are taken.
func (s *clients) handIn(n int, path string, header http.Header, body []byte, taken func(int, string) bool) {
	const patience = 200
	last := ""
	for try := range patience {
		status, text := s.post(n+try, "/a2a/"+string(s.c.Shop.ID)+"/oauth"+path, header, string(body))
		if taken(status, text) {
			return
		}
		last = fmt.Sprint(status, " ", text)
		time.Sleep(5 * time.Millisecond)
	}
	s.c.t.Errorf("%s was never taken: %s", path, last)
}
