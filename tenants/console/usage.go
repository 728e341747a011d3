package console

import (
	"net/http"
	"strconv"

	"countersign.dev/authority"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
)

// figure is one of the numbers that are shown over time.
type figure struct {
	id, heading, unit string
	of                func(authority.Day) int
	care              bool
}

var figures = []figure{
	{"asked", "console.usage.asked", "console.usage.asked.unit", func(d authority.Day) int { return d.Asked }, false},
	{"approved", "console.usage.approved", "console.usage.approved.unit", func(d authority.Day) int { return d.Approved }, false},
	{"denied", "console.usage.denied", "console.usage.denied.unit", func(d authority.Day) int { return d.Denied }, false},
	{"stepups", "console.usage.stepups", "console.usage.stepups.unit", func(d authority.Day) int { return d.StepUps }, false},
	{"revoked", "console.usage.revoked", "console.usage.revoked.unit", func(d authority.Day) int { return d.Revoked }, false},
	{"reused", "console.usage.reused", "console.usage.reused.unit", func(d authority.Day) int { return d.Reused }, true},
}

// usageRanges are how many days can be looked at; the first is the usual one.
var usageRanges = []int{30, 90}

// showUsage is GET usage.
func (v *visit) showUsage() error {
	asked, err := v.asked("days")
	if err != nil {
		return err
	}
	days := usageRanges[0]
	if asked == strconv.Itoa(usageRanges[1]) {
		days = usageRanges[1]
	}
	frame, err := v.brandFrame("usage", "console.usage.heading")
	if err != nil {
		return err
	}
	all, err := v.h.Authority.Usage(v.ctx(), v.brand.ID, days)
	if err != nil {
		return err
	}
	view := pages.UsageView{
		Frame: frame, Heading: v.say("console.usage.heading"), Lead: v.say("console.usage.lead"),
		RangeName: v.text("console.usage.range"),
		Otherwise: v.otherwise(v.calls("GET usage?days="+strconv.Itoa(days)), v.ofBrand("usage show --days "+strconv.Itoa(days))),
	}
	for _, n := range usageRanges {
		l := v.link("console.usage.days", v.inQuery("usage", "days", strconv.Itoa(n)), "count", n)
		l.Current = n == days
		view.Ranges = append(view.Ranges, l)
	}
	for _, f := range figures {
		view.Plots = append(view.Plots, v.plot(f, all))
	}
	return v.render(http.StatusOK, pages.Usage(view))
}

// The sheet on which a plot is drawn.
const (
	plotLeft, plotRight = 38, 320
	plotTop, plotFoot   = 8, 116
)

// plot draws the figure. Its words say what the picture shows: how much in all,
// and when the most.
func (v *visit) plot(f figure, days []authority.Day) pages.Plot {
	total, most, when := 0, 0, 0
	for i, d := range days {
		n := f.of(d)
		total += n
		if n > most {
			most, when = n, i
		}
	}
	p := pages.Plot{
		ID: "plot-" + f.id, Heading: v.text(f.heading), Total: v.number(total), IsCare: f.care,
		Unit:    v.say(f.unit, "count", len(days)),
		Title:   v.text("console.usage.plot", "what", v.text(f.heading), "count", len(days)),
		Desc:    v.text("console.usage.plot.none"),
		Figures: v.text("console.usage.figures"),
		Head:    [2]string{v.text("console.usage.day"), v.text(f.heading)},
		From:    v.lang.Date(days[0].Date), To: v.lang.Date(days[len(days)-1].Date),
	}
	if total > 0 {
		p.Desc = v.text("console.usage.plot.desc", "total", v.number(total), "most", v.number(most), "date", v.lang.Date(days[when].Date))
	}
	top := ceiling(most)
	y := func(n int) float64 { return plotFoot - float64(n)*(plotFoot-plotTop)/float64(top) }
	levels := []int{0, top}
	if top%2 == 0 {
		levels = []int{0, top / 2, top}
	}
	for _, n := range levels {
		p.Lines = append(p.Lines, pages.PlotLine{Y: place(y(n)), LabelY: place(y(n) + 4), Label: v.number(n)})
	}
	pitch := float64(plotRight-plotLeft) / float64(len(days))
	width := pitch * 0.72
	for i, d := range days {
		n := f.of(d)
		if n > 0 {
			p.Bars = append(p.Bars, pages.PlotBar{
				X: place(plotLeft + pitch*float64(i) + (pitch-width)/2), Y: place(y(n)), Width: place(width), Height: place(plotFoot - y(n)),
			})
		}
	}
	for i := len(days) - 1; i >= 0; i-- {
		p.Rows = append(p.Rows, [2]string{v.lang.Date(days[i].Date), v.number(f.of(days[i]))})
	}
	return p
}

// ceiling is the least round number that is not below n.
func ceiling(n int) int {
	for unit := 1; ; unit *= 10 {
		for _, steps := range []int{1, 2, 4, 6, 8} {
			if round := steps * unit; round >= n {
				return round
			}
		}
	}
}

func place(f float64) string { return strconv.FormatFloat(f, 'f', 2, 64) }

// number is how people write a number that may be large.
func (v *visit) number(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// homePlot is the small plot of the first screen.
func (v *visit) homePlot() (pages.Plot, ui.Link, error) {
	days, err := v.h.Authority.Usage(v.ctx(), v.brand.ID, usageRanges[0])
	if err != nil {
		return pages.Plot{}, ui.Link{}, err
	}
	return v.plot(figures[1], days), v.link("console.usage.more", pageOf(v.brand.ID, "usage")), nil
}
