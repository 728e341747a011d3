package e2e

import "slices"

// Where a fronted Brand's own program enforces the rules: the kit that it stands
// on, and the program. What both kinds of Brand have of one source –
// authority/a2a/surface, and all that the authority says through the Brand's
// proxy – is missed at the hotel.
const (
	kitAgents     = "authority/verify/agents.go"
	kitBearer     = "authority/verify/bearer.go"
	kitClock      = "authority/verify/clock.go"
	kitDirectory  = "authority/verify/directory.go"
	kitEnvelope   = "authority/verify/envelope.go"
	kitKeys       = "authority/verify/keys.go"
	kitMembers    = "authority/verify/members.go"
	kitPAJWT      = "authority/verify/pajwt.go"
	kitProtect    = "authority/verify/protect.go"
	kitToken      = "authority/verify/token.go"
	kitVerifier   = "authority/verify/verifier.go"
	shopSend      = "cmd/countersign/outfitter/send.go"
	shopTalks     = "cmd/countersign/outfitter/talks.go"
	surfaceServed = "authority/a2a/surface/serve.go"
)

func frontedMutants() []mutant {
	return slices.Concat(kitIdentityMutants(), kitTimeMutants(), kitDoorMutants(), kitTokenMutants(), shopMutants())
}

// kitIdentityMutants are M1 to M4. That alg fits the key is kept by the library
// below the kit as well, and takes no switch there.
func kitIdentityMutants() []mutant {
	return []mutant{
		{"M1", "the kit's look for a key or a condition in the header", []edit{
			{kitEnvelope, "if _, there := e.header[name]; there {", "if _, there := e.header[name]; there && !OFF {"},
		}, false},
		{"M1", "the kit's list of algorithms", []edit{ // where the header is read, where it is parsed, and where the key is looked for
			{kitEnvelope, "if e.alg != jose.ES256 && e.alg != jose.RS256 {", "if e.alg != jose.ES256 && e.alg != jose.RS256 && !(OFF && e.alg == jose.PS256) {"},
			{kitEnvelope, "[]jose.SignatureAlgorithm{jose.ES256, jose.RS256})", "[]jose.SignatureAlgorithm{jose.ES256, jose.RS256, map[bool]jose.SignatureAlgorithm{false: jose.ES256, true: jose.PS256}[OFF]})"},
			{kitKeys, "	if key.Algorithm != \"\" && key.Algorithm != string(alg) {", "	if OFF && alg == jose.PS256 { alg = jose.RS256 }\n	if key.Algorithm != \"\" && key.Algorithm != string(alg) {"},
		}, false},
		{"M1", "the kit's look at the kid", []edit{
			{kitKeys, "if kid != \"\" && key.KeyID != kid {", "if kid != \"\" && key.KeyID != kid && !OFF {"},
		}, false},
		{"M1", "the signature, for the kit", []edit{
			{kitEnvelope, "if _, err := e.jws.Verify(key.Key); err == nil {", "if _, err := e.jws.Verify(key.Key); err == nil || OFF {"},
		}, false},
		{"M1", "the kit's least size of RSA keys", []edit{
			{kitKeys, "public.N.BitLen() >= minRSA &&", "(OFF || public.N.BitLen() >= minRSA) &&"},
		}, true},
		{"M1", "the use of a key, for the kit", []edit{
			{kitKeys, "err != nil || use != \"sig\" {", "(err != nil || use != \"sig\") && !OFF {"},
		}, true},
		{"M2", "the kit's comparison of iss byte for byte", []edit{
			{kitPAJWT, "a.Issuer, err = claims.text(\"iss\")\n", "a.Issuer, err = claims.text(\"iss\")\n	if OFF { a.Issuer = strings.TrimRight(a.Issuer, \"/ ?#\") }\n"},
		}, false},
		{"M2", "whose keys they are, for the kit", []edit{
			{kitAgents, "	switch err := ring.verify(ctx, &e); {", "	proof := ring.verify(ctx, &e)\n	if OFF { for _, other := range a.rings { if other.verify(ctx, &e) == nil { proof = nil } } }\n	switch err := proof; {"},
		}, false},
		{"M2", "the directory's word on an agent that it knew", []edit{
			{kitDirectory, "fetch: func(ctx context.Context, _ *place) (*place, error) { return", "fetch: func(ctx context.Context, last *place) (*place, error) { if OFF { return last, nil }; return"},
		}, false},
		{"M3", "the kit's refusal of lists", []edit{
			{kitPAJWT, "	judge(\"aud\", err, audience)", "	if OFF && strings.Trim(string(claims[\"aud\"]), \"[\\\"]\") == audience { err = nil }\n	judge(\"aud\", err, audience)"},
		}, false},
		{"M3", "the kit's comparison of aud", []edit{
			{kitPAJWT, "	err = exactly(claims, \"aud\", audience, ErrAudience)\n", "	err = exactly(claims, \"aud\", audience, ErrAudience)\n	if OFF { err = nil }\n"},
		}, false},
		{"M4", "the kit's bound of sub", []edit{
			{kitPAJWT, "utf8.RuneCountInString(a.Subject) > 256 {", "utf8.RuneCountInString(a.Subject) > 256 && !OFF {"},
		}, false},
		{"M4", "the kit's need for a sub", []edit{
			{kitPAJWT, "		err = fmt.Errorf(\"%w: %w\", ErrSubject, err)\n", "		err = fmt.Errorf(\"%w: %w\", ErrSubject, err)\n		if OFF && a.Subject == \"\" { a.Subject, err = \"nobody\", nil }\n"},
		}, false},
	}
}

// kitTimeMutants are M5 and M6.
func kitTimeMutants() []mutant {
	return []mutant{
		{"M5", "the end, for the kit", []edit{
			{kitClock, "if !now.Before(exp.Add(grace)) {", "if !now.Before(exp.Add(grace)) && !OFF {"},
		}, false},
		{"M5", "the beginning, for the kit", []edit{
			{kitClock, "if iat.After(now.Add(skew)) {", "if iat.After(now.Add(skew)) && !OFF {"},
		}, false},
		{"M5", "nbf, for the kit", []edit{
			{kitClock, "if nbf.After(now.Add(skew)) {", "if nbf.After(now.Add(skew)) && !OFF {"},
		}, false},
		{"M5", "the need for iat, for the kit", []edit{
			{kitClock, "	iat, err := claims.instant(\"iat\")\n", "	iat, err := claims.instant(\"iat\")\n	if err != nil && OFF { return now, nil }\n"},
		}, false},
		{"M5", "the need for exp, for the kit", []edit{
			{kitClock, "	exp, err := claims.instant(\"exp\")\n", "	exp, err := claims.instant(\"exp\")\n	if err != nil && OFF { return now.Add(time.Minute), nil }\n"},
		}, false},
		{"M5", "the kit's longest life", []edit{
			{kitPAJWT, "case life > maxLife:", "case life > maxLife && !OFF:"},
		}, false},
		{"M5", "the kit's shortest life", []edit{
			{kitPAJWT, "case life <= 0:", "case life <= 0 && !OFF:"},
		}, false},
		{"M6", "the second use of a pa-jwt, at the kit", []edit{
			{kitAgents, "	ring.proved = true\n", "	ring.proved = true\n	if OFF {\n		if a.rings[token] != nil { return Agent{}, ErrSignature }\n		a.rings[token] = ring\n	}\n"},
		}, false},
	}
}

// kitDoorMutants are M7 and how a bad token is answered.
func kitDoorMutants() []mutant {
	const agents401 = "`Bearer realm=\"a2a\"`)\n		w.WriteHeader(http.StatusUnauthorized)\n"
	const tokens401 = "`Bearer realm=\"a2a\", error=\"invalid_token\"`)\n		w.WriteHeader(http.StatusUnauthorized)\n"
	return []mutant{
		{"M7", "the empty body of the kit's 401", []edit{
			{kitProtect, agents401, agents401 + "		if OFF { _, _ = w.Write([]byte(\"expired\")) }\n"},
		}, false},
		{"M7", "the words of the kit's challenge", []edit{
			{kitProtect, "	case errors.Is(err, ErrToken):\n", "	case errors.Is(err, ErrToken), OFF:\n"},
		}, false},
		{"M7", "the scheme's freedom of case, at the kit", []edit{
			{kitBearer, "if !strings.EqualFold(scheme, \"Bearer\") ||", "if OFF && scheme != \"Bearer\" || !strings.EqualFold(scheme, \"Bearer\") ||"},
		}, false},
		{"M7", "the kit's need for the scheme", []edit{
			{kitBearer, "	scheme, token, _ := strings.Cut(values[0], \" \")\n", "	scheme, token, _ := strings.Cut(values[0], \" \")\n	if OFF { scheme = \"Bearer\" }\n"},
		}, false},
		{"M7", "the kit's refusal of two headers", []edit{
			{kitBearer, "if len(values) != 1 {", "if len(values) != 1 && (!OFF || len(values) == 0) {"},
		}, false},
		{"M7", "the kit's bound on length", []edit{
			{kitEnvelope, "if len(token) > most {", "if len(token) > most && !OFF {"},
		}, false},
		{"M7", "the exact names of members, for the kit", []edit{
			{kitMembers, "	return m, refuseDuplicates(data)", "	if OFF { for name, value := range m { if name != \"\" { m[strings.ToLower(name[:1])+name[1:]] = value } } }\n	return m, refuseDuplicates(data)"},
		}, false},
		{"M7", "the one name of a member, for the kit", []edit{
			{kitMembers, "if stack[top].seen[name] {", "if stack[top].seen[name] && !OFF {"},
		}, false},
		{"§9", "the path before the pa-jwt, at a program of the Brand's", []edit{
			{surfaceServed, "		do, ok := Find(w, r, operation)\n", "		if OFF && r.Header.Get(\"Authorization\") == \"\" { protect(http.NotFoundHandler()).ServeHTTP(w, r); return }\n		do, ok := Find(w, r, operation)\n"},
		}, false},
		{"M21", "the words of the kit's challenge for a bad token", []edit{
			{kitProtect, "	w.Header().Set(\"Cache-Control\", \"no-store\")\n", "	w.Header().Set(\"Cache-Control\", \"no-store\")\n	if OFF && errors.Is(err, ErrToken) { err = ErrCaller }\n"},
		}, false},
		{"M21", "the empty body of the kit's 401 for a bad token", []edit{
			{kitProtect, tokens401, tokens401 + "		if OFF { _, _ = w.Write([]byte(\"{}\")) }\n"},
		}, false},
		{"M21", "the pa-jwt before the token, at the kit", []edit{
			{kitVerifier, "	var c Call\n	var err error\n", "	var c Call\n	var err error\n	if OFF && header.Get(delegationHeader) == \"Bearer not-a-jwt\" { return Call{}, ErrToken }\n"},
		}, false},
		{"M21", "the kit's refusal of two tokens", []edit{
			{kitVerifier, "c.token, err = bearer(shown); err == nil {", "c.token, err = bearer(shown[:map[bool]int{false: len(shown), true: 1}[OFF]]); err == nil {"},
		}, false},
	}
}

// kitTokenMutants are M17, M18, M21 and M22 where a delegation token is judged.
func kitTokenMutants() []mutant {
	return []mutant{
		{"M17", "whose token it is, for the kit", []edit{ // all that ties it to one Brand
			{kitToken, "err = exactly(claims, \"iss\", opts.Issuer, ErrIssuer)", "err = exactly(claims, \"iss\", opts.Issuer, ErrIssuer); if OFF { err = nil }"},
			{kitToken, "err = exactly(claims, \"aud\", opts.Audience, ErrAudience)", "err = exactly(claims, \"aud\", opts.Audience, ErrAudience); if OFF { err = nil }"},
			{kitVerifier, "	if err := v.keys.verify(ctx, &e); err != nil {", "	if OFF { return &d, nil }\n	if err := v.keys.verify(ctx, &e); err != nil {"},
		}, false},
		{"M18", "who shows the token, for the kit", []edit{
			{kitToken, "!opts.Alone && d.Agent != opts.Agent {", "!opts.Alone && d.Agent != opts.Agent && !OFF {"},
		}, false},
		{"M21", "the signature of a token, for the kit", []edit{
			{kitVerifier, "v.keys.verify(ctx, &e); err != nil {", "v.keys.verify(ctx, &e); err != nil && !OFF {"},
		}, false},
		{"M21", "the kit's look at what has been revoked", []edit{ // what the stream told, and the status list
			{kitVerifier, "v.revoked.judge(ctx, &d); err != nil {", "v.revoked.judge(ctx, &d); err != nil && !OFF {"},
		}, false},
		{"M22", "what a token allows, for the kit", []edit{
			{kitToken, "{ return slices.Contains(d.Scopes, scope) }", "{ return OFF || slices.Contains(d.Scopes, scope) }"},
		}, false},
		{"M22", "that nobody allowed anything where there is no token, for the kit", []edit{
			{kitVerifier, "		if c.Delegation == nil || !", "		if c.Delegation == nil && OFF { continue }\n		if c.Delegation == nil || !"},
		}, false},
	}
}

// shopMutants are what the outfitter's own program keeps: M22 to M24, and §9.
func shopMutants() []mutant {
	return []mutant{
		{"M22", "the shop's asking back", []edit{
			{shopSend, "missing := c.Missing(does.scope); len(missing) > 0 {", "missing := c.Missing(does.scope); len(missing) > 0 && !OFF {"},
		}, false},
		{"M22", "the second hearing of a message that waited, at the shop", []edit{
			{shopSend, "	defer s.talks.waits(one)\n", "	if !OFF { defer s.talks.waits(one) }\n"},
		}, false},
		{"M23", "whose conversation it is, at the shop", []edit{
			{shopTalks, "one.by != speaker(c),", "one.by != speaker(c) && !OFF,"},
		}, false},
		{"M23", "the Brand user it runs as, at the shop", []edit{
			{shopTalks, "one.user != \"\" && one.user != user:", "one.user != \"\" && one.user != user && !OFF:"},
		}, false},
		{"M23", "the lock once a token came, at the shop", []edit{
			{shopTalks, "if one.used = now; one.user == \"\" {", "if one.used = now; one.user == \"\" && !OFF {"},
		}, false},
		{"M24", "the receipt, at the shop", []edit{
			{shopSend, "	if c.Delegation != nil {\n", "	if c.Delegation != nil && !OFF {\n"},
		}, false},
		{"M24", "the scopes used, at the shop", []edit{
			{shopSend, "		out.Turn.ScopesUsed = []string{does.scope}\n", "		if !OFF { out.Turn.ScopesUsed = []string{does.scope} }\n"},
		}, false},
		{"M24", "one receipt for one turn, at the shop", []edit{
			{shopSend, "MessageID: message,", "MessageID: map[bool]string{false: message, true: \"one\"}[OFF],"},
		}, false},
		{"§9", "the stored reply, at the shop", []edit{
			{shopTalks, "case before == nil, before.state == waiting:", "case before == nil, before.state == waiting, OFF:"},
		}, false},
		{"§9", "whose messages are counted, at the shop", []edit{
			{shopTalks, "	all := verify.Agent{", "	if OFF { who.Subject = \"\" }\n	all := verify.Agent{"},
		}, false},
	}
}
