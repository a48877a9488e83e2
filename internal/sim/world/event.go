package world

import "github.com/quorate/quorate/internal/sim/course"

// This file owns what an event is.

// kind is what an event is.
type kind uint8

const (
	EvRequest kind = iota // a request reaches its node
	EvLate                // a request that its sender gave up reaches the node
	EvAnswer              // an answer reaches its process
	evFail                // a process learns that a request will not be answered
	evPush                // a push reaches its process
	EvTimer               // a claim's Wake
	EvUp                  // a link is up: the claims of the process get that event
	EvDown                // a link is down: likewise
	evProc                // fn concerns a process, and waits while that is stopped
	evFunc                // fn concerns the world
)

// Event is something that happens at a moment; of two at the same moment the
// one that was scheduled first goes first.
type Event struct {
	At   course.Moment
	Kind kind
	Gen  uint32 // of the process: its life
	Proc *Proc
	M    *Message
	Att  *Attempt
	fn   func()
}
