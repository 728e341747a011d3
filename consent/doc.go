// Package consent is the person's journey through the browser: bring a code,
// log in at the Brand, decide, and later see and end what was allowed.
//
//	code.go      the link is opened, or the code typed
//	login.go     off to the Brand's own sign-in
//	callback.go  back from it
//	arrive.go    back from the Brand's own page, which has signed who it is
//	show.go      the question, in full or in brief, or how it was answered
//	shown.go     what its page said, for the answer and the record
//	decide.go    the answer
//	alone.go     the answer of who came from the Brand's own page, without a cookie
//	grants.go    My agents: what may act now, and what ended lately
//	agent.go     all about one of them
//	end.go       one permission, one agent or everything ends
//
// Where somebody stands is stored, per browser and request, in a journey. One
// function, next in steps.go, reads what is stored and says which step comes
// now; every door asks it and no step calls another. So tabs, the back button,
// reloads and double clicks all end at the step that is really next.
//
// Nothing of a request is shown and nothing can be decided before the person
// has logged in at the Brand (M19).
package consent
