package console

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"countersign.dev/authority"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
	"github.com/google/uuid"
)

const (
	trailPage = 50
	// exportPart bounds one export, so that it is done within a request's time.
	exportPart  = 100_000
	exportParts = 10 // that are offered as links; what is longer is the shell's
)

// trailFilter is what of the trail is asked for, as it stands in the address.
type trailFilter struct {
	event, grant, actor, from, until string
	troubled                         map[string]string // field: what is wrong with it
}

func (f trailFilter) pairs(more ...string) []string {
	return append([]string{"event", f.event, "grant", f.grant, "actor", f.actor, "from", f.from, "until", f.until}, more...)
}

func (f trailFilter) empty() bool {
	return f.event == "" && f.grant == "" && f.actor == "" && f.from == "" && f.until == ""
}

// askedTrail reads the filter. A day that is none is told beside its field, and
// then nothing is shown: it would be the wrong thing.
func (v *visit) askedTrail() (trailFilter, authority.Events, error) {
	f := trailFilter{troubled: make(map[string]string)}
	err := v.askedAll(map[string]*string{
		"event": &f.event, "grant": &f.grant, "actor": &f.actor, "from": &f.from, "until": &f.until,
	})
	if err != nil {
		return f, authority.Events{}, err
	}
	which := authority.Events{Event: f.event, Actor: f.actor}
	if f.grant != "" {
		if which.Grant, err = uuid.Parse(f.grant); err != nil || which.Grant == uuid.Nil {
			f.troubled["grant"] = v.text("console.trail.problem.grant")
		}
	}
	for name, t := range map[string]struct {
		text string
		to   *time.Time
	}{"from": {f.from, &which.From}, "until": {f.until, &which.Until}} {
		if t.text == "" {
			continue
		}
		day, err := time.Parse(time.DateOnly, t.text)
		if err != nil {
			f.troubled[name] = v.text("console.trail.problem.day")
			continue
		}
		if name == "until" {
			day = day.AddDate(0, 0, 1) // that day too
		}
		*t.to = day
	}
	return f, which, nil
}

// showTrail is GET trail: what happened, the newest first.
func (v *visit) showTrail() error {
	f, which, err := v.askedTrail()
	if err != nil {
		return err
	}
	cursor, err := v.asked("before")
	if err != nil {
		return err
	}
	var before int64
	if cursor != "" {
		if before, err = strconv.ParseInt(cursor, 10, 64); err != nil || before < 1 {
			return problem{kind: notFound}
		}
	}
	frame, err := v.brandFrame("trail", "console.trail.heading")
	if err != nil {
		return err
	}
	view := pages.TrailView{
		Frame: frame, Heading: v.say("console.trail.heading"), Lead: v.say("console.trail.lead"),
		Problem: v.text("code.problem"), Filter: v.trailFields(f),
		Head: [5]string{
			v.text("console.trail.seq"), v.text("console.changes.when"), v.text("console.changes.what"),
			v.text("console.changes.who"), v.text("console.trail.grant"),
		},
		Empty:     pages.Empty{Text: v.say("console.changes.empty")},
		Paging:    pages.Paging{Label: v.text("console.grants.pages")},
		Otherwise: v.trailOtherwise(f),
	}
	if !f.empty() {
		view.Empty = pages.Empty{Text: v.say("console.trail.none"), Clear: v.link("console.grants.clear", pageOf(v.brand.ID, "trail"))}
	}
	var found []authority.Entry
	if len(f.troubled) == 0 {
		// One more tells whether there is another page.
		if found, err = v.h.Authority.Latest(v.ctx(), v.brand.ID, which, before, trailPage+1); err != nil {
			return err
		}
	}
	if len(found) > trailPage {
		found = found[:trailPage]
		view.Paging.Older = v.link("console.grants.older", v.inQuery("trail", f.pairs("before", strconv.FormatInt(found[trailPage-1].Seq, 10))...))
	}
	if before > 0 {
		view.Paging.First = v.link("console.grants.newest", v.inQuery("trail", f.pairs()...))
	}
	names, err := v.names()
	if err != nil {
		return err
	}
	for _, e := range found {
		row, err := v.trailRow(e, names)
		if err != nil {
			return err
		}
		view.Rows = append(view.Rows, row)
	}
	if view.Chain, err = v.chain(f); err != nil {
		return err
	}
	status := http.StatusOK
	if len(f.troubled) > 0 {
		status = http.StatusUnprocessableEntity
	}
	return v.render(status, pages.Trail(view))
}

func (v *visit) trailFields(f trailFilter) pages.Filter {
	const words = "console.event."
	events := []ui.Option{{Label: v.text("console.trail.anyevent"), Chosen: f.event == ""}}
	known := f.event == ""
	for _, key := range v.h.Catalogue.Keys() {
		if name, ok := strings.CutPrefix(key, words); ok {
			events = append(events, ui.Option{Value: name, Label: what(v.lang, name), Chosen: name == f.event})
			known = known || name == f.event
		}
	}
	slices.SortStableFunc(events[1:], func(a, b ui.Option) int { return strings.Compare(a.Label, b.Label) })
	if !known {
		events = append(events, ui.Option{Value: f.event, Label: f.event, Chosen: true})
	}
	out := pages.Filter{
		Label: v.text("console.trail.search"), Action: pageOf(v.brand.ID, "trail"), Button: v.text("console.grants.find"),
		Fields: []ui.Field{
			{Name: "event", Label: v.text("console.changes.what"), Options: events},
			{Name: "actor", Label: v.text("console.trail.actor"), Value: f.actor, Plain: true, Longest: 500},
			{Name: "grant", Label: v.text("console.trail.grantid"), Value: f.grant, Plain: true, Problem: f.troubled["grant"]},
			{Name: "from", Label: v.text("console.trail.from"), Value: f.from, Plain: true, Longest: 10, Problem: f.troubled["from"]},
			{Name: "until", Label: v.text("console.trail.to"), Value: f.until, Plain: true, Longest: 10, Problem: f.troubled["until"]},
		},
	}
	if !f.empty() {
		out.Clear = v.link("console.grants.clear", pageOf(v.brand.ID, "trail"))
	}
	return out
}

func (v *visit) trailRow(e authority.Entry, names map[string]string) (pages.TrailRow, error) {
	at, err := time.Parse(time.RFC3339Nano, e.At)
	if err != nil {
		return pages.TrailRow{}, fmt.Errorf("event %d: %w", e.Seq, err)
	}
	row := pages.TrailRow{
		Seq: strconv.FormatInt(e.Seq, 10), When: v.date(at), What: what(v.lang, e.Event), Lines: v.inWords(e),
		Who:     ui.Link{Label: foreign(v.who(e.Actor, e.ActorID, e.Channel, names))},
		Summary: v.text("console.trail.details"),
		Details: [][2]string{{"at", e.At}, {"event", e.Event}, {"actor", e.Actor}},
	}
	if e.ActorID != "" {
		row.Who.Href = v.inQuery("trail", "actor", e.ActorID)
	}
	if e.GrantID != nil {
		row.Grant = ui.Link{Label: v.say("console.trail.togrant"), Href: pageOf(v.brand.ID, "grants/"+*e.GrantID)}
	}
	pick := func(name, value string) {
		if value != "" {
			row.Details = append(row.Details, [2]string{name, value})
		}
	}
	pick("actor_id", e.ActorID)
	pick("channel", e.Channel)
	if e.RequestID != nil {
		pick("request_id", *e.RequestID)
	}
	if e.GrantID != nil {
		pick("grant_id", *e.GrantID)
	}
	pick("trace", e.Trace)
	if e.Detail != "{}" {
		pick("detail", e.Detail)
	}
	pick("hash", e.Hash.String())
	if e.Salt == nil {
		row.Lines = append(row.Lines, v.say("console.trail.erased"))
	}
	return row, nil
}

// chain is the head to note down, and the ways to take the trail along.
func (v *visit) chain(f trailFilter) (pages.Chain, error) {
	head, err := v.h.Authority.TrailHead(v.ctx(), v.brand.ID)
	if err != nil {
		return pages.Chain{}, err
	}
	c := pages.Chain{Heading: v.text("console.trail.chain"), Text: []ui.Phrase{v.say("console.trail.chain.text")}}
	if head.Seq == 0 {
		return c, nil
	}
	c.Text = append(c.Text, v.say("console.trail.chain.head"))
	c.Head = head.String()
	c.Commands = []string{
		"countersign audit verify --brand " + string(v.brand.ID) + " --expect " + c.Head,
		"countersign audit verify --file " + exportName(string(v.brand.ID)),
	}
	if !May(v.member.Role, ExportTrail) || len(f.troubled) > 0 {
		return c, nil
	}
	if !f.empty() {
		c.Note = v.text("console.trail.export.filtered")
		c.Exports = []ui.Link{v.link("console.trail.export.these", v.inQuery("trail/export", f.pairs()...))}
		return c, nil
	}
	c.Note = v.text("console.trail.export.note")
	for since := int64(0); since < head.Seq && len(c.Exports) < exportParts; since += exportPart {
		from, to := strconv.FormatInt(since+1, 10), strconv.FormatInt(min(since+exportPart, head.Seq), 10)
		link := v.link("console.trail.export", pageOf(v.brand.ID, "trail/export")+"?"+url.Values{"since": {strconv.FormatInt(since, 10)}}.Encode(), "from", from, "to", to)
		c.Exports = append(c.Exports, link)
	}
	return c, nil
}

func exportName(brand string) string { return "trail-" + brand + ".ndjson" }

// exportTrail is GET trail/export: lines that can be verified without us. Once the
// first is out, trouble can only be told by breaking off: half an answer must not
// look like a whole one.
func (v *visit) exportTrail() error {
	f, which, err := v.askedTrail()
	if err != nil {
		return err
	}
	since, err := v.asked("since")
	if err != nil {
		return err
	}
	if since != "" {
		which.Since, err = strconv.ParseInt(since, 10, 64)
	}
	if err != nil || which.Since < 0 || len(f.troubled) > 0 {
		return problem{kind: notFound}
	}
	begun := false
	begin := func() {
		v.w.Header().Set("Content-Type", "application/x-ndjson")
		v.w.Header().Set("Content-Disposition", `attachment; filename="`+exportName(string(v.brand.ID))+`"`)
		begun = true
	}
	err = v.h.Authority.Trail(v.ctx(), v.brand.ID, which, exportPart, func(e authority.Entry) error {
		line, err := e.Line()
		if err != nil {
			return err
		}
		if !begun {
			begin()
		}
		_, err = v.w.Write(line)
		return err
	})
	switch {
	case err != nil && begun:
		v.h.Log.ErrorContext(v.ctx(), "an export was broken off", "brand", string(v.brand.ID), "error", err)
		panic(http.ErrAbortHandler)
	case err == nil && !begun:
		begin()
		v.w.WriteHeader(http.StatusOK)
	}
	return err
}

func (v *visit) trailOtherwise(f trailFilter) pages.Otherwise {
	q := url.Values{}
	list := "audit list"
	pairs := f.pairs()
	for i := 0; i < len(pairs); i += 2 {
		if name, value := pairs[i], pairs[i+1]; value != "" {
			q.Set(name, value)
			list += " --" + name + " " + quoted(value)
		}
	}
	call := "audit"
	if len(q) > 0 {
		call += "?" + q.Encode()
	}
	export := strings.Replace(v.call(http.MethodGet, "audit", ""), "curl ", "curl -H 'Accept: application/x-ndjson' ", 1)
	return v.otherwise([]string{v.call(http.MethodGet, call, ""), export}, []string{
		v.command(list),
		"audit export --brand " + string(v.brand.ID) + " > " + exportName(string(v.brand.ID)),
	})
}
