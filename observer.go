package quorate

import (
	"time"

	"github.com/quorate/quorate/internal/setup"
)

// WithObserver sets the [Observer] of losses and nodes. The default is nil: no
// observer.
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

// An Observer receives the events of a [Quorum] that no caller is waiting for.
// It is meant for metrics and tests; see [WithObserver]. A [Tracer] follows the
// calls.
//
// The library calls Observe from one goroutine, one event at a time, and does
// not wait for it. Some events may arrive after [Quorum.Close]. Events queue up
// in memory while Observe is slow. A panic in Observe crashes the process.
type Observer interface{ Observe(Event) }

// EventKind is the kind of an [Event].
type EventKind string

// The kinds of events.
const (
	// EventLost ("lost"): a hold ended without a release. Name, Token, Took and
	// Err are set; Took is the length of the hold. Err matches ErrEvicted if an
	// operator ended the hold.
	EventLost EventKind = "lost"
	// EventBareHold ("bare hold"): a hold rests on exactly a majority of the
	// nodes, although another node answers: see [BareHold]. Name and Token are
	// set. The event comes with the renewal that discovers it.
	EventBareHold EventKind = "bare hold"
	// EventNodeUp ("node up"): a node is connected. Node is set.
	EventNodeUp EventKind = "node up"
	// EventNodeDown ("node down"): the connection to a node ended. Node and Err
	// are set.
	EventNodeDown EventKind = "node down"
	// EventNodeLeft ("node left"): a node has left the set and no longer
	// counts. Node is set. It comes after all other events of the node.
	EventNodeLeft EventKind = "node left"
	// EventNodeRecovering ("node recovering"): a node is new or has lost its
	// data, and does not vote until its guard time is over. Node and Took are
	// set; Took is how much of the guard time is left.
	EventNodeRecovering EventKind = "node recovering"
	// EventNodeCaughtUp ("node caught up"): this process has repaired a node
	// that had lost its data. Node is set.
	EventNodeCaughtUp EventKind = "node caught up"
	// EventNodeRefuses ("node refuses"): a node answers but refuses the writes
	// of a lock: it is full, lacks replicas, or its disk or its ACL forbids
	// them. Node and Err are set. The event comes once per cause, after a claim
	// was refused or [Quorum.Check] has discovered the problem, which lasts
	// until EventNodeAccepts or EventNodeDown.
	EventNodeRefuses EventKind = "node refuses"
	// EventNodeAccepts ("node accepts"): a node accepts new locks again. Node
	// is set.
	EventNodeAccepts EventKind = "node accepts"
	// EventClockJumped ("clock jumped"): a node's clock was set. Node and Took
	// are set; Took is the size of the jump. The node does not vote for the
	// next guard time.
	EventClockJumped EventKind = "clock jumped"
	// EventRecovering ("recovering"): so many nodes are waiting for their guard
	// time that there is no quorum. Node and Took are set: the last node to
	// finish, and how long that will take.
	EventRecovering EventKind = "recovering"
	// EventSetChanged ("set changed"): the set of nodes that count has changed,
	// see package members.
	EventSetChanged EventKind = "set changed"
)

// String returns the kind's string, as listed for each kind.
func (k EventKind) String() string { return string(k) }

// An Event is something that happened to a [Quorum], see [Observer].
type Event struct {
	Kind  EventKind
	Name  string        // of the primitive; empty for node events
	Token uint64        // the fencing token, for lost
	Node  string        // the node's address, for node events
	Took  time.Duration // see the kinds
	Err   error         // the reason, for lost (an *Error with each node's own error) and node down
}
