package words

import "countersign.dev/consent/pages"

// HomeData is what the front door needs.
type HomeData struct {
	Common
	Brands []DemoBrand // of countersign dev; usually none
}

// DemoBrand is a Brand to try things out with.
type DemoBrand struct{ Name, CodeURL, CardURL string }

// Home words the front door of the service.
func Home(d HomeData) pages.HomeView {
	heading := d.Lang.Text("home.heading")
	v := pages.HomeView{
		Page: d.page(heading), Heading: heading,
		Lead: []string{d.Lang.Text("home.lead.what"), d.Lang.Text("home.lead.how")},
	}
	for _, b := range d.Brands {
		v.Sections = append(v.Sections, pages.Section{Heading: b.Name, Links: []pages.NotedLink{
			{Link: d.link("home.brands.code", b.CodeURL), Note: b.CodeURL},
			{Link: d.link("home.brands.card", b.CardURL), Note: b.CardURL},
		}})
	}
	if len(v.Sections) > 0 {
		v.Lead = append(v.Lead, d.Lang.Text("home.brands"))
	}
	return v
}
