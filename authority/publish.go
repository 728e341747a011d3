package authority

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"countersign.dev/authority/signing"
	"countersign.dev/authority/statuslist"
	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5"
)

// StatusListTTL is how long a verifier may go by a list before it looks for a
// newer one.
const StatusListTTL = 5 * time.Second

const (
	// listFresh bounds how long an instance serves a list without asking
	// whether it still stands.
	listFresh = time.Second
	// listUnread bounds how long a list is served while nobody can read whether it
	// still says what is so.
	listUnread = 30 * time.Second
	// listPause is between attempts to have a list signed that fail, however many
	// ask for it.
	listPause = time.Second
	// listLife bounds how long a list can be played back to a verifier, and how
	// long one that still says what is so is served while it cannot be made anew.
	listLife = 10 * time.Minute
	// listRenew leaves half of that for an outage of the signer.
	listRenew = listLife / 2
)

// StatusList is a signed Token Status List, ready to be served.
type StatusList struct {
	JWS     string
	ETag    string // of this very text
	Expires time.Time
	Age     time.Duration // since it was last known to say what is so

	shows listState
	until *time.Time // when the next of its grants runs out; nil: none does
	renew time.Time  // to be made anew, whatever has changed since
}

// says is whether the list shows what is so. Another key is nothing that it shows.
func (l *StatusList) says(state listState, now time.Time) bool {
	state.KID = l.shows.KID
	return l.shows == state && (l.until == nil || now.Before(*l.until))
}

// listing is what an instance knows of a list.
type listing struct {
	list   *StatusList // the last that was signed; nil: none was
	asOf   time.Time   // when the state was asked for
	failed error       // why list is not to be served; nil: it is
	retry  time.Time   // after a failure, not before
}

// paused is whether somebody has just failed to have the list signed.
func (g listing) paused(now time.Time) bool {
	wait := g.retry.Sub(now)
	return wait > 0 && wait <= listPause // a clock that went back stops nothing
}

type listKey struct {
	brand tenants.BrandID
	list  int
}

// listState is all that a list's answers depend on, and cheap to ask for: while
// it is equal, the list need not be made again. What changes by itself, as a
// grant runs out, is known when the list is made (StatusList.renew).
type listState struct {
	Version    int64 // of the list; counts what voids, ends or suspends
	Issuer     string
	State      tenants.State
	Delegation bool
	Disabled   string // agents with a grant here that may do nothing
	KID        string `db:"kid"` // what it should be signed with; a revoked key's list verifies nowhere
}

// everyIndex is what the Brand's own state makes of its indexes.
func (s listState) everyIndex() statuslist.Status {
	switch {
	case s.State == tenants.Closed:
		return statuslist.Invalid // there is no way back
	case s.State != tenants.Active || !s.Delegation:
		return statuslist.Suspended
	}
	return statuslist.Valid
}

func (a *Authority) rememberLists() {
	missing := func(err error) bool { return errors.Is(err, ErrUnknown) }
	a.lists = tenants.Memo[listKey, listing]{
		Fresh: listFresh, Stale: listUnread, Now: a.now, Load: a.publish, Missing: missing,
	}
	a.listed = tenants.Memo[tenants.BrandID, []int]{
		Fresh: listFresh, Stale: listLife, Now: a.now, Load: a.loadLists,
	}
	a.checkpoints = tenants.Memo[checkpointKey, Checkpoint]{
		Fresh: CheckpointTTL, Stale: checkpointStale, Now: a.now, Load: a.publishCheckpoint,
		Missing: func(err error) bool { return errors.Is(err, ErrUnknown) || errors.Is(err, ErrForked) },
	}
}

// StatusList returns one of the Brand's signed status lists, as it stood a second
// ago or later. It is made and signed anew only where it says something else or
// grows old, and by one caller for all who ask this instance. A Brand that does
// not delegate at present still has its lists, as tokens that name them may
// live; they say so.
//
// A list that was never begun is ErrUnknown. While none can be signed, the former
// one serves until it expires as long as it says what is so; where something is
// known to have changed, it is ErrUnavailable at once. While nobody can read
// whether something has, the former one serves for half a minute.
func (a *Authority) StatusList(ctx context.Context, brand tenants.BrandID, list int) (*StatusList, error) {
	g, err := a.lists.Get(ctx, listKey{brand, list})
	if err == nil {
		err = g.failed
	}
	if err != nil {
		return nil, fmt.Errorf("status list %d of %s: %w", list, brand, err)
	}
	now := a.now()
	if !now.Before(g.list.Expires) {
		return nil, fmt.Errorf("status list %d of %s: the last one has expired: %w", list, brand, ErrUnavailable)
	}
	l := *g.list
	l.Age = max(0, now.Sub(g.asOf))
	return &l, nil
}

// StatusLists returns the numbers of all the Brand's lists.
func (a *Authority) StatusLists(ctx context.Context, brand tenants.BrandID) ([]int, error) {
	return a.listed.Get(ctx, brand)
}

func (a *Authority) loadLists(ctx context.Context, brand tenants.BrandID) ([]int, error) {
	const q = `SELECT list FROM status_lists WHERE brand_id = @brand ORDER BY list`
	type row struct{ List int }
	rows, err := tenants.All[row](ctx, a.db, brand, q, pgx.NamedArgs{"brand": brand})
	if err != nil {
		return nil, fmt.Errorf("status lists of %s: %w", brand, err)
	}
	lists := make([]int, len(rows))
	for i, r := range rows {
		lists[i] = r.List
	}
	return lists, nil
}

// publish returns the list that was published last where it still stands, and
// otherwise a new one. Where there is none to be had it returns no error: what it
// learned of the state is then remembered, as after a success, and an outage brings
// no more questions than a good day.
func (a *Authority) publish(ctx context.Context, key listKey) (listing, error) {
	asOf := a.clock()
	// Asked before the answers are: what changes in between is found next time.
	state, err := a.listState(ctx, key)
	if err != nil {
		return listing{}, err
	}
	now := a.clock()
	last, _ := a.lists.Last(key)
	said := last.list != nil && last.list.says(state, now)
	if said && last.list.shows == state && now.Before(last.list.renew) {
		return listing{list: last.list, asOf: asOf}, nil
	}
	g := listing{list: last.list, asOf: asOf, failed: fmt.Errorf("%w: its signer failed a moment ago", ErrUnavailable)}
	if !last.paused(now) {
		l, err := a.makeList(ctx, key, state, now)
		if err == nil {
			return listing{list: l, asOf: asOf}, nil
		}
		g.failed, g.retry = err, a.clock().Add(listPause)
	}
	if said {
		g.failed = nil
	}
	return g, nil
}

func (a *Authority) makeList(ctx context.Context, key listKey, state listState, now time.Time) (*StatusList, error) {
	answers, until, err := a.answers(ctx, key, state, now)
	if err != nil {
		return nil, err
	}
	l := &StatusList{shows: state, until: until, renew: now.Add(listRenew)}
	if until != nil && until.Before(l.renew) {
		l.renew = *until
	}
	return l, a.signList(ctx, key, l, answers, now)
}

func (a *Authority) listState(ctx context.Context, key listKey) (listState, error) {
	const q = `
		SELECT l.version, b.issuer, b.state, b.delegation,
		       coalesce((SELECT string_agg(s.issuer, ' ' ORDER BY s.issuer) FROM agent_standing s
		                  WHERE s.brand_id = @brand AND NOT s.enabled
		                    AND EXISTS (SELECT FROM grants g WHERE g.brand_id = @brand AND g.agent = s.issuer)), '') AS disabled,
		       coalesce((SELECT k.kid FROM signing_keys k WHERE k.brand_id = @brand AND k.state = 'current'), '') AS kid
		  FROM status_lists l
		  JOIN brands b ON b.id = l.brand_id
		 WHERE l.brand_id = @brand AND l.list = @list`
	s, err := tenants.One[listState](ctx, a.db, key.brand, q, pgx.NamedArgs{"brand": key.brand, "list": key.list})
	if errors.Is(err, pgx.ErrNoRows) {
		return listState{}, ErrUnknown
	}
	return s, err
}

// answers reads what the list says of every index, and when the next of its
// grants runs out. An index that stands for nothing, and one whose grant is as
// it should be, are as good as the Brand is; so only the others are looked for,
// and a list costs no more where it has more grants. One that has ended was
// voided in the same transaction.
func (a *Authority) answers(ctx context.Context, key listKey, state listState, now time.Time) (statuslist.List, *time.Time, error) {
	const q = `
		WITH living AS NOT MATERIALIZED (
			SELECT status_idx AS idx, agent, subject, expires_at FROM grants
			 WHERE brand_id = @brand AND status_list = @list AND ended_at IS NULL
		), over AS (
			SELECT idx FROM status_entries WHERE brand_id = @brand AND list = @list AND invalid_at IS NOT NULL
			UNION ALL
			SELECT idx FROM living WHERE expires_at <= @now
		), away AS (
			SELECT g.idx FROM living g
			  JOIN suspended_users u ON u.brand_id = @brand AND u.subject = g.subject
			UNION ALL
			SELECT g.idx FROM living g
			  JOIN agent_standing s ON s.brand_id = @brand AND s.issuer = g.agent AND NOT s.enabled
		)
		SELECT coalesce((SELECT array_agg(idx) FROM over), '{}') AS over,
		       coalesce((SELECT array_agg(idx) FROM away), '{}') AS away,
		       (SELECT min(expires_at) FROM living WHERE expires_at > @now) AS until`
	type row struct {
		Over, Away []int32
		Until      *time.Time
	}
	r, err := tenants.One[row](ctx, a.db, key.brand, q, pgx.NamedArgs{"brand": key.brand, "list": key.list, "now": now})
	if err != nil {
		return statuslist.List{}, nil, err
	}
	every := state.everyIndex()
	l := statuslist.New(StatusListSize, every)
	if every == statuslist.Valid {
		for _, idx := range r.Away {
			l.Set(int(idx), statuslist.Suspended)
		}
	}
	// Last: what is over is not merely suspended.
	for _, idx := range r.Over {
		l.Set(int(idx), statuslist.Invalid)
	}
	return l, r.Until, nil
}

// listClaims of a Status List Token, in the order written.
type listClaims struct {
	Subject  string `json:"sub"` // its URI, so that one list cannot pass for another
	IssuedAt int64  `json:"iat"`
	Expires  int64  `json:"exp"`
	TTL      int64  `json:"ttl"`
	List     struct {
		Bits       int    `json:"bits"`
		List       string `json:"lst"`
		Aggregated string `json:"aggregation_uri"`
	} `json:"status_list"`
}

func (a *Authority) signList(ctx context.Context, key listKey, l *StatusList, answers statuslist.List, now time.Time) error {
	brand := tenants.Brand{ID: key.brand, Issuer: l.shows.Issuer}
	issued := now.Truncate(time.Second)
	l.Expires = issued.Add(listLife)
	c := listClaims{
		Subject: brand.StatusListURI(key.list), IssuedAt: issued.Unix(), Expires: l.Expires.Unix(),
		TTL: int64(StatusListTTL / time.Second),
	}
	c.List.Bits, c.List.Aggregated = statuslist.Bits, brand.StatusListsURI()
	var err error
	if c.List.List, err = answers.Encode(); err != nil {
		return err
	}
	payload, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encode status list: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, signTime)
	defer cancel()
	if l.JWS, err = a.signer.Sign(ctx, key.brand, signing.TypStatusList, payload); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	// The signer may have known of another current key than the database: then
	// the list does not show what it should, and is made again.
	l.shows.KID = signedWith(l.JWS)
	sum := sha256.Sum256([]byte(l.JWS))
	l.ETag = `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
	return nil
}

// signedWith reads the kid of a JWS that we made.
func signedWith(jws string) string {
	var header struct {
		KID string `json:"kid"`
	}
	encoded, _, _ := strings.Cut(jws, ".")
	raw, _ := base64.RawURLEncoding.DecodeString(encoded) // nothing decoded has no kid
	_ = json.Unmarshal(raw, &header)
	return header.KID
}
