package console

import (
	"context"
	"errors"
	"net/http"
	"time"

	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
)

// showNewBrand is GET /console/new, filled with what the sign-up told.
func (v *visit) showNewBrand() error {
	var d tenants.LinkData
	if v.session.SignUp != nil {
		d = *v.session.SignUp
	}
	n := tenants.NewBrand{Name: d.BrandName, Organisation: d.Organisation, ID: tenants.ProposeID(d.BrandName)}
	return v.askNewBrand(http.StatusOK, n, nil)
}

func (v *visit) askNewBrand(status int, n tenants.NewBrand, problems map[string]string) error {
	field := func(name, label, value string) ui.Field {
		return ui.Field{Name: name, Label: v.text(label), Hint: v.text(label + ".hint"), Value: value, Problem: problems[name]}
	}
	id := field("id", "console.field.id", string(n.ID))
	id.Plain, id.Longest = true, 40
	return v.render(status, pages.Ask(pages.AskView{
		Frame: v.frame("console.new.heading"), Heading: v.say("console.new.heading"),
		Lead: []ui.Phrase{v.say("console.new.lead")}, ProblemHeading: v.text("code.problem"),
		Form: pages.Form{
			Action: "/console/new", Button: v.say("console.new.button"),
			Fields: []ui.Field{
				field("organisation", "console.field.organisation", n.Organisation),
				field("brand", "console.field.brand", n.Name), id,
			},
		},
	}))
}

// createBrand is POST /console/new.
func (v *visit) createBrand() error {
	n := tenants.NewBrand{
		ID: tenants.BrandID(v.line("id")), Name: v.line("brand"), Organisation: v.line("organisation"),
		Provider: v.h.Provider, PublicURL: v.h.PublicURL,
	}
	problems := make(map[string]string)
	for name, value := range map[string]string{"organisation": n.Organisation, "brand": n.Name} {
		if value == "" {
			problems[name] = v.text("console.problem.empty." + name)
		}
	}
	if len(problems) > 0 {
		return v.askNewBrand(http.StatusUnprocessableEntity, n, problems)
	}
	err := v.makeBrand(n)
	switch {
	case errors.Is(err, tenants.ErrBrandID):
		problems["id"] = v.text("console.problem.id")
	case errors.Is(err, tenants.ErrBrandTaken):
		problems["id"] = v.text("console.problem.taken", "id", n.ID)
	case err != nil:
		return err
	}
	if len(problems) > 0 {
		return v.askNewBrand(http.StatusUnprocessableEntity, n, problems)
	}
	v.session.SignUp = nil
	if err := v.save(); err != nil {
		return err
	}
	return v.redirect(pageOf(n.ID, ""))
}

// makeBrand makes the Brand, which is this person's. A signer that does not answer
// now costs nothing but time: the Brand waits for its key, and upkeep tries again.
func (v *visit) makeBrand(n tenants.NewBrand) error {
	if err := v.limited(v.h.invites, "brand "+v.person.ID.String()); err != nil {
		return err
	}
	if err := tenants.Create(v.ctx(), v.h.DB, n, v.person.ID, v.h.record, v.now); err != nil {
		return err
	}
	const patience = 4 * time.Second
	ctx, cancel := context.WithTimeout(v.ctx(), patience)
	defer cancel()
	if err := v.h.launch(ctx, n.ID); err != nil {
		v.h.Log.WarnContext(v.ctx(), "a new brand waits for its key", "brand", string(n.ID), "error", err)
	}
	return nil
}
