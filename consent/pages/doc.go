// Package pages is what the person sees: one view struct and one template per
// page of the journey.
//
// A view is finished: worded, translated, in order. A template asks nothing,
// decides nothing and calls nobody; it only sets the words. Sentences that hold
// other people's words are ui.Phrase, so that these stay apart from ours.
//
// What every page promises: it works without script, says who asks and who
// answers for the page, and makes No as easy as Yes.
//
// Package words builds the views. In the order of the journey: Code, Start, Ask
// or Brief, Done; Trouble ends it at any point. Later, whenever the person likes:
// Agents, Agent, End.
package pages
