// Package witness is what somebody else signs of a Brand's log: that the checkpoint
// it was shown at a time of its own clock continues the one it was shown before.
// One honest witness is enough for a log that is shown to two people in two forms,
// or was written anew, to be found out; and its clock is not the authority's.
//
// The form is that of C2SP: a checkpoint as a signed note (c2sp.org/tlog-checkpoint)
// under a timestamped Ed25519 cosignature (c2sp.org/tlog-cosignature, v1). The log
// itself signs a JWS, which stays the one thing that makes a checkpoint the
// Brand's; the note is made of it, by whoever looks, and carries witnesses alone.
//
// What is left out: the protocol by which a log hands its checkpoints to witnesses
// (tlog-witness). A witness here comes by itself, and nothing of it needs to be
// known to the authority. And time stamps of RFC 3161: they say when, and not that
// nothing was written anew.
//
// Start at [Signer.Sign] for the witness and [Key.Open] for whoever trusts it.
package witness
