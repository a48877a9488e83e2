package quorate

import (
	"time"

	"github.com/quorate/quorate/internal/setup"
)

// WithObserver sets the [Observer] of losses and nodes. Default nil: none.
func WithObserver(o Observer) Option {
	return setting{func(s *setup.Settings) {
		if s.Observe = nil; o != nil {
			s.Observe = func(e setup.Event) {
				o.Observe(Event{Kind: EventKind(e.Kind), Name: e.Name, Token: e.Token, Node: e.Node, Took: e.Took,
					Err: e.Err})
			}
		}
	}}
}

// An Observer gets the events of a [Quorum] that no caller waits for, for
// metrics and tests, see [WithObserver]. A [Tracer] gets the calls.
//
// The library calls Observe from one goroutine, for one event after the other,
// and does not wait for it. Some events may come after [Quorum.Close]. Events
// that wait for a slow Observer take memory. A panic in Observe ends the
// process.
type Observer interface{ Observe(Event) }

// EventKind is the kind of an [Event].
type EventKind string

// The kinds of events.
const (
	// EventLost ("lost"): a claim that was held ended without a release. Name,
	// Token, Took and Err are set; Took is the length of the hold. Err matches
	// ErrEvicted where an operator has ended it.
	EventLost EventKind = "lost"
	// EventNodeUp ("node up"): the connection to a node works. Node is set.
	EventNodeUp EventKind = "node up"
	// EventNodeDown ("node down"): the connection to a node ended. Node and Err
	// are set.
	EventNodeDown EventKind = "node down"
	// EventNodeLeft ("node left"): a node does not count any more, as it has
	// left the set. Node is set. It comes after all other events of the node.
	EventNodeLeft EventKind = "node left"
	// EventNodeRecovering ("node recovering"): a node is new or lost its data,
	// and does not vote until its guard time is over. Node and Took are set, to
	// how much longer.
	EventNodeRecovering EventKind = "node recovering"
	// EventNodeCaughtUp ("node caught up"): this process has repaired a node
	// that had lost its data. Node is set.
	EventNodeCaughtUp EventKind = "node caught up"
	// EventNodeRefuses ("node refuses"): a node answers, and refuses what a lock
	// writes: it is full, lacks replicas, or its disk or its ACL forbids it.
	// Node and Err are set. It comes once per cause, after a claim was refused
	// or a [Quorum.Check] has found it out. EventNodeAccepts or EventNodeDown
	// ends it.
	EventNodeRefuses EventKind = "node refuses"
	// EventNodeAccepts ("node accepts"): a node takes new locks again. Node is
	// set.
	EventNodeAccepts EventKind = "node accepts"
	// EventClockJumped ("clock jumped"): a node's clock was set. Node and Took
	// are set; Took is by how much. The node does not vote until a guard time
	// later.
	EventClockJumped EventKind = "clock jumped"
	// EventRecovering ("recovering"): so many nodes wait for their guard time
	// that no quorum is left. Node and Took are set, to the last of them and
	// how much longer.
	EventRecovering EventKind = "recovering"
	// EventSetChanged ("set changed"): other nodes count from now on, see
	// package members.
	EventSetChanged EventKind = "set changed"
)

// String returns the kind's string, as it stands at each kind.
func (k EventKind) String() string { return string(k) }

// An Event is something that happened, see [Observer].
type Event struct {
	Kind  EventKind
	Name  string        // of the primitive; empty for events of nodes
	Token uint64        // the fencing token, for lost
	Node  string        // the node's address, for events of nodes
	Took  time.Duration // see the kinds
	Err   error         // why, for lost (an *Error with each node's own error) and node down
}
