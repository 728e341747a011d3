// Package ui is what all our pages share: the shell around them, the few
// controls inside them, and the colours.
//
// What it promises: no inline script or style, so the strictest content
// security policy holds; words that came from somebody else are isolated in
// their own direction; a Brand's colour is corrected until it can be read; a
// page is written whole or not at all.
//
// It knows nothing of who asks for what. Start at Page and Shell; Render sends
// the result.
package ui
