package console

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
)

// The facts about domains that owners hear of.
const (
	eventDomainAdded   = "domain.added"
	eventDomainRemoved = "domain.removed"
)

// showDomains is GET domains.
func (v *visit) showDomains() error {
	return v.listDomains(http.StatusOK, "", nil, v.told("checked", "console.domains.checked"))
}

// listDomains is the page; typed is a domain that could not be added.
func (v *visit) listDomains(status int, typed string, problems map[string]string, notices []ui.Notice) error {
	frame, err := v.brandFrame("domains", "console.domains.heading")
	if err != nil {
		return err
	}
	all, err := tenants.Domains(v.ctx(), v.h.DB, v.brand.ID)
	if err != nil {
		return err
	}
	view := pages.DomainsView{
		Frame: frame, Heading: v.say("console.domains.heading"), Notices: notices,
		Lead:           []ui.Phrase{v.say("console.domains.lead"), v.say("console.domains.why")},
		ProblemHeading: v.text("code.problem"), Empty: v.text("console.domains.empty"),
		Otherwise: v.otherwise(v.calls("GET domains", `POST domains {"host":"example.com"}`, "POST domains/example.com/check", "DELETE domains/example.com"), v.ofBrand("brand domain list", "brand domain add --host example.com", "brand domain check --host example.com")),
	}
	for _, d := range all {
		view.Domains = append(view.Domains, v.domainCard(d))
	}
	if May(v.member.Role, ChangeDomains) {
		view.Add = pages.Invite{
			Heading: v.text("console.domains.add"), Lead: v.say("console.domains.add.lead"),
			Form: pages.Form{
				Action: pageOf(v.brand.ID, "domains"), Button: v.say("console.domains.add.button"),
				Fields: []ui.Field{v.field("host", typed, problems)},
			},
		}
	}
	return v.render(status, pages.Domains(view))
}

// domainStates are how a domain can stand.
var domainStates = map[string][2]string{
	"waiting": {"console.domains.waiting", "open"},
	"proven":  {"console.domains.proven", "good"},
	"failing": {"console.domains.failing", "care"},
	"lost":    {"console.domains.lost", "bad"},
}

// trouble words what was found at each place where a proof should be, and says in
// which language it is: what a network says is passed on as it came.
func (v *visit) trouble(found string) (text, lang string) {
	parts := strings.Split(found, "; ")
	for i, part := range parts {
		place, reason, ok := strings.Cut(part, ": ")
		if !ok {
			return found, english
		}
		parts[i] = place + ": " + v.lacking(reason)
	}
	return strings.Join(parts, "; "), v.lang.Tag
}

func (v *visit) lacking(reason string) string {
	status, answered := strings.CutPrefix(reason, "the host answers ")
	switch {
	case answered:
		return v.text("console.domains.why.status", "one", status)
	case reason == "the token is not there":
		return v.text("console.domains.why.token")
	case reason == "there is no such record":
		return v.text("console.domains.why.record")
	case reason == "the answer breaks off":
		return v.text("console.domains.why.broken")
	}
	return v.text("console.domains.why.unreachable") + " (" + v.cause(reason) + ")"
}

func (v *visit) domainCard(d tenants.Domain) pages.DomainCard {
	state := d.State(v.now)
	at := "domains/" + url.PathEscape(d.Host) + "/"
	c := pages.DomainCard{
		Host: d.Host, Verdict: pages.Verdict{Word: v.text(domainStates[state][0]), Kind: domainStates[state][1]},
		FoundAs: v.text("console.domains.found"),
		Publish: v.publications(d.Token, d),
	}
	c.Found, c.Lang = v.trouble(d.Trouble)
	switch {
	case d.FailingSince != nil:
		c.Since = v.say("console.domains.failing.since", "date", v.date(*d.FailingSince))
	case d.ProvenAt != nil && d.Method != nil && *d.Method == "dns":
		c.Since = v.say("console.domains.proven.dns", "date", v.date(*d.ProvenAt))
	case d.ProvenAt != nil:
		c.Since = v.say("console.domains.proven.file", "date", v.date(*d.ProvenAt))
	case d.CheckedAt != nil:
		c.Since = v.say("console.domains.waiting.checked", "date", v.date(*d.CheckedAt))
	default:
		c.Since = v.say("console.domains.waiting.new")
	}
	if May(v.member.Role, LookOutside) {
		c.Check = v.post("console.domains.check", at+"check")
	}
	if May(v.member.Role, ChangeDomains) {
		why := "console.domains.remove.open"
		if d.ProvenAt != nil {
			why = "console.domains.remove.proven"
		}
		c.Remove = pages.Drop{
			Label: v.text("console.domains.remove"), Text: v.say(why, "host", d.Host),
			Form: pages.Form{Action: pageOf(v.brand.ID, at+"remove"), Button: v.say("console.domains.remove.button", "host", d.Host)},
		}
	}
	return c
}

// publications are the two ways to publish the token, on any one of the domains.
func (v *visit) publications(token string, on ...tenants.Domain) []pages.Publication {
	file := pages.Publication{Heading: v.text("console.domains.file")}
	dns := pages.Publication{Heading: v.text("console.domains.dns")}
	at, name := "console.domains.file.at", "console.domains.dns.name"
	for _, d := range on {
		file.Pairs = append(file.Pairs, pages.Pair{Label: v.text(at), Value: d.FileURL(), Code: true})
		dns.Pairs = append(dns.Pairs, pages.Pair{Label: v.text(name), Value: d.Record(), Code: true})
		at, name = "console.domains.file.or", "console.domains.dns.or"
	}
	file.Pairs = append(file.Pairs, pages.Pair{Label: v.text("console.domains.file.line"), Value: token, Code: true})
	dns.Pairs = append(dns.Pairs, pages.Pair{Label: v.text("console.domains.dns.value"), Value: token, Code: true})
	return []pages.Publication{file, dns}
}

// addDomain is POST domains.
func (v *visit) addDomain() error {
	typed := v.form.Get("host")
	_, err := tenants.AddDomain(v.ctx(), v.h.DB, v.edits(eventDomainAdded), v.brand.ID, typed)
	if problems, ok := v.toMend(err); ok {
		return v.listDomains(http.StatusUnprocessableEntity, typed, problems, nil)
	}
	if err != nil {
		return err
	}
	return v.made("domains")
}

// checkDomain is POST domains/{host}/check: it looks now, whatever the hour.
func (v *visit) checkDomain() error {
	if err := v.limited(v.h.looks, string(v.brand.ID)); err != nil {
		return err
	}
	_, err := tenants.CheckDomain(v.ctx(), v.h.DB, v.edits(), v.h.Prover, v.brand.ID, v.r.PathValue("host"))
	if _, ok := v.toMend(err); ok || errors.Is(err, tenants.ErrNoDomain) {
		return problem{kind: notFound}
	}
	if err != nil {
		return err
	}
	return v.made("domains?checked")
}

// removeDomain is POST domains/{host}/remove.
func (v *visit) removeDomain() error {
	host := v.r.PathValue("host")
	err := tenants.RemoveDomain(v.ctx(), v.edits(eventDomainRemoved), v.brand.ID, host)
	problems, ok := v.toMend(err)
	switch {
	case problems["host"] != "", errors.Is(err, tenants.ErrNoDomain):
		return problem{kind: notFound}
	case errors.Is(err, tenants.ErrLastDomain):
		return v.listDomains(http.StatusConflict, "", nil, []ui.Notice{v.warning("console.domains.last", "host", host)})
	case ok:
		return v.listDomains(http.StatusConflict, "", nil, warnings(problems))
	case err != nil:
		return err
	}
	return v.made("domains")
}
