// Package pa is the personal agent's side of Countersign: a complete client for
// PACT delegation, behind "countersign pa".
//
//	login    ask a person for a delegation, and wait for the answer
//	token    print the access token, refreshed when it is about to end
//	refresh  refresh now
//	sign     print one pa-jwt
//	revoke   end a delegation
//
// It is made the way a stranger would make it, from the wire contract alone: it
// imports nothing of the authority, so that a mistake on one side is not
// repeated on the other.
//
// What it promises: the private key and the tokens lie in files only their owner
// reads; a token is stored before it is shown; two processes that refresh at
// once lose nothing; an address that does not belong to the Brand is never sent
// a code or a token; a token is printed only where it was asked for.
//
// Start at [Run] for the command line, at [Login] for the journey.
package pa
