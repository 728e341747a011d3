package authority

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"countersign.dev/authority/receiptlog"
	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// head is where a Brand's log stands.
type head struct {
	edge   receiptlog.Edge
	last   []byte     // the last leaf's hash; empty: none
	lastAt *time.Time // when that was logged
}

// lockHead is the head, which nobody else appends to until the transaction ends.
const lockHead = `SELECT size, edge, last, last_at FROM log_heads WHERE brand_id = @brand FOR UPDATE`

// errNoHead: the Brand's log has not begun.
var errNoHead = errors.New("the log has no head")

// readHead reads what lockHead found.
func readHead(found pgx.BatchResults) (*head, error) {
	var h head
	var size int64
	var edge []byte
	err := found.QueryRow().Scan(&size, &edge, &h.last, &h.lastAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, errNoHead
	}
	if err != nil {
		return nil, err
	}
	h.edge, err = receiptlog.ReadEdge(size, edge)
	return &h, err
}

// beginLog makes the head of a log that has none, of nothing.
func (a *Authority) beginLog(ctx context.Context, brand tenants.BrandID) error {
	const q = `INSERT INTO log_heads (brand_id, size, edge, last) VALUES (@brand, 0, '', '') ON CONFLICT DO NOTHING`
	_, err := a.db.Exec(ctx, brand, q, pgx.NamedArgs{"brand": brand})
	return err
}

// next makes the line of a turn and moves the head behind it.
func (h *head) next(brand tenants.BrandID, s *served, late bool, now time.Time) (line, error) {
	l := line{served: s, seq: h.edge.Size, late: late, salt: make([]byte, 16)}
	_, _ = rand.Read(l.salt) // never fails
	previous := ""
	if len(h.last) > 0 {
		previous = base64.RawURLEncoding.EncodeToString(h.last)
	}
	var said, replied string
	if s.MessageHash != "" {
		said = receiptlog.SealText(l.salt, s.MessageHash)
	}
	if s.ReplyHash != "" {
		replied = receiptlog.SealReply(l.salt, s.ReplyHash)
	}
	text, leaf, err := receiptlog.Entry{
		V: receiptlog.Version, Seq: l.seq, Brand: string(brand), Direction: receiptlog.Inbound, Grant: s.grant.String(), Token: s.token.ID,
		Message: receiptlog.SealMessage(l.salt, s.ContextID, s.MessageID), Text: said, Reply: replied,
		Receipt: receiptlog.SealReceipt(l.salt, signingInput(s.jws)),
		Began:   receiptlog.At(s.Began), At: receiptlog.At(s.at), Logged: receiptlog.At(now), Late: late,
		ClockBack: h.lastAt != nil && now.Before(*h.lastAt), Previous: previous,
	}.Leaf()
	if err != nil {
		return l, fmt.Errorf("encode log entry: %w", err)
	}
	l.entry = text
	for _, hash := range h.edge.Append(leaf) {
		l.hashes = append(l.hashes, hash[:]...)
	}
	h.last, h.lastAt = leaf[:], &now
	return l, nil
}

// write queues the lines and the head behind them.
func (h *head) write(b *tenants.Batch, brand tenants.BrandID, lines []line) {
	n := len(lines)
	var (
		seqs      = make([]int64, n)
		grants    = make([]uuid.UUID, n)
		contexts  = make([]string, n)
		messages  = make([]string, n)
		contents  = make([][]byte, n)
		ats       = make([]time.Time, n)
		lates     = make([]bool, n)
		signed    = make([]string, n)
		salts     = make([][]byte, n)
		entries   = make([]string, n)
		hashes    = make([][]byte, n)
		acceptees bool
	)
	for i, l := range lines {
		seqs[i], grants[i], contexts[i], messages[i], contents[i] = l.seq, l.grant, l.ContextID, l.MessageID, l.content
		ats[i], lates[i], signed[i], salts[i], entries[i], hashes[i] = l.at, l.late, l.jws, l.salt, string(l.entry), l.hashes
		acceptees = acceptees || l.facts.Accepted != nil
	}
	const insert = `
		INSERT INTO receipts (brand_id, seq, grant_id, context_id, message_id, content, at, late, jws, salt, entry, hashes)
		SELECT @brand, * FROM unnest(@seqs::bigint[], @grants::uuid[], @contexts::text[], @messages::text[], @contents::bytea[],
		       @ats::timestamptz[], @lates::boolean[], @jws::text[], @salts::bytea[], @entries::text[], @hashes::bytea[])`
	const move = `UPDATE log_heads SET size = @size, edge = @edge, last = @last, last_at = @at WHERE brand_id = @brand`
	const forget = `
		DELETE FROM turns_accepted t
		 USING unnest(@grants::uuid[], @contexts::text[], @messages::text[], @contents::bytea[]) i (grant_id, context_id, message_id, content)
		 WHERE t.brand_id = @brand AND t.grant_id = i.grant_id AND t.context_id = i.context_id AND t.message_id = i.message_id AND t.content = i.content`
	b.Queue(insert, pgx.NamedArgs{
		"brand": brand, "seqs": seqs, "grants": grants, "contexts": contexts, "messages": messages, "contents": contents,
		"ats": ats, "lates": lates, "jws": signed, "salts": salts, "entries": entries, "hashes": hashes,
	})
	b.Queue(move, pgx.NamedArgs{"brand": brand, "size": h.edge.Size, "edge": h.edge.Bytes(), "last": h.last, "at": h.lastAt})
	if acceptees {
		b.Queue(forget, pgx.NamedArgs{"brand": brand, "grants": grants, "contexts": contexts, "messages": messages, "contents": contents})
	}
}
