// Package console is the dashboard on which Brands sign up and run themselves.
//
//	signup.go    organisation, Brand, e-mail; the answer is always the same
//	link.go      what a mailed link leads to: a passkey, or one more membership
//	secure.go    a second passkey or printed codes
//	create.go    the Brand, and its signing key
//	login.go     in and out again, and the fresh touch
//	home.go      the person's Brands, and the first screen of one
//	grants.go    what agents may do, and for whom; story.go: the life of one;
//	             done.go: what was done under it
//	ending.go    what ends, and how it went; suspend.go: what stands still
//	trail.go     everything that happened, and how to prove it
//	usage.go     how much, day by day
//	permissions.go, permission.go   what agents may be allowed, in the Brand's words
//	settings.go, look.go            how the pages look, and how long things last
//	agents.go    which agents may ask; try.go: a delegation, tried out
//	domains.go   whose the Brand is; interface.go: where agents find it
//	connection.go, ownlogin.go, testlogin.go   how customers sign in, tried before it
//	             is live
//	supportagent.go   where a hosted Brand's own agent is called
//	connect.go   where everything stands, and what a proxy needs
//	apikeys.go, webhooks.go, webhook.go, signingkeys.go   what machines hold
//	members.go   who works on the Brand; account.go: one's own ways in
//	changes.go   what a program asked for and an owner decides
//	pause.go     the kill switch
//	recover.go   the ways back in; wait.go: the one without codes and other owners
//	leave.go     taking everything along, and the Brand's end
//	erase.go     one person's data goes
//
// Every page is a route in routes.go, and every route names an action of the
// rights table in rights.go: who may, whether it needs a fresh touch of a passkey,
// and whether all owners hear of it. A page without a right cannot be registered.
// To add a page, write its line in both, its place in menu.go, and its file beside
// these.
//
// What a program asks for over the API, a command or a file waits on the page of
// changes wherever the same act needs a fresh touch here; every owner gets a letter
// of it. Acts that only stop something are never dearer there than here: to pause, to
// end grants, to revoke a key. Revoking a signing key, the emergency, is told to all
// owners whoever does it.
//
// There are no passwords. A mailed link alone opens nobody's account: it makes a
// new one, or it goes with a recovery code, an owner's word, or a wait. The wait is
// for an owner with nobody to vouch: all members are told, for 72 hours any of them
// can say no, and then a line made for this wait must stand on a proven domain of
// the Brand's, as a file or in DNS, when the new passkey is asked for and when it
// is made. Where the Brand has no such domain, there is no wait.
package console
