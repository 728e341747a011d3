// Package mail sends what the dashboard has to tell by e-mail: as SMTP, or, in
// development, into an outbox that a page shows.
//
// A visitor never waits for a mail server: messages go through a Queue, so that
// an answer takes the same time whether or not there was anything to send. The
// queue is bounded and in memory, because messages hold one-time secrets that
// must not rest anywhere; whoever loses one asks again. Start at Message.
package mail
