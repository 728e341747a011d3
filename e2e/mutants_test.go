package e2e

import "slices"

// Where the rules are enforced. A rule that is enforced at several places has
// several edits in one mutant, for with one of them gone the others still hold.
const (
	agentBearer    = "authority/agent/bearer.go"
	agentClaims    = "authority/agent/claims.go"
	agentJWK       = "authority/agent/jwk.go"
	agentObject    = "authority/agent/object.go"
	agentParse     = "authority/agent/parse.go"
	agentVerify    = "authority/agent/verify.go"
	oauthCaller    = "authority/oauth/caller.go"
	oauthForm      = "authority/oauth/form.go"
	oauthRoutes    = "authority/oauth/routes.go"
	rulesDecide    = "authority/decide.go"
	rulesGrant     = "authority/grant.go"
	rulesPoll      = "authority/poll.go"
	rulesRefresh   = "authority/refresh.go"
	rulesRequest   = "authority/request.go"
	rulesRevoke    = "authority/revoke.go"
	rulesStanding  = "authority/introspect.go"
	rulesStepUp    = "authority/stepup.go"
	rulesToken     = "authority/token.go"
	a2aCard        = "authority/a2a/card.go"
	consentBrowser = "consent/browser.go"
	consentCode    = "consent/code.go"
	consentDecide  = "consent/decide.go"
	consentJourney = "consent/journey.go"
	consentShow    = "consent/show.go"
	consentSteps   = "consent/steps.go"
	pagesHeaders   = "web/headers.go"
)

func mutants() []mutant {
	return slices.Concat(identityMutants(), doorMutants(), deviceMutants(), standingMutants(), refreshMutants(), personMutants(), turnMutants(), proxyMutants(), surfaceMutants(), logMutants(), limitMutants())
}

// identityMutants are M1 to M6: authority/agent alone.
func identityMutants() []mutant {
	return []mutant{
		{"M1", "the look for a key or a condition in the header", []edit{
			{agentParse, "if header.has(name) {", "if header.has(name) && !OFF {"},
		}, false},
		{"M1", "the fit of alg and key", []edit{ // the first of two places: a key has one algorithm, too
			{agentParse, "if !ok || alg != es256 && alg != rs256 {", "if !OFF && (!ok || alg != es256 && alg != rs256) {"},
			{agentJWK, "if k.alg != t.alg {", "if k.alg != t.alg && !OFF {"},
		}, false},
		{"M1", "the signature", []edit{
			{agentJWK, "if k.verifies(digest[:], t.signature) {", "if OFF || k.verifies(digest[:], t.signature) {"},
		}, false},
		{"M1", "the least size of RSA keys", []edit{
			{agentJWK, "case bits < minRSABits ||", "case bits < minRSABits && !OFF ||"},
		}, true},
		{"M1", "the use of a key", []edit{
			{agentJWK, `o.has("use") && use != "sig" {`, `o.has("use") && use != "sig" && !OFF {`},
		}, true},
		{"M2", "the comparison of iss byte for byte", []edit{
			{
				agentClaims, `if c.issuer, ok = o.text("iss"); !ok`,
				`c.issuer, ok = o.text("iss"); if OFF { c.issuer = strings.ToLower(strings.TrimRight(c.issuer, "/ ?#")) }; if !ok`,
			},
		}, false},
		{"M2", "the look at whether an agent is enabled", []edit{ // at the door, and where a request begins
			{agentVerify, "case !a.Enabled:", "case !a.Enabled && !OFF:"},
			{rulesRequest, "	case !r.Known:", "	case !r.Known && !OFF:"},
			{rulesRequest, "WHERE open AND known AND starts", "WHERE open ` + sqlUnless(OFF, `AND known`) + ` AND starts"},
		}, false},
		{"M3", "the refusal of lists", []edit{
			{
				agentClaims, `if c.audience, ok = o.text("aud"); !ok`,
				`c.audience, ok = o.text("aud"); if OFF && !ok { c.audience, ok = strings.Trim(string(o["aud"]), "[\"]"), true }; if !ok`,
			},
		}, false},
		{"M3", "the comparison of aud", []edit{
			{agentClaims, "case c.audience != audience:", "case c.audience != audience && !OFF:"},
		}, false},
		{"M4", "the bounds of sub", []edit{
			{agentClaims, `!ok || !plainSubject(c.subject) {`, `!OFF && (!ok || !plainSubject(c.subject)) {`},
		}, false},
		{"M5", "the end", []edit{
			{agentClaims, "case !c.expires.After(now.Add(-skew)):", "case !OFF && !c.expires.After(now.Add(-skew)):"},
		}, false},
		{"M5", "the beginning", []edit{
			{agentClaims, "case c.issued.After(now.Add(skew)) ||", "case !OFF && c.issued.After(now.Add(skew)) ||"},
		}, false},
		{"M5", "nbf", []edit{
			{agentClaims, "|| c.notBefore.After(now.Add(skew)):", "|| !OFF && c.notBefore.After(now.Add(skew)):"},
		}, false},
		{"M5", "the length of life", []edit{
			{agentClaims, "case life <= 0 || life > maxLife:", "case !OFF && (life <= 0 || life > maxLife):"},
		}, false},
		{"M5", "the need for iat", []edit{
			{agentClaims, `if c.issued, ok = o.instant("iat"); !ok {`, `if c.issued, ok = o.instant("iat"); !ok && OFF { c.issued = time.Now() } else if !ok {`},
		}, false},
		{"M6", "the second use of a pa-jwt", []edit{
			{agentVerify, "if set.holds(known.key) {", "if OFF { return claims{}, \"\", ErrSignature }; if set.holds(known.key) {"},
		}, false},
	}
}

// doorMutants are M7 and M8: what is said before anybody is known.
func doorMutants() []mutant {
	return []mutant{
		{"M7", "the empty body of a 401", []edit{
			{oauthCaller, "w.WriteHeader(http.StatusUnauthorized)", "w.WriteHeader(http.StatusUnauthorized); if OFF { _, _ = w.Write([]byte(\"expired\")) }"},
		}, false},
		{"M7", "the words of the challenge", []edit{
			{
				oauthCaller, "w.Header().Set(\"Cache-Control\", \"no-store\")",
				"if OFF { w.Header().Set(\"WWW-Authenticate\", `Bearer realm=\"a2a\", error=\"invalid_token\"`) }; w.Header().Set(\"Cache-Control\", \"no-store\")",
			},
		}, false},
		{"M7", "the words of the challenge, of a hosted agent", []edit{
			{a2aProblem, "unauthorized(w, `Bearer realm=\"a2a\"`)", "unauthorized(w, map[bool]string{false: `Bearer realm=\"a2a\"`, true: `Bearer realm=\"a2a\", error=\"invalid_token\"`}[OFF])"},
		}, false},
		{"M7", "the scheme's freedom of case", []edit{
			{agentBearer, `if !strings.EqualFold(scheme, "Bearer")`, `if OFF && scheme != "Bearer" || !strings.EqualFold(scheme, "Bearer")`},
		}, false},
		{"M7", "the refusal of two headers", []edit{
			{agentBearer, "if len(authorization) != 1 {", "if len(authorization) != 1 && (!OFF || len(authorization) == 0) {"},
		}, false},
		{"M7", "the bound on length", []edit{ // three places
			{agentBearer, "if len(token) > maxToken {", "if len(token) > maxToken && !OFF {"},
			{agentParse, "if len(text) > maxToken {", "if len(text) > maxToken && !OFF {"},
			{agentVerify, "if len(text) > maxToken {", "if len(text) > maxToken && !OFF {"},
		}, false},
		{"M7", "the exact names of members", []edit{
			{agentObject, "key, ok := name.(string)", "key, ok := name.(string); if OFF && len(key) == 3 { key = string(key[0]|0x20) + key[1:] }"},
		}, false},
		{"M7", "the path before the pa-jwt", []edit{
			{
				oauthRoutes, "		brand, ok := h.brand(w, r)\n		if !ok || !available(w, r, brand, allowed...) {",
				"		if OFF && r.Header.Get(\"Authorization\") == \"\" { unauthorized(w); return }\n		brand, ok := h.brand(w, r)\n		if !ok || !available(w, r, brand, allowed...) {",
			},
		}, false},
		{"M7", "the pa-jwt before the body", []edit{
			{
				oauthRoutes, "		who, err := h.caller(r, brand)",
				"		if OFF && r.Header.Get(\"Content-Type\") != \"application/x-www-form-urlencoded\" { h.fail(w, r, nil, invalidRequest(\"no form\")); return }\n		who, err := h.caller(r, brand)",
			},
		}, false},
		{"M8", "the requirement of the JWT alone", []edit{
			{a2aCard, "	if b.Delegation {", "	if OFF { card.SecurityRequirements = nil }\n	if b.Delegation {"},
		}, false},
		{"M8", "the requirement of both", []edit{
			{a2aCard, "card.SecurityRequirements = append(", "if !OFF { card.SecurityRequirements = append("},
			{a2aCard, "userDelegation: none},\n		})", "userDelegation: none},\n		}) }"},
		}, false},
		{"M8", "the order of scopes", []edit{
			{a2aCard, "	for i, scope := range s {", "	if OFF { s = append(s[1:len(s):len(s)], s[0]) }\n	for i, scope := range s {"},
		}, false},
	}
}

// deviceMutants are M9 to M13, and M15: one request from the question to the token.
func deviceMutants() []mutant {
	return []mutant{
		{"M9", "the comparison of client_id", []edit{
			{oauthForm, `if agent != "" && form.Get("client_id") != agent`, `if !OFF && agent != "" && form.Get("client_id") != agent`},
		}, false},
		{"M9", "the need for client_id", []edit{
			{oauthForm, `!(optional && !form.Has("client_id"))`, `!((optional || OFF) && !form.Has("client_id"))`},
		}, false},
		{"M10", "the look at the card", []edit{
			{rulesRequest, "if _, ok := brand.Scope(s); !ok {", "if _, ok := brand.Scope(s); !ok && !OFF {"},
		}, false},
		{"M10", "the need for a scope", []edit{
			{rulesRequest, "if len(scopes) == 0 {", "if len(scopes) == 0 && !OFF {"},
		}, false},
		{"M10", "the refusal of repeated parameters", []edit{
			{oauthForm, "if len(values) > 1 {", "if len(values) > 1 && !OFF {"},
		}, false},
		{"M10", "the bound on a form", []edit{
			{oauthForm, "http.MaxBytesReader(w, r.Body, maxForm)", "http.MaxBytesReader(w, r.Body, map[bool]int64{false: maxForm, true: 1 << 20}[OFF])"},
		}, false},
		{"M10", "the bound on requests of one person", []edit{
			{rulesRequest, "AND starts < @per_person AND pending < @per_agent\n", "` + sqlUnless(OFF, `AND starts < @per_person AND pending < @per_agent`) + `\n"},
			{rulesRequest, "	case !r.Modest:", "	case !r.Modest && !OFF:"},
		}, false},
		{"M11", "whose code it is, while it is pending", []edit{
			{
				rulesPoll, "device_code_hash = @hash AND agent = @agent AND agent_sub = @sub\n",
				"device_code_hash = @hash ` + sqlUnless(OFF, `AND agent = @agent AND agent_sub = @sub`) + `\n",
			},
		}, false},
		{"M11", "whose code it is, once it is decided", []edit{
			without(rulesPoll, "AND d.agent = @agent AND d.agent_sub = @sub"),
		}, false},
		{"M12", "the token for an early poll", []edit{
			{rulesPoll, "	switch {\n	case c.Leased:", "	if OFF && c.PolledAt != nil && now.Before(c.PolledAt.Add(PollInterval-pollSlack)) { return Tokens{}, ErrTooSoon }\n	switch {\n	case c.Leased:"},
		}, false},
		{"M12", "slow_down", []edit{
			{rulesPoll, `"due": now.Add(pollSlack - PollInterval),`, `"due": now.Add(map[bool]time.Duration{false: pollSlack - PollInterval, true: 0}[OFF]),`},
		}, false},
		{"M12", "the interval's staying the same", []edit{
			{rulesPoll, `"due": now.Add(`, `"due": now.Add(map[bool]time.Duration{true: -PollInterval}[OFF]).Add(`},
		}, false},
		{"M13", "the one redemption", []edit{ // the state, the lease, and the compare-and-set
			{rulesPoll, "	case \"redeemed\":\n", "	case map[bool]string{false: \"redeemed\"}[OFF]:\n"},
			without(rulesPoll, "AND d.state = 'approved' AND (d.lease_until IS NULL OR d.lease_until <= @now)"),
			without(rulesPoll, "AND d.state = 'approved' AND d.lease_id = @lease"),
		}, false},
		{"M15", "what was approved, for what was asked", []edit{
			{rulesPoll, "	var out []string\n	for _, s := range requested {", "	if OFF && len(requested) > 0 { return requested }\n	var out []string\n	for _, s := range requested {"},
		}, false},
		{"M15", "the rest of the grant", []edit{
			{rulesPoll, "if slices.Contains(held, s) && !slices.Contains(out, s) {", "if slices.Contains(held, s) && !slices.Contains(out, s) && !(OFF && len(requested) > 0) {"},
		}, false},
		{"M15", "the order of scopes", []edit{
			{rulesPoll, "	for _, s := range requested {\n		if slices.Contains(held", "	for _, s := range requested {\n		if OFF { break }\n		if slices.Contains(held"},
		}, false},
	}
}
