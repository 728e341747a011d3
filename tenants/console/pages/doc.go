// Package pages is what the people who run a Brand see: one view struct and one
// template per page of the dashboard.
//
// A view is finished: worded, translated, in order. A template asks nothing,
// decides nothing and calls nobody. Every page stands in a Frame, which holds the
// ways to the others. Whatever needs a passkey is a form with a PasskeyAsk; all
// else works without script.
//
// Package console builds the views.
package pages
