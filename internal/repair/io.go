package repair

import (
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
)

// IO asks the nodes for an attempt. Each method waits for its answer, for a
// bounded time. A missing answer is an error.
type IO interface {
	// Look reads the marker of a node. With clock it also finds out what is
	// left of the node's guard time.
	Look(node int, clock bool) (Marker, error)
	// TakeTurn takes the turn to repair the attempt's node for the time d. It
	// reports false if another client has the turn.
	TakeTurn(d time.Duration) (bool, error)
	// Prolong prolongs the turn to d from now on, and says how many names are
	// left to be brought, -1 while they are being listed. It does not wait, and
	// neither does YieldTurn, which gives the turn up.
	Prolong(d time.Duration, left int)
	YieldTurn()
	// List lists some names of a node from cursor on, and returns where the
	// next portion begins. Both the first cursor and that after the last
	// portion are "0".
	List(node int, cursor string) (names []string, next string, err error)
	// Read reads the register of a name such that the attempt's node has the
	// newest in the end. With succession it is that of SuccessorName.
	Read(name string, succession bool) (lease.Outcome, error)
	// Decide decides the register of a name by a run of this client's own.
	Decide(name string, succession bool) (bool, error)
	// Mark marks the attempt's node as caught up if it has this incarnation.
	Mark(inc protocol.Incarnation) (bool, error)
	// Each calls f for each k below n, all at the same time, and waits for all
	// of them. Each call asks by an IO of its own.
	Each(n int, f func(io IO, k int))
	// Every calls f after each time d, besides, until stop is called.
	Every(d time.Duration, f func()) (stop func())
	// Group returns the nodes that count now.
	Group() protocol.Group
	// Permanent reports whether a node will refuse the next time, too.
	Permanent(err error) bool
}

// Marker is what a node reports about itself.
type Marker struct {
	Incarnation protocol.Incarnation
	Run         string // of the server
	CaughtUp    bool
	Kept        bool          // it was caught up before it entered the set, and has lost nothing since
	Wait        time.Duration // for the end of its guard time
}
