package quorate

import (
	"time"

	"github.com/quorate/quorate/internal/core"
)

// WithObserver sets the [Observer] of acquisitions, releases, losses and nodes.
// Default nil: none.
func WithObserver(o Observer) Option {
	return setting{func(s *core.Settings) {
		if s.Observe = nil; o != nil {
			s.Observe = func(e core.Event) {
				o.Observe(Event{Kind: EventKind(e.Kind), Name: e.Name, Token: e.Token, Node: e.Node, Took: e.Took, Err: e.Err})
			}
		}
	}}
}

// An Observer gets the events of a [Quorum], for metrics and tests, see
// [WithObserver]. It must be safe for concurrent use.
//
// Observe is called from the goroutine where the event happened. It must return
// soon and must not call the library: [Quorum.Close] fails in it. If it panics
// in a goroutine of the caller, as in Lock or Unlock, the panic is the
// caller's: Lock then has not locked, and Unlock has unlocked. In a goroutine
// of the library a panic ends the process.
type Observer interface{ Observe(Event) }

// EventKind is the kind of an [Event]. It is a plain value, safe for concurrent
// use.
type EventKind string

// The kinds of events.
const (
	// EventAcquired ("acquired"): a claim was admitted. Name, Token and Took
	// are set; Took is the time since the call.
	EventAcquired EventKind = "acquired"
	// EventReleased ("released"): a hold was released. Name, Token and Took are
	// set; Took is the length of the hold.
	EventReleased EventKind = "released"
	// EventLost ("lost"): a hold ended by itself. Name, Token, Took and Err are
	// set; Took is the length of the hold.
	EventLost EventKind = "lost"
	// EventNodeUp ("node up"): the connection to a node works. Node is set.
	EventNodeUp EventKind = "node up"
	// EventNodeDown ("node down"): the connection to a node ended. Node and Err
	// are set.
	EventNodeDown EventKind = "node down"
	// EventClockJumped ("clock jumped"): a node's clock was set. Node and Took
	// are set; Took is by how much. The node does not vote until a guard time
	// later.
	EventClockJumped EventKind = "clock jumped"
	// EventRecovering ("recovering"): so many nodes wait for their guard time
	// that no quorum is left. Took is set, to how much longer.
	EventRecovering EventKind = "recovering"
)

// String returns the kind's string, as it stands at each kind.
func (k EventKind) String() string { return string(k) }

// An Event is one thing that happened, see [Observer]. It is a plain value,
// safe for concurrent use as long as no goroutine changes it.
type Event struct {
	Kind  EventKind
	Name  string        // of the primitive; empty for events of nodes
	Token uint64        // the fencing token, for acquired, released and lost
	Node  string        // the node's address, for events of nodes
	Took  time.Duration // see the kinds
	Err   error         // why, for lost (an *Error with each node's own error) and node down
}
