// Package check is "countersign verify": a Brand's engineer, an auditor or a
// court looks at one delegation token and learns, rule by rule, whether it holds.
//
// The verdict comes from package verify alone. This package gathers what the
// verdict needs – from the Brand's card, or from saved files when the look must
// be possible without a network, or years later – and prints it. It never prints
// the token.
//
// Start at [Run].
package check
