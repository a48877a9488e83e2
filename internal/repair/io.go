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
	// Prolong extends the turn to d from now, and reports how many names are still
	// to be copied, or -1 while they are being listed. It does not wait, and
	// neither does YieldTurn, which gives up the turn.
	Prolong(d time.Duration, left int)
	YieldTurn()
	// List lists some names of a node, starting at cursor, and returns the cursor
	// of the next portion. The first cursor is "0", and so is the one returned
	// with the last portion.
	List(node int, cursor string) (names []string, next string, err error)
	// Read reads the register of a name in a way that leaves the attempt's node
	// with the newest value. With succession, it is the register of SuccessorName.
	Read(name string, succession bool) (lease.Outcome, error)
	// Decide decides the register of a name by a run of this client's own.
	Decide(name string, succession bool) (bool, error)
	// Mark marks the attempt's node as caught up if it has this incarnation, and
	// still serves the configuration that the marker was read as of.
	Mark(inc protocol.Incarnation, home string) (bool, error)
	// Each calls f concurrently for each k below n, and waits for all calls. Each
	// call gets its own IO.
	Each(n int, f func(io IO, k int))
	// Every calls f in the background every d, until stop is called.
	Every(d time.Duration, f func()) (stop func())
	// Group returns the nodes that count now.
	Group() protocol.Group
	// Permanent reports whether a node will refuse the next time, too.
	Permanent(err error) bool
}

// Marker is what a node reports about itself.
type Marker struct {
	Incarnation protocol.Incarnation
	Home        string // names the configuration that the node serves
	Run         string // of the server
	CaughtUp    bool
	Kept        bool          // it was caught up before it entered the set, and has lost nothing since
	Wait        time.Duration // for the end of its guard time
}
