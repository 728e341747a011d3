package tenants

// Line is one thing that was looked at somewhere else, and what was found: at a
// Brand's public URLs, or at its OpenID provider.
type Line struct {
	What  string `json:"what"`
	At    string `json:"at,omitempty"`    // the address, or the value that stands there
	State string `json:"state"`           // ok, warn or bad
	Say   string `json:"say,omitempty"`   // what was found, or what is wrong
	Mend  string `json:"mend,omitempty"`  // what to do
	Offer string `json:"offer,omitempty"` // what to set instead, if the admin agrees
	// Code names what Say and Mend say and About what they speak of, for a door that
	// says it in another language. Empty: there are no other words.
	Code  string    `json:"-"`
	About [2]string `json:"-"`
}
