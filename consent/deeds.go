package consent

import (
	"time"

	"countersign.dev/authority"
	"countersign.dev/consent/words"
)

// donePage is how much of what an agent did is shown at a time.
const donePage = 20

// deeds is what was done under the grant, before the time that the address names.
// Permissions that are not offered any more are told in the words in which they
// were allowed.
func (v *visit) deeds(g authority.Grant, said []authority.Consent, before string) (words.Deeds, error) {
	until, err := time.Parse(time.RFC3339Nano, before)
	if err != nil {
		until = time.Time{} // an address that was changed shows the latest
	}
	found, err := v.h.Authority.Done(v.ctx(), v.brand.ID, g.ID, until, donePage+1)
	if err != nil {
		return words.Deeds{}, err
	}
	d := words.Deeds{Open: !until.IsZero()}
	if len(found) > donePage {
		found = found[:donePage]
		d.OlderURL = v.pages("agents", "agent", g.ID.String(), "before", found[donePage-1].At.Format(time.RFC3339Nano))
	}
	once := make(map[string]string)
	for _, c := range said {
		for _, s := range c.Allowed {
			once[s.ID] = s.Description
		}
	}
	for _, f := range found {
		one := words.Deed{At: f.At, Late: f.Late}
		for _, id := range f.Scopes {
			if s, ok := v.brand.Scope(id); ok {
				one.With = append(one.With, s.Text(v.lang.Tag).Description)
			} else if once[id] != "" {
				one.With = append(one.With, once[id])
			}
		}
		for _, a := range f.Actions {
			one.Tools = append(one.Tools, a.Tool)
		}
		d.All = append(d.All, one)
	}
	return d, nil
}
