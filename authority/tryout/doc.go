// Package tryout is the service's own personal agent, for a Brand that tries
// itself out before any real agent comes.
//
// It does what every agent does and nothing more: it proves itself with a pa-jwt,
// asks for a delegation, shows the link and the code, polls, and judges the token
// with package verify as the Brand's own server would. It goes through the
// Brand's public URLs, so that a proxy that is set up wrongly shows here and not
// at the first customer.
//
// It is registered as a test agent, and acts for a member of the Brand under an id
// of their own. Start at [Agent.Begin].
package tryout
