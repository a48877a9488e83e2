package mutex

import (
	"fmt"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/fault"
)

// Both returns a Group of one name on two sets of nodes, for the time in which
// a fleet moves from the servers of one Quorum to those of another: first every
// process locks on old, then every process uses Both, then every process locks
// on new. Both excludes the Mutexes of that name on either set. A Mutex on old
// and a Mutex on new do not exclude each other.
//
// LockContext waits for its turn on old first, and holds old while it waits for
// its turn on new. So all processes must pass old and new in the same order.
// The context of [Group.Do] ends when either hold is lost. [Group.Leases]
// returns both holds. The two sets must have no server in common. Options and
// panics are those of [All].
func Both(old, new *quorate.Quorum, name string, opts ...quorate.SharedOption) *Group {
	g := &Group{turn: make(chan struct{}, 1)}
	if old == new {
		g.err, g.bad = &fault.Failure{Err: errOneQuorum}, name
	}
	g.add(old, name, "mutex.Both", opts)
	g.add(new, name, "mutex.Both", opts)
	return g
}

var errOneQuorum = fmt.Errorf("%w: mutex.Both got the same Quorum twice; use mutex.New", fault.ErrInvalid)
