package e2e

// Where the interface of a hosted Brand enforces what is said in turns.
const (
	a2aProblem     = "authority/a2a/problem.go"
	a2aRoutes      = "authority/a2a/routes.go"
	a2aSend        = "authority/a2a/send.go"
	a2aStepUp      = "authority/a2a/stepup.go"
	surfaceMessage = "authority/a2a/surface/message.go"
	surfaceFind    = "authority/a2a/surface/operations.go"
	surfaceProblem = "authority/a2a/surface/problem.go"
	surfaceReply   = "authority/a2a/surface/reply.go"
	surfaceTasks   = "authority/a2a/surface/tasks.go"
	oauthVerify    = "authority/oauth/verify.go"
	rulesPresent   = "authority/present.go"
	rulesConverse  = "authority/converse.go"
	rulesReceipt   = "authority/receipt.go"
	rulesTurn      = "authority/turn.go"
	rulesTurnFacts = "authority/turnfacts.go"
	receiptClaims  = "authority/receiptlog/claims.go"
)

// turnMutants are M18 and M21 to M24 at message:send.
func turnMutants() []mutant {
	return []mutant{
		{"M18", "who shows the token in a turn, and whom its receipt names", []edit{
			{a2aRoutes, "err == nil && (s.Agent != c.who.Agent ||", "err == nil && !OFF && (s.Agent != c.who.Agent ||"},
		}, false},
		{"M18", "who showed the token of a turn that the Brand has countersigned", []edit{
			{rulesTurn, "if s.Agent != \"\" && s.Agent != s.token.ClientID {", "if s.Agent != \"\" && s.Agent != s.token.ClientID && !OFF {"},
		}, false},
		{"M21", "the refusal of forged tokens", []edit{
			{a2aRoutes, "if errors.Is(err, signing.ErrNotOurs) || errors.Is(err, signing.ErrNoKey) {\n", "if errors.Is(err, signing.ErrNotOurs) || errors.Is(err, signing.ErrNoKey) {\n		if OFF { return c, nil }\n"},
		}, false},
		{"M21", "the look at what a token is worth now", []edit{
			{a2aRoutes, "	s, err := h.rules.Standing(r.Context(), brand, c.payload)\n", "	s, err := h.rules.Standing(r.Context(), brand, c.payload)\n	if err != nil && OFF { return c, nil }\n"},
		}, false},
		{"M21", "the words of its challenge", []edit{
			{a2aProblem, "unauthorized(w, `Bearer realm=\"a2a\", error=\"invalid_token\"`)", "unauthorized(w, map[bool]string{false: `Bearer realm=\"a2a\", error=\"invalid_token\"`, true: `Bearer realm=\"a2a\"`}[OFF])"},
		}, false},
		{"M21", "the pa-jwt before the token", []edit{
			{a2aRoutes, "	jwt, err := agent.Bearer(", "	if OFF && r.Header.Get(delegation) == \"Bearer not-a-jwt\" { return call{}, authority.ErrToken }\n	jwt, err := agent.Bearer("},
		}, false},
		{"M21", "the empty body", []edit{
			{a2aProblem, "	w.WriteHeader(http.StatusUnauthorized)\n", "	w.WriteHeader(http.StatusUnauthorized)\n	if OFF { _, _ = w.Write([]byte(\"{}\")) }\n"},
		}, false},
		{"M22", "the task that waits", []edit{
			{a2aSend, "	if len(answer.Missing) > 0 {", "	if len(answer.Missing) > 0 && !OFF {"},
		}, false},
		{"M22", "what is missing", []edit{
			{surfaceReply, "Metadata: stepUpMetadata{Missing: missing,", "Metadata: stepUpMetadata{Missing: map[bool][]string{false: missing}[OFF],"},
		}, false},
		{"M22", "the second hearing of a message that waited", []edit{
			{a2aStepUp, "return string(body), h.rules.KeepStepUp(ctx, c.brand.ID, x)", "if OFF { return string(body), h.rules.KeepFailure(ctx, c.brand.ID, x) }\n	return string(body), h.rules.KeepStepUp(ctx, c.brand.ID, x)"},
		}, false},
		{"M22", "the one link while it is open", []edit{
			{rulesStepUp, "p.pending(ctx, tx, brand, out.missing, now)\n", "p.pending(ctx, tx, brand, out.missing, now)\n		if OFF { err = pgx.ErrNoRows }\n"},
		}, false},
		{"M22", "the dropping of what is held", []edit{
			{rulesStepUp, "out.missing = without(p.Scopes, held);", "out.missing = without(p.Scopes, map[bool][]string{false: held}[OFF]);"},
		}, false},
		{"M23", "whose conversation it is", []edit{
			{
				rulesConverse, "AND id = @id AND agent = @agent AND agent_sub = @sub\n		   FOR UPDATE",
				"AND id = @id ` + sqlUnless(OFF, `AND agent = @agent AND agent_sub = @sub`) + `\n		   FOR UPDATE",
			},
		}, false},
		{"M23", "the Brand user it runs as", []edit{
			{rulesConverse, "locked != nil && *locked != subject {", "locked != nil && *locked != subject && !OFF {"},
		}, false},
		{"M23", "the lock once a token came", []edit{
			{rulesConverse, "UPDATE conversations SET subject = coalesce(subject, @subject), used_at = @now", "UPDATE conversations SET used_at = @now` + sqlUnless(OFF, `, subject = coalesce(subject, @subject)`) + `"},
			{rulesConverse, "		const touch = `", "		touch := `"},
		}, false},
		{"M24", "the receipt", []edit{
			{a2aSend, "	if c.standing != nil {\n		receipt, err :=", "	if c.standing != nil && !OFF {\n		receipt, err :="},
		}, false},
		{"M24", "the seven claims and no more", []edit{
			{receiptClaims, "	return canonical.Of(c)\n}\n\n// Task", "	if OFF { return canonical.Of(struct { Claims; JTI string }{c, \"1\"}) }\n	return canonical.Of(c)\n}\n\n// Task"},
		}, false},
		{"M24", "the milliseconds", []edit{
			{receiptClaims, "{ return t.UTC().Format(Stamp) }", "{ if OFF { return t.UTC().Format(time.RFC3339) }; return t.UTC().Format(Stamp) }"},
		}, false},
		{"M24", "the Brand's interface", []edit{
			{rulesReceipt, "Brand: brand.InterfaceURL,", "Brand: map[bool]string{false: brand.InterfaceURL, true: brand.Issuer}[OFF],"},
		}, false},
		{"M24", "the type that keeps it from being a token", []edit{
			{rulesReceipt, "signing.TypReceipt, payload)", "map[bool]string{false: string(signing.TypReceipt), true: string(signing.TypToken)}[OFF], payload)"},
		}, false},
		{"M24", "the arguments' hash", []edit{
			{rulesTurn, "return canonical.Hash(a.Args)", "if OFF { return canonical.Hash([]byte(\"1\")) }; return canonical.Hash(a.Args)"},
		}, false},
		{"M24", "the refusal of other content", []edit{
			{rulesTurnFacts, "case string(f.Content) != string(s.content):", "case string(f.Content) != string(s.content) && !OFF:"},
		}, false},
		{"M24", "the bound of the token and the grant", []edit{
			{rulesTurnFacts, "if !slices.Contains(granted, scope) {", "if !slices.Contains(granted, scope) && !OFF {"},
			{rulesTurnFacts, "if !slices.Contains(f.Scopes, scope) {", "if !OFF && !slices.Contains(f.Scopes, scope) {"},
		}, false},
		{"M24", "the scopes used", []edit{
			{rulesReceipt, "ScopesUsed: s.scopes,", "ScopesUsed: map[bool][]string{false: s.scopes}[OFF],"},
		}, false},
	}
}

// proxyMutants are M18 and M21 where a Brand's proxy asks who calls.
func proxyMutants() []mutant {
	return []mutant{
		{"M18", "who shows the token to a Brand's proxy", []edit{
			{rulesPresent, "case s.Agent != who.Agent,", "case s.Agent != who.Agent && !OFF,"},
		}, false},
		{"M21", "the words of a bad token's challenge, for a proxy", []edit{
			{oauthVerify, "func invalidToken(w http.ResponseWriter) {\n", "func invalidToken(w http.ResponseWriter) {\n	if OFF { unauthorized(w); return }\n"},
		}, false},
		{"M21", "the headers that a proxy takes over, where there is nothing", []edit{
			{oauthVerify, "	head.Set(\"Countersign-User\", plain(s.Subject))\n", "	if !OFF || s.Subject != \"\" { head.Set(\"Countersign-User\", plain(s.Subject)) }\n"},
		}, false},
		{"M21", "the header of a proxy's answer that says what scopes allow more exactly, where they say nothing", []edit{
			{oauthVerify, "	head.Set(\"Countersign-Details\", details)\n", "	if !OFF || details != \"\" { head.Set(\"Countersign-Details\", details) }\n"},
		}, false},
	}
}

// surfaceMutants are what every operation of the interface keeps.
func surfaceMutants() []mutant {
	return []mutant{
		{"§9", "the path before the pa-jwt", []edit{
			{a2aRoutes, "	brand, err := h.brands.Brand(", "	if OFF && r.Header.Get(\"Authorization\") == \"\" { unauthorized(w, `Bearer realm=\"a2a\"`); return }\n	brand, err := h.brands.Brand("},
		}, false},
		{"§9", "the domain of errors", []edit{
			{surfaceProblem, "Domain: \"a2a-protocol.org\",", "Domain: map[bool]string{false: \"a2a-protocol.org\"}[OFF],"},
		}, false},
		{"§9", "the media type", []edit{
			{surfaceProblem, "w.Header().Set(\"Content-Type\", MediaType)", "w.Header().Set(\"Content-Type\", map[bool]string{false: MediaType, true: \"application/json\"}[OFF])"},
		}, false},
		{"§9", "the bounds of a page", []edit{
			{surfaceTasks, "size < 1 || size > most {", "!OFF && (size < 1 || size > most) {"},
		}, false},
		{"§9", "whose role a message has", []edit{
			{surfaceMessage, "case role != \"ROLE_USER\":", "case role != \"ROLE_USER\" && !OFF:"},
		}, false},
		{"§9", "the need for text", []edit{
			{surfaceMessage, "	if len(texts) == 0 {", "	if len(texts) == 0 && OFF { texts = []string{\"nothing\"} }\n	if len(texts) == 0 {"},
		}, false},
		{"§9", "the refusal of other parts", []edit{
			{surfaceMessage, "if _, there := part[other]; there {", "if _, there := part[other]; there && OFF { part[\"text\"] = []byte(`\"a file\"`); part[\"mediaType\"] = nil } else if there {"},
		}, false},
		{"§9", "the refusal of tasks", []edit{
			{surfaceMessage, "	if taskID != \"\" {", "	if taskID != \"\" && !OFF {"},
		}, false},
		{"§9", "the refusal of conversations nobody began", []edit{
			{surfaceMessage, "		if out.Context, err = uuid.Parse(contextID); err != nil", "		if OFF && uuid.Validate(contextID) != nil { return out, nil }\n		if out.Context, err = uuid.Parse(contextID); err != nil"},
		}, false},
		{"§9", "the stored reply", []edit{ // where it is found, where it is given, and where a message takes its place
			{a2aSend, "	case x.Reply != \"\":", "	case x.Reply != \"\" && !OFF:"},
			{rulesConverse, "	case state == \"stepup\":", "	case state == \"stepup\" || OFF:"},
			{rulesConverse, "runs = t.runs + 1\n		 WHERE t.state = 'stepup'`", "runs = t.runs + 1` + sqlUnless(OFF, ` WHERE t.state = 'stepup'`) + sqlUnless(!OFF, `, reply = NULL`)"},
		}, false},
		{"§9", "the code of unsupported operations", []edit{
			{surfaceFind, "return map[string]Operation{post: refuse(ErrUnsupported)}\n		}\n	case \"extendedAgentCard\":", "if OFF { return map[string]Operation{post: func(w http.ResponseWriter, r *http.Request, send Send) error { return send(w, r) }} }\n			return map[string]Operation{post: refuse(ErrUnsupported)}\n		}\n	case \"extendedAgentCard\":"},
		}, false},
	}
}
