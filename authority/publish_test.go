package authority_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/signing"
	"countersign.dev/authority/statuslist"
	"countersign.dev/tenants"
	"github.com/google/go-cmp/cmp"
)

// noticed is how long every instance may take to show a change.
const noticed = 2 * time.Second

type listPayload struct {
	Subject string `json:"sub"`
	Issued  int64  `json:"iat"`
	Expires int64  `json:"exp"`
	TTL     int64  `json:"ttl"`
	List    struct {
		Bits int    `json:"bits"`
		List string `json:"lst"`
		All  string `json:"aggregation_uri"`
	} `json:"status_list"`
}

// read returns what a signed list says, if the Brand's published keys verify it.
func read(t *testing.T, w *authoritytest.World, brand *tenants.Brand, l *authority.StatusList) (listPayload, statuslist.List) {
	t.Helper()
	raw, err := w.NewKeys().Verify(t.Context(), brand.ID, signing.TypStatusList, l.JWS)
	if err != nil {
		t.Fatal(err)
	}
	var p listPayload
	if err := json.Unmarshal(raw, &p); err != nil {
		t.Fatal(err)
	}
	answers, err := statuslist.Decode(p.List.List)
	if err != nil {
		t.Fatal(err)
	}
	return p, answers
}

func listed(t *testing.T, a *authority.Authority, brand *tenants.Brand) *authority.StatusList {
	t.Helper()
	l, err := a.StatusList(t.Context(), brand.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// mustSay demands that the Brand's list says of every index what it says of
// most, but for the given ones.
func mustSay(t *testing.T, w *authoritytest.World, a *authority.Authority, brand *tenants.Brand, most statuslist.Status, but map[int]statuslist.Status) {
	t.Helper()
	_, answers := read(t, w, brand, listed(t, a, brand))
	if answers.Len() != authority.StatusListSize {
		t.Fatalf("%d indexes", answers.Len())
	}
	got := make(map[int]statuslist.Status)
	for i := range answers.Len() {
		if s, _ := answers.At(i); s != most {
			got[i] = s
		}
	}
	maps.DeleteFunc(but, func(_ int, s statuslist.Status) bool { return s == most })
	if diff := cmp.Diff(but, got); diff != "" {
		t.Errorf("list of %s (want -, got +): %s", brand.ID, diff)
	}
}

type says map[int]statuslist.Status

// B29, B34, R54: every change of a status shows on every instance within two
// seconds, at exactly the indexes that it is about; all others, in this list and
// in the other Brand's, stay as they were.
func TestAChangeShowsAtItsIndexAlone(t *testing.T) {
	const invalid, suspended = statuslist.Invalid, statuslist.Suspended
	w := authoritytest.New(t)
	a, elsewhere := w.Authority(nil), w.Authority(nil)
	sam := authority.Caller{Agent: authoritytest.OtherAgent, Sub: "sam-laptop"}
	mine, i := allowed(t, w, a, w.Hotel, alex, "guest-7", "bookings:read", "bookings:change")
	_, neighbour := allowed(t, w, a, w.Hotel, alex, "guest-8", "bookings:read")
	others, j := allowed(t, w, a, w.Hotel, sam, "guest-7", "bookings:read")
	_, shop := allowed(t, w, a, w.Shop, alex, "guest-7", "orders:read")
	mustSay(t, w, elsewhere, w.Hotel, statuslist.Valid, says{})
	mustSay(t, w, elsewhere, w.Shop, statuslist.Valid, says{})
	agent := func(on bool) func() error {
		return func() error {
			w.Exec(t, `UPDATE agents SET enabled = $1 WHERE issuer = $2`, on, alex.Agent)
			return nil
		}
	}
	state := func(s tenants.State) func() error {
		return func() error { return tenants.SetState(t.Context(), w.DB, w.Hotel.ID, s) }
	}
	delegation := func(on bool) func() error {
		return func() error {
			w.Save(t, w.Hotel, func(b *tenants.Brand) { b.Delegation = on })
			return nil
		}
	}
	user := func(do func(context.Context, tenants.BrandID, authority.By, string) error) func() error {
		return func() error { return do(t.Context(), w.Hotel.ID, authority.ByOperator(), "guest-7") }
	}
	var k int // the index that the narrowed grant has later
	for _, step := range []struct {
		name string
		do   func() error
		most statuslist.Status
		but  func() says
		shop says
	}{
		{"user suspended", user(a.Suspend), 0, func() says { return says{i: suspended, j: suspended} }, says{}},
		{"user resumed", user(a.Resume), 0, func() says { return says{} }, says{}},
		{"agent disabled", agent(false), 0, func() says { return says{i: suspended, neighbour: suspended} }, says{shop: suspended}},
		{"agent enabled", agent(true), 0, func() says { return says{} }, says{}},
		{"narrowed", func() error {
			err := a.EndScopeByUser(t.Context(), w.Hotel.ID, "guest-7", mine, "bookings:change")
			k = present(t, w, mine)
			return err
		}, 0, func() says { return says{i: invalid} }, says{}},
		{"Brand paused", state(tenants.Paused), suspended, func() says { return says{i: invalid} }, says{}},
		{"Brand resumed", state(tenants.Active), 0, func() says { return says{i: invalid} }, says{}},
		{"delegation off", delegation(false), suspended, func() says { return says{i: invalid} }, says{}},
		{"delegation on", delegation(true), 0, func() says { return says{i: invalid} }, says{}},
		{"user suspended again", user(a.Suspend), 0, func() says { return says{i: invalid, k: suspended, j: suspended} }, says{}},
		{"one ended while suspended", func() error {
			return a.EndByUser(t.Context(), w.Hotel.ID, "guest-7", others)
		}, 0, func() says { return says{i: invalid, k: suspended, j: invalid} }, says{}},
		{"user resumed again", user(a.Resume), 0, func() says { return says{i: invalid, j: invalid} }, says{}},
		{"the agent's grants ended", func() error {
			_, err := a.End(t.Context(), w.Hotel.ID, authority.ByOperator(), authority.Which{Agent: alex.Agent})
			return err
		}, 0, func() says { return says{i: invalid, j: invalid, k: invalid, neighbour: invalid} }, says{}},
		{"Brand closed", state(tenants.Closed), invalid, func() says { return says{} }, says{}},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		w.Clock.Advance(noticed)
		for _, instance := range []*authority.Authority{a, elsewhere} {
			mustSay(t, w, instance, w.Hotel, step.most, step.but())
			mustSay(t, w, instance, w.Shop, statuslist.Valid, maps.Clone(step.shop))
		}
		if t.Failed() {
			t.Fatalf("after: %s", step.name)
		}
	}
}

// A grant that runs out is INVALID from that second, before upkeep ends it and
// whatever else is the matter with it, and only that one.
func TestAGrantRunsOutInTheList(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	_, first := allowed(t, w, a, w.Hotel, alex, "guest-7", "bookings:read")
	w.Clock.Advance(3 * time.Second)
	allowed(t, w, a, w.Hotel, alex, "guest-8", "bookings:read")
	w.Clock.Advance(30*24*time.Hour - 4*time.Second)
	mustSay(t, w, a, w.Hotel, statuslist.Valid, says{})
	w.Clock.Advance(time.Second)
	mustSay(t, w, a, w.Hotel, statuslist.Valid, says{first: statuslist.Invalid})
	if err := a.Suspend(t.Context(), w.Hotel.ID, authority.ByOperator(), "guest-7"); err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(noticed)
	mustSay(t, w, a, w.Hotel, statuslist.Valid, says{first: statuslist.Invalid})
}

// A closed Brand does not open again, not even for somebody who is suspended.
func TestAClosedBrandsTokensAreInvalid(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	allowed(t, w, a, w.Hotel, alex, "guest-7", "bookings:read")
	if err := a.Suspend(t.Context(), w.Hotel.ID, authority.ByOperator(), "guest-7"); err != nil {
		t.Fatal(err)
	}
	if err := tenants.SetState(t.Context(), w.DB, w.Hotel.ID, tenants.Closed); err != nil {
		t.Fatal(err)
	}
	mustSay(t, w, a, w.Hotel, statuslist.Invalid, says{})
}

// What a verifier reads in a list: which it is, how old, for how long, R54.
func TestAListSaysWhichItIsAndForHowLong(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	allowed(t, w, a, w.Hotel, alex, "guest-7", "bookings:read")
	l := listed(t, a, w.Hotel)
	p, _ := read(t, w, w.Hotel, l)
	now := w.Clock.Now()
	want := listPayload{Subject: w.Hotel.Issuer + "/status/0", Issued: now.Unix(), Expires: now.Add(10 * time.Minute).Unix(), TTL: 5}
	want.List.Bits, want.List.All, want.List.List = 2, w.Hotel.Issuer+"/status", p.List.List
	if diff := cmp.Diff(want, p); diff != "" {
		t.Error(diff)
	}
	if !l.Expires.Equal(time.Unix(p.Expires, 0)) {
		t.Errorf("served until %v", l.Expires)
	}
	lists, err := a.StatusLists(t.Context(), w.Hotel.ID)
	if err != nil || !slices.Equal(lists, []int{0}) {
		t.Errorf("lists %v, %v", lists, err)
	}
}

// A list that was never begun is not made up, nor is another Brand's shown.
func TestAListThatIsNotThereIsUnknown(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	allowed(t, w, a, w.Hotel, alex, "guest-7", "bookings:read")
	for brand, list := range map[tenants.BrandID]int{w.Hotel.ID: 1, w.Shop.ID: 0, "nobody": 0} {
		_, err := a.StatusList(t.Context(), brand, list)
		wantErr(t, err, authority.ErrUnknown)
	}
	_, err := a.StatusList(t.Context(), w.Hotel.ID, -1)
	wantErr(t, err, authority.ErrUnknown)
	allowed(t, w, a, w.Shop, alex, "guest-7", "orders:read")
	listed(t, a, w.Shop)
}

// However often it is asked for, a list that says nothing new is neither made
// nor signed again, until half its life is over; nor because something changed
// that is not in it.
func TestAnUnchangedListIsNotMadeAgain(t *testing.T) {
	w := authoritytest.New(t)
	signer := &countingSigner{next: w.Keys}
	a := w.Authority(signer)
	allowed(t, w, a, w.Hotel, alex, "guest-7", "bookings:read")
	first := listed(t, a, w.Hotel)
	w.Exec(t, `UPDATE agents SET enabled = false WHERE issuer = $1`, authoritytest.OtherAgent)
	_, _ = allowed(t, w, a, w.Shop, alex, "guest-7", "orders:read")
	if err := a.Suspend(t.Context(), w.Shop.ID, authority.ByOperator(), "guest-7"); err != nil {
		t.Fatal(err)
	}
	for range 299 {
		w.Clock.Advance(time.Second)
		if l := listed(t, a, w.Hotel); l.JWS != first.JWS || l.ETag != first.ETag {
			t.Fatal("made again, though nothing changed")
		}
	}
	w.Clock.Advance(time.Second)
	renewed := listed(t, a, w.Hotel)
	if renewed.ETag == first.ETag || !renewed.Expires.After(first.Expires) {
		t.Error("not renewed in the middle of its life")
	}
	if n := signer.n.Load(); n != 2 {
		t.Errorf("signed %d times", n)
	}
}

// Whoever asks at once shares one making, of a new list and of a changed one.
func TestManyWhoAskShareOneMaking(t *testing.T) {
	w := authoritytest.New(t)
	signer := &countingSigner{next: w.Keys}
	a := w.Authority(signer)
	grant, _ := allowed(t, w, a, w.Hotel, alex, "guest-7", "bookings:read")
	for round := range int32(2) {
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if _, err := a.StatusList(context.Background(), w.Hotel.ID, 0); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := signer.n.Load(); n != round+1 {
			t.Fatalf("signed %d times in round %d", n, round)
		}
		if err := a.EndByUser(t.Context(), w.Hotel.ID, "guest-7", grant); round == 0 && err != nil {
			t.Fatal(err)
		}
		w.Clock.Advance(noticed)
	}
}

// A Brand whose key hangs keeps no other Brand's list.
func TestABrandsTroubleIsItsOwn(t *testing.T) {
	w := authoritytest.New(t)
	hangs, goOn := make(chan struct{}), make(chan struct{})
	a := w.Authority(signerFunc(func(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error) {
		if brand == w.Hotel.ID {
			close(hangs)
			<-goOn
		}
		return w.Keys.Sign(ctx, brand, typ, payload)
	}))
	allowed(t, w, a, w.Hotel, alex, "guest-7", "bookings:read")
	allowed(t, w, a, w.Shop, alex, "guest-7", "orders:read")
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := a.StatusList(context.Background(), w.Hotel.ID, 0); err != nil {
			t.Error(err)
		}
	})
	<-hangs
	listed(t, a, w.Shop)
	close(goOn)
	wg.Wait()
}

// R58: what a revoked key signed verifies nowhere, so the list is signed anew at
// once, even where the signer hears of the change later than we do.
func TestAListIsSignedAnewWhenItsKeyIsRevoked(t *testing.T) {
	w := authoritytest.New(t)
	keys := w.NewKeys()
	a := w.Authority(keys)
	allowed(t, w, a, w.Hotel, alex, "guest-7", "bookings:read")
	first := listed(t, a, w.Hotel)
	const q = `SELECT kid FROM signing_keys WHERE brand_id = $1 AND state = 'current'`
	var kid string
	if err := w.Owner.QueryRow(t.Context(), q, w.Hotel.ID).Scan(&kid); err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(time.Second)
	if _, err := keys.Sign(t.Context(), w.Hotel.ID, signing.TypToken, []byte(`{}`)); err != nil { // it knows the old key for a second
		t.Fatal(err)
	}
	if err := w.NewKeys().Revoke(t.Context(), w.Hotel.ID, kid, "test", signing.Policy{Alg: signing.ES256, Backend: "local"}); err != nil {
		t.Fatal(err)
	}
	listed(t, a, w.Hotel)
	w.Clock.Advance(noticed)
	again := listed(t, a, w.Hotel)
	if again.JWS == first.JWS {
		t.Fatal("still the list of a revoked key")
	}
	read(t, w, w.Hotel, again)
}

// A change that falls into the making of a list is in the next one.
func TestAChangeDuringTheMakingIsNotLost(t *testing.T) {
	w := authoritytest.New(t)
	rules := w.Authority(nil)
	grant, index := allowed(t, w, rules, w.Hotel, alex, "guest-7", "bookings:read")
	var once sync.Once
	a := w.Authority(signerFunc(func(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error) {
		once.Do(func() {
			if err := rules.EndByUser(ctx, w.Hotel.ID, "guest-7", grant); err != nil {
				t.Error(err)
			}
		})
		return w.Keys.Sign(ctx, brand, typ, payload)
	}))
	mustSay(t, w, a, w.Hotel, statuslist.Valid, says{})
	w.Clock.Advance(noticed)
	mustSay(t, w, a, w.Hotel, statuslist.Valid, says{index: statuslist.Invalid})
}

// An index that is free again says nothing of the grant that had it, lest the
// next grant's token be refused for it.
func TestAFreedIndexIsValidAgain(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	grant, index := allowed(t, w, a, w.Hotel, alex, "guest-7", "bookings:read")
	if err := a.EndByUser(t.Context(), w.Hotel.ID, "guest-7", grant); err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(2*time.Hour + time.Minute)
	mustSay(t, w, a, w.Hotel, statuslist.Valid, says{index: statuslist.Invalid})
	if _, err := a.Purge(t.Context(), w.Hotel.ID); err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(noticed)
	mustSay(t, w, a, w.Hotel, statuslist.Valid, says{})
}
