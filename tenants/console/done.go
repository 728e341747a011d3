package console

import (
	"strconv"
	"strings"
	"time"

	"countersign.dev/tenants/console/pages"
	"github.com/google/uuid"
)

// donePage is how many receipts a grant's page shows at a time.
const donePage = 25

// done is what was done under the grant, before the time that the address names.
func (v *visit) done(grant uuid.UUID) (pages.Life, error) {
	out := pages.Life{Heading: v.text("console.story.done")}
	before, err := time.Parse(time.RFC3339Nano, v.r.URL.Query().Get("before"))
	if err != nil {
		before = time.Time{} // an address that was changed shows the latest
	}
	found, err := v.h.Authority.Done(v.ctx(), v.brand.ID, grant, before, donePage+1)
	if err != nil {
		return out, err
	}
	if len(found) > donePage {
		found = found[:donePage]
		out.More = v.link("console.story.done.older",
			v.inQuery("grants/"+grant.String(), "before", found[donePage-1].At.Format(time.RFC3339Nano))+"#done")
	}
	for _, d := range found {
		var tools []string
		for _, a := range d.Actions {
			tools = append(tools, a.Tool)
		}
		m := pages.Moment{When: v.date(d.At), What: strings.Join(tools, " · ")}
		if len(tools) == 0 {
			m.What = v.text("console.story.done.answer")
		}
		if len(d.Scopes) > 0 {
			m.Lines = append(m.Lines, foreign(v.permissions(d.Scopes)))
		}
		if d.Late {
			m.Lines = append(m.Lines, v.say("console.story.done.late"))
		}
		m.Who = v.say("console.story.done.seq", "seq", strconv.FormatInt(d.Seq, 10))
		out.Moments = append(out.Moments, m)
	}
	return out, nil
}
