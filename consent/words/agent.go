package words

import (
	"countersign.dev/web/alike"
	"countersign.dev/web/ui"
)

// An Agent is who asks, as far as we know.
type Agent struct {
	Name         string // may be empty
	NameVerified bool   // somebody registered the name here; otherwise it is the agent's own claim
	Host         string // of its issuer, whose keys signed the request: verified
	LogoURL      string // of its picture, on our own origin; its own claim, like the name. Empty: none
}

// called is what a sentence may call the agent: a name nobody checked would
// let an agent put "Harbor Hotel" into our own heading.
func (a Agent) called() string {
	if a.Name != "" && a.NameVerified {
		return a.Name
	}
	return a.host()
}

// host is the address as machines compare it.
// picture stands beside the verified host and never in its place. One whose name does
// not count has none.
func (a Agent) picture() string {
	if a.Name == "" || !a.NameVerified {
		return ""
	}
	return a.LogoURL
}

func (a Agent) host() string { return alike.Host(a.Host) }

// warnings are plain words about an agent nobody vouches for, and about a name
// or address that can be taken for another. An agent without any words of its
// own is never a blank (R12).
func (c Common) warnings(a Agent) []ui.Notice {
	var w []ui.Notice
	if a.Name == "" || !a.NameVerified {
		w = append(w, c.warning("ask.warning.unverified"))
	}
	if shown, differs := alike.Drawn(a.Host); differs {
		w = append(w, c.warning("ask.warning.letters", "host", a.host(), "shown", shown))
	}
	if alike.Names(a.Name, c.BrandName) {
		w = append(w, c.warning("ask.warning.name", "agent", a.Name, "host", a.host()))
	}
	return w
}
