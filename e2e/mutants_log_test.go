package e2e

// Where what stands together is enforced: several receipts, the log of all, the
// stream of what becomes of grants.
const (
	oauthEvents   = "authority/oauth/events.go"
	oauthLog      = "authority/oauth/log.go"
	oauthReceipts = "authority/oauth/receipts.go"
	rulesProof    = "authority/proof.go"
	rulesTask     = "authority/task.go"
)

// logMutants are M24 where receipts stand together, and §10.
func logMutants() []mutant {
	return []mutant{
		{"M24", "the refusal of one turn among several", []edit{
			{oauthReceipts, "} else if got.Err != nil {\n", "} else if got.Err != nil && !OFF {\n"},
		}, false},
		{"M24", "the order of several answers", []edit{
			{oauthReceipts, "		results[places[i]] = result\n", "		if OFF { results[places[len(places)-1-i]] = result } else { results[places[i]] = result }\n"},
		}, false},
		{"M24", "the tree over a conversation's receipts", []edit{
			{rulesTask, "Count: edge.Size, Root: receiptlog.Text(edge.Root()),", "Count: edge.Size, Root: receiptlog.Text(map[bool]tlog.Hash{false: edge.Root()}[OFF]),"},
		}, false},
		{"M24", "the type of a conversation's receipt", []edit{
			{rulesTask, "signing.TypTaskReceipt, payload)", "map[bool]string{false: string(signing.TypTaskReceipt), true: string(signing.TypReceipt)}[OFF], payload)"},
		}, false},
		// What is signed of a log is kept for ever, so nothing wrong may be signed of it
		// here: the later mutants would meet it.
		{"§10", "the signature of a checkpoint", []edit{
			{oauthLog, "	_, _ = io.WriteString(w, c.JWS)\n", "	if OFF { c.JWS = c.JWS[:len(c.JWS)-10] }\n	_, _ = io.WriteString(w, c.JWS)\n"},
		}, false},
		{"§10", "the way from a line to the root", []edit{
			{rulesProof, "tlog.ProveRecord(size, seq, ", "tlog.ProveRecord(size, map[bool]int64{false: seq, true: (seq + 1) % size}[OFF], "},
		}, false},
		{"§10", "the way from one log to its beginning", []edit{
			{oauthLog, `h.proof(w, r, brand, "from", "to", h.authority.Consistency)`, `h.proof(w, r, brand, "from", "to", map[bool]func(context.Context, tenants.BrandID, int64, int64) ([]tlog.Hash, error){false: h.authority.Consistency, true: h.authority.Inclusion}[OFF])`},
		}, false},
		{"§10", "whose line it is", []edit{
			{
				rulesProof, "AND g.agent = @agent AND g.agent_sub = @sub))`",
				"` + sqlUnless(OFF, `AND g.agent = @agent AND g.agent_sub = @sub`) + `))`",
			},
		}, false},
		{"§10", "the Brand's key for a line", []edit{
			{oauthLog, "		if _, ok := h.credential(w, r, brand, tenants.RightReceipts); !ok {", "		if OFF {\n		} else if _, ok := h.credential(w, r, brand, tenants.RightReceipts); !ok {"},
		}, false},
		{"§10", "the telling of ends", []edit{
			{oauthEvents, "		for _, e := range list {\n", "		for _, e := range list {\n			if OFF && e.Type != \"grant.created\" { s.place = e.Seq; continue }\n"},
		}, false},
		{"§10", "the place where a listener stopped", []edit{
			{oauthEvents, "	if err != nil || len(last) == 0 {\n", "	if err != nil || len(last) == 0 || OFF {\n"},
		}, false},
		{"§10", "the refusal of a place that is none", []edit{
			{oauthEvents, "err != nil || place < 0 || place > now ||", "err != nil || place < 0 || place > now && !OFF ||"},
		}, false},
		{"§10", "the Brand's key for the stream", []edit{
			{oauthEvents, "	if !ok {\n		return\n	}\n	follower, ok", "	if !ok && !OFF {\n		return\n	}\n	follower, ok"},
			{oauthEvents, "	key, ok := h.credential(w, r, brand, tenants.RightEvents)\n", "	var key string\n	if !OFF { key, ok = h.credential(w, r, brand, tenants.RightEvents) }\n"},
			{oauthEvents, "_, err = h.creds.Check(ctx, brand, key, tenants.RightEvents)", "_, err = h.creds.Check(ctx, brand, key, tenants.RightEvents); if OFF { err = nil }"},
		}, false},
	}
}

// limitMutants are what is said to whoever says too much.
func limitMutants() []mutant {
	return []mutant{
		{"§9", "the time after which to come again", []edit{
			{surfaceProblem, "wait > 0 {\n", "wait > 0 && !OFF {\n"},
		}, false},
		{"§9", "whose messages are counted", []edit{
			{
				rulesConverse, "AND agent = @agent AND agent_sub = @sub AND began_at > @living`",
				"AND agent = @agent ` + sqlUnless(OFF, `AND agent_sub = @sub`) + ` AND began_at > @living`",
			},
		}, false},
	}
}
