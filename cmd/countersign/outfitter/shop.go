package outfitter

import "strings"

// skill is something that the shop's agent can do, and what it needs.
type skill struct{ word, scope, tool, says, reason string }

// skills are found by a word of the message; the agent uses no language model.
var skills = []skill{
	{"return", "returns:start", "returns.start", "Your boots are picked up tomorrow between 9 and 12. Call it off until then if you like.", "to start your return"},
	{"buy", "orders:place", "orders.place", "One head torch is ordered for 39 euros and paid with your saved card.", "to order and pay for you"},
	{"order", "orders:read", "orders.list", "You have one order: walking boots, size 42, delivered on Friday.", "to look at your orders"},
	{"parcel", "orders:read", "orders.list", "Your parcel is at the depot in your town and comes tomorrow.", "to look for your parcel"},
}

// greets is what it does where it understood nothing, and needs nothing for.
var greets = skill{says: "Welcome to Fern & Fell. Ask me where your parcel is, to return something, or to buy something."}

// understand is what the message asks for; false: nothing that needs anything.
func understand(text string) (skill, bool) {
	text = strings.ToLower(text)
	for _, s := range skills {
		if strings.Contains(text, s.word) {
			return s, true
		}
	}
	return greets, false
}
