// Package witness is "countersign witness": anybody's own look at a Brand's log, by
// their own key and clock. It promises never to sign two logs that contradict one
// another, nor one that shrank, as long as its file is kept. Start at [Run].
package witness
