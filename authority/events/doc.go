// Package events tells a Brand within a second what becomes of its people's
// grants: by webhook, and to whoever follows its stream.
//
// What it promises of webhooks:
//
//   - A change that is committed is delivered at least once to every endpoint
//     that was on, whatever is killed: the outbox is written in the change's own
//     transaction. The webhook-id is the same at every attempt, so that a
//     receiver can tell what it has seen.
//   - An endpoint that is slow or dead delays nobody but itself. It holds one
//     worker of an instance at a time, is called by few at once, by one while it
//     fails, and rests between failures.
//   - After some twelve attempts over a day a delivery is dead: it is kept, with
//     what happened, and can be replayed.
//   - No secret and no word of a receiver's answer is kept or logged.
//
// The way of one event: the rules announce it (outbox.go), which writes a row
// for each endpoint and one job for river, "wake", that names the endpoint. A
// worker takes the job (courier.go) and delivers what is due for that endpoint
// (drain.go), one signed request each (attempt.go, sign.go). A job is no more
// than a bell: what is due stands in the rows, so a job too many does nothing.
//
// Those who follow a stream are woken by Feed (feed.go) and read the trail
// themselves, each at its own pace.
package events
