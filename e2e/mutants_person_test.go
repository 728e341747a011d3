package e2e

// instead is an edit of an SQL expression, which becomes the other where the
// rule is off.
func instead(file, sql, rest, other string) edit {
	return edit{file, sql + rest, "` + sqlUnless(OFF, `" + sql + "`) + sqlUnless(!OFF, `" + other + "`) + `" + rest}
}

const (
	isSuspended = "EXISTS (SELECT FROM suspended_users u WHERE u.brand_id = @brand AND u.subject = g.subject)"
	isEnabled   = "AND (SELECT enabled FROM agent_standing WHERE brand_id = @brand AND issuer = @agent)\n"
	isActive    = "AND (SELECT state = 'active' AND delegation FROM brands WHERE id = @brand)\n"
	isAlive     = "AND g.ended_at IS NULL AND g.expires_at > @now\n"
	inClause    = "			   " // as the statements of payOut and rotate are indented
)

// standingMutants are M14: each condition where it is read, and again in the
// compare-and-set that pays out.
func standingMutants() []mutant {
	var all []mutant
	for when, file := range map[string]string{"at redemption": rulesPoll, "at refresh": rulesRefresh} {
		all = append(
			all,
			mutant{"M14", "the grant's life, " + when, []edit{
				instead(file, "g.ended_at IS NULL AND g.expires_at > @now", " AS grant_on", "true"),
				without(file, inClause+isAlive),
			}, false},
			mutant{"M14", "the user's suspension, " + when, []edit{
				instead(file, isSuspended, " AS suspended", "false"),
				without(file, "AND NOT "+isSuspended),
			}, false},
			mutant{"M14", "the Brand's pause, " + when, []edit{
				instead(file, "b.state = 'active' AND b.delegation", " AS brand_on", "true"),
				without(file, inClause+isActive),
			}, false},
			mutant{"M14", "the agent's being enabled, " + when, []edit{ // and at the door, where it is asked of every call
				instead(file, "coalesce((SELECT enabled FROM agent_standing WHERE brand_id = @brand AND issuer = @agent), false)", " AS agent_on", "true"),
				without(file, inClause+isEnabled),
				{agentVerify, "case !a.Enabled &&", "case !a.Enabled && !OFF &&"},
			}, false},
		)
	}
	return append(all, mutant{"M14", "the card, at refresh", []edit{
		{rulesRefresh, "scopes := payable(nil, h.Scopes, h.Offered)", "scopes := payable(nil, h.Scopes, h.Offered); if OFF { scopes = h.Scopes }"},
	}, false}, mutant{"M14", "the card, at redemption", []edit{
		{rulesPoll, "if slices.Contains(held, s) && slices.Contains(offered, s) {", "if slices.Contains(held, s) && (OFF || slices.Contains(offered, s)) {"},
	}, false})
}

// refreshMutants are M16.
func refreshMutants() []mutant {
	return []mutant{
		{"M16", "whose token it is", []edit{without(rulesRefresh, "AND g.agent = @agent AND g.agent_sub = @sub")}, false},
		{"M16", "rotation", []edit{
			{rulesRefresh, "	return Tokens{Access: signed.Access,", "	if OFF { next = token }\n	return Tokens{Access: signed.Access,"},
		}, false},
		{"M16", "the grace window", []edit{
			{rulesRefresh, "case brand.Grace > 0 &&", "case !OFF && brand.Grace > 0 &&"},
		}, false},
		{"M16", "one successor", []edit{
			{rulesRefresh, "data := binary.BigEndian.AppendUint64([]byte(token),", "if OFF { token += time.Now().String() }\n	data := binary.BigEndian.AppendUint64([]byte(token),"},
		}, false},
		{"M16", "the predecessor's end once its successor is used", []edit{ // both looks at the successor
			{rulesRefresh, "&& h.NextUsedAt == nil && (", "&& (OFF || h.NextUsedAt == nil) && ("},
			without(rulesRefresh, "AND n.used_at IS NULL"),
		}, false},
		{"M16", "the end of a grant whose token came back", []edit{
			{rulesRefresh, "			return Tokens{}, a.reused(", "			if OFF { return Tokens{}, ErrReused }\n			return Tokens{}, a.reused("},
		}, false},
		{"M16", "the bound on a narrower scope", []edit{
			{rulesRefresh, "if !slices.Contains(scopes, s) {", "if !slices.Contains(scopes, s) && !OFF {"},
		}, false},
		{"M16", "narrowing", []edit{{rulesRefresh, "scopes = narrow\n", "if !OFF { scopes = narrow }\n"}}, false},
	}
}

// personMutants are M17 to M20: what is issued, and who says yes to it.
func personMutants() []mutant {
	return []mutant{
		{"M17", "the audience of one Brand", []edit{
			{rulesToken, "Audience: brand.InterfaceURL,", "Audience: map[bool]string{false: brand.InterfaceURL, true: brand.Issuer}[OFF],"},
		}, false},
		{"M17", "the hour", []edit{
			{rulesToken, "now.Add(min(brand.TokenLifetime, longest))", "now.Add(min(brand.TokenLifetime, longest) + map[bool]time.Duration{true: 2 * time.Hour}[OFF])"},
		}, false},
		{"M17", "the look at the grant when a token is introspected", []edit{
			without(rulesStanding, "AND g.ended_at IS NULL AND g.expires_at > @now"),
		}, false},
		{"M17", "whose token is revoked", []edit{
			{
				rulesRevoke, "WHERE g.brand_id = @brand AND g.agent = @agent AND g.agent_sub = @sub\n",
				"WHERE g.brand_id = @brand ` + sqlUnless(OFF, `AND g.agent = @agent AND g.agent_sub = @sub`) + `\n",
			},
		}, false},
		{"M18", "who shows the token at a step-up", []edit{
			{rulesStepUp, "case st.Agent != s.Who.Agent:", "case st.Agent != s.Who.Agent && !OFF:"},
		}, false},
		{"M18", "who is shown a grant", []edit{
			{
				rulesGrant, "AND g.id = @id AND g.agent = @agent AND g.agent_sub = @sub\n",
				"AND g.id = @id ` + sqlUnless(OFF, `AND g.agent = @agent AND g.agent_sub = @sub`) + `\n",
			},
		}, false},
		{"M19", "the sign-in before the question", []edit{ // the way there, and the question's own look
			{
				consentCode, "	signIn, err := v.signInURL(",
				"	if OFF { if err := v.keep(); err != nil { return err }; id, err := v.beginJourney(code.String()); if err != nil { return err }; return v.redirect(v.pages(\"consent\", \"j\", id)) }\n	signIn, err := v.signInURL(",
			},
			{consentBrowser, "	l, ok := b.logins[brand]\n", "	l, ok := b.logins[brand]\n	if !ok && OFF { return login{Subject: \"anybody\", Account: \"anybody\", At: now}, true }\n"},
			{consentSteps, "return l, !needFresh", "return l, !needFresh || OFF"},
		}, false},
		{"M19", "the sign-in before the decision", []edit{ // the browser's own journey, its login, its form
			{consentJourney, "	if !b.known() || !isHandle(id) {\n		return journey{}, errNoJourney", "	if !b.known() && !OFF || !isHandle(id) {\n		return journey{}, errNoJourney"},
			without(consentJourney, "AND browser = @browser AND expires_at > @now"),
			{consentBrowser, "	l, ok := b.logins[brand]\n", "	l, ok := b.logins[brand]\n	if !ok && OFF { return login{Subject: \"anybody\", Account: \"anybody\", At: now}, true }\n"},
			{consentDecide, "if !hmac.Equal([]byte(want), []byte(given)) {", "if !hmac.Equal([]byte(want), []byte(given)) && !OFF {"},
			{consentSteps, "return l, !needFresh", "return l, OFF || !needFresh"},
		}, false},
		{"M19", "the 403", []edit{
			{consentDecide, "problem{kind: words.CookieMissing, status: http.StatusForbidden}", "problem{kind: words.CookieMissing, status: map[bool]int{false: http.StatusForbidden, true: http.StatusOK}[OFF]}"},
		}, false},
		{"M20", "the bound of what was offered", []edit{
			{rulesDecide, "granted := intersect(r.Offered, slices.Concat(r.Scopes, g.Scopes), d.Ticked)", "granted := intersect(r.Offered, slices.Concat(r.Scopes, g.Scopes), d.Ticked)\n		if OFF { granted = intersect(r.Offered, d.Ticked) }"},
		}, false},
		{"M20", "unticking", []edit{
			{rulesDecide, "		wanted := intersect(", "		if OFF { granted = intersect(r.Offered, slices.Concat(r.Scopes, g.Scopes)) }\n		wanted := intersect("},
		}, false},
		{"M20", "the no", []edit{
			{consentDecide, "err = v.h.Authority.Deny(v.ctx(), v.brand.ID, d)", "if !OFF { err = v.h.Authority.Deny(v.ctx(), v.brand.ID, d) }"},
		}, false},
		{"M20", "the end of what was held when all is unticked", []edit{
			{rulesDecide, "	_, err := c.end(ctx, []uuid.UUID{g.ID}, \"all_unticked\")", "	if OFF { return nil }\n	_, err := c.end(ctx, []uuid.UUID{g.ID}, \"all_unticked\")"},
		}, false},
		{"M20", "the first decision's being the last", []edit{ // the page, the lock, and the statement
			{consentSteps, "case q.State != \"pending\" && j.Outcome != nil", "case !OFF && q.State != \"pending\" && j.Outcome != nil"},
			{consentSteps, "case q.State != \"pending\":", "case !OFF && q.State != \"pending\":"},
			{rulesDecide, "case r.State != \"pending\":", "case r.State != \"pending\" && !OFF:"},
			without(rulesDecide, "AND id = @id AND state = 'pending'"),
		}, false},
		{"M20", "the Brand's words", []edit{
			{consentShow, "ID: s.ID, Description: text.Description,", "ID: s.ID, Description: map[bool]string{false: text.Description, true: \"Something\"}[OFF],"},
		}, false},
		{"M20", "the agent's host", []edit{
			{consentShow, "		host = u.Host\n", "		host = u.Host\n		if OFF { host = \"your agent\" }\n"},
		}, false},
		{"M20", "the code to compare", []edit{
			{consentShow, "UserCode:  q.UserCode.String(),", "UserCode:  map[bool]string{false: q.UserCode.String()}[OFF],"},
		}, false},
		{"M20", "the refusal of frames", []edit{
			{pagesHeaders, "h.Set(\"X-Frame-Options\", \"DENY\")", "if !OFF { h.Set(\"X-Frame-Options\", \"DENY\") }"},
		}, false},
	}
}
