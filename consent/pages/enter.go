package pages

import "countersign.dev/web/ui"

// EnterView stands between the Brand's own sign-in and My agents.
type EnterView struct {
	Page    ui.Page
	Account Account
	Heading ui.Phrase
	Lead    ui.Phrase

	Action string
	Hidden []ui.Hidden
	GoOn   ui.Button
}
