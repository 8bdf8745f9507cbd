// Package failpoint names the moments at which a crash is worth trying. In a normal build [Hit] is empty and inlined away. Built with the
// tag "failpoints", a process whose FAILPOINT is "<point>:<n>" kills itself, as kill -9 would, the n-th time that it gets there; what is no
// point panics at start.
package failpoint

// Point is one such moment.
type Point string

// The points, in the order in which an event passes them.
const (
	BeforeCommit   Point = "before-commit"   // everything is written, COMMIT is not sent
	AfterCommit    Point = "after-commit"    // COMMIT has succeeded, nobody knows yet
	AfterClaim     Point = "after-claim"     // a relay has lanes, nothing is published
	AfterPublish   Point = "after-publish"   // the broker has the events, their lane has not moved
	BeforeComplete Point = "before-complete" // a batch of settlements is about to be written
	BeforeAck      Point = "before-ack"      // a message took effect, the broker does not know
)

// Points returns all of them.
func Points() []Point {
	return []Point{BeforeCommit, AfterCommit, AfterClaim, AfterPublish, BeforeComplete, BeforeAck}
}
