package console

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
)

// approveChange is POST changes/{change}/approve. What it makes is shown here,
// once, to this owner.
func (v *visit) approveChange() error {
	c, err := v.change()
	if err != nil {
		return err
	}
	if mailed := letterOf[c.Kind]; mailed != "" && v.h.Mail == nil {
		return problem{kind: noMail}
	}
	said, err := v.asks().Apply(v.ctx(), v.edits(eventApplied), v.brand.ID, c.ID, v.person.ID.String())
	if notice := v.undecided(err); notice != nil {
		return v.listChanges(http.StatusConflict, notice)
	}
	if err != nil {
		return err
	}
	if letterOf[c.Kind] != "" {
		if err := v.mailLink(c, said); err != nil {
			return err
		}
		said = ""
	}
	if c.Kind == tenants.ChangeClose {
		return v.made("leave")
	}
	if said == "" {
		return v.made("changes?applied")
	}
	v.h.Brands.Forget(v.brand.ID)
	v.h.noticesDue(v.brand.ID)
	frame, err := v.brandFrame("changes", secretsOf[c.Kind])
	if err != nil {
		return err
	}
	lead := []ui.Phrase{v.say("console.secret.lead")}
	if c.Kind == tenants.ChangeKeyNew || c.Kind == tenants.ChangeKeyRotate {
		lead = append(lead, v.say("console.secret.keep"))
	}
	return v.render(http.StatusOK, pages.Secret(pages.SecretView{
		Frame: frame, Heading: v.say(secretsOf[c.Kind]),
		Lead:   lead,
		Secret: pages.Pair{Label: v.text(secretsOf[c.Kind]), Value: said, Code: true},
		GoOn:   v.link("console.secret.on", pageOf(v.brand.ID, "changes")),
	}))
}

// asks apply in the name of this owner what is done in somebody's name.
func (v *visit) asks() *tenants.Asks {
	keys := v.h.Keys.Noted(v.h.Authority.NoteKeys(v.by()))
	own := signing.Appliers(keys, func(context.Context, tenants.BrandID) (signing.Policy, error) {
		return v.h.Policy(v.brand), nil
	})
	own[tenants.ChangeBrandNew] = tenants.BrandApplier(func(ctx context.Context, d tenants.BrandDraft) error {
		return v.makeBrand(tenants.NewBrand{ID: d.ID, Name: d.Name, Organisation: d.Organisation, Provider: v.h.Provider, PublicURL: v.h.PublicURL})
	})
	own[tenants.ChangeClose] = func(ctx context.Context, _ tenants.Editor, brand tenants.BrandID, _ []byte) (string, error) {
		// What has begun is not broken off because a browser went away.
		_, err := v.h.Authority.Close(context.WithoutCancel(ctx), brand, v.by())
		return "", err
	}
	return v.h.Asks.For(v.act).With(own)
}

// letterOf are the kinds whose approval makes a link that goes by mail, and the
// letters that it goes in.
var letterOf = map[string]string{tenants.ChangeMemberInvite: "invitation", tenants.ChangeMemberVouch: "restore"}

// mailLink sends the link that the approval made, to the address that the owner
// read.
func (v *visit) mailLink(c tenants.PendingChange, token string) error {
	type named struct{ Email string }
	var diff struct {
		Before, After named
	}
	if err := json.Unmarshal(c.Diff, &diff); err != nil {
		return fmt.Errorf("read whom a link of %s is for: %w", v.brand.ID, err)
	}
	to := cmp.Or(diff.After.Email, diff.Before.Email)
	says := []any{"brand", v.brand.Name, "person", v.person.Name, "link", v.h.LinkURL(token)}
	v.letter(to, letterOf[c.Kind], says...)
	return nil
}
