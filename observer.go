package quorate

import (
	"time"

	"github.com/quorate/quorate/internal/setup"
)

// WithObserver sets the [Observer]. By default there is none.
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

// An Observer receives the events of a [Quorum] that no caller is waiting for,
// such as lost holds and nodes that go down. It is meant for metrics and tests;
// see [WithObserver]. To follow calls, use a [Tracer].
//
// The library calls Observe from a single goroutine, one event at a time, and
// does not wait for it. If Observe is slow, events queue up in memory. Some
// events may arrive after [Quorum.Close]. A panic in Observe crashes the
// process.
type Observer interface{ Observe(Event) }

// EventKind is the kind of an [Event].
type EventKind string

// The kinds of events.
const (
	// EventLost ("lost"): a hold ended without a release. Name, Token, Took and
	// Err are set; Took is the length of the hold. Err matches ErrEvicted if an
	// operator ended the hold.
	EventLost EventKind = "lost"
	// EventBareHold ("bare hold"): a hold depends on a bare majority of the nodes
	// even though another node is answering; see [BareHold]. Name and Token are
	// set. The renewal that notices this sends the event.
	EventBareHold EventKind = "bare hold"
	// EventNodeUp ("node up"): a node is connected. Node is set.
	EventNodeUp EventKind = "node up"
	// EventNodeDown ("node down"): the connection to a node ended. Node and Err
	// are set.
	EventNodeDown EventKind = "node down"
	// EventNodeLeft ("node left"): a node has left the set and no longer counts.
	// Node is set. This is the node's last event.
	EventNodeLeft EventKind = "node left"
	// EventNodeRecovering ("node recovering"): a node is new or has lost its data,
	// and does not vote until its guard time has passed. Node and Took are set;
	// Took is how much of the guard time is left.
	EventNodeRecovering EventKind = "node recovering"
	// EventNodeCaughtUp ("node caught up"): this process has repaired a node
	// that had lost its data. Node is set.
	EventNodeCaughtUp EventKind = "node caught up"
	// EventNodeRefuses ("node refuses"): a node answers but refuses to write,
	// because it is full, has too few replicas, or has a problem with its disk or
	// its ACL. Node and Err are set. The event is sent once per cause, when a
	// claim is refused or [Quorum.Check] discovers the problem. The problem lasts
	// until EventNodeAccepts or EventNodeDown.
	EventNodeRefuses EventKind = "node refuses"
	// EventNodeAccepts ("node accepts"): a node accepts new locks again. Node
	// is set.
	EventNodeAccepts EventKind = "node accepts"
	// EventClockJumped ("clock jumped"): a node's clock was stepped. Node and Took
	// are set; Took is the size of the jump. The node does not vote for one guard
	// time.
	EventClockJumped EventKind = "clock jumped"
	// EventRecovering ("recovering"): there is no quorum, because too many nodes
	// are waiting for their guard time. Node and Took are set: Node is the last
	// one to finish, and Took is how long that will take.
	EventRecovering EventKind = "recovering"
	// EventSetChanged ("set changed"): the set of nodes that count has changed;
	// see package members.
	EventSetChanged EventKind = "set changed"
)

// String returns the string shown in parentheses beside each kind.
func (k EventKind) String() string { return string(k) }

// An Event is something that happened to a [Quorum]; see [Observer].
type Event struct {
	Kind  EventKind
	Name  string        // the primitive's name; empty for node events
	Token uint64        // the fencing token, for EventLost
	Node  string        // the node's address, for node events
	Took  time.Duration // a duration; see the kinds
	Err   error         // the reason, for EventLost (an *Error with each node's own error) and EventNodeDown
}
