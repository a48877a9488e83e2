package mutex

import (
	"fmt"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/fault"
)

// Both returns a Group that locks one name on two sets of nodes. Use it while
// you move a fleet from the servers of one Quorum to those of another: first
// all processes lock on old, then all use Both, then all lock on new. Both
// excludes every Mutex with that name on either set. A Mutex on old and a Mutex
// on new do not exclude each other.
//
// LockContext first waits for its turn on old, and holds old while it waits for
// its turn on new. So all processes must pass old and new in the same order. It
// also holds old while too few nodes of new answer, and nobody else gets the
// name on old then: pass a context that ends.
// The context of [Group.Do] ends when either hold is lost. [Group.Leases]
// returns both holds. The two sets must not share a server. If they are the
// same set, every call that would lock returns an error. Both takes the options
// of [All] and panics for the same reasons.
func Both(old, new *quorate.Quorum, name string, opts ...quorate.SharedOption) *Group {
	g := &Group{turn: make(chan struct{}, 1)}
	g.add(old, name, "mutex.Both", opts)
	g.add(new, name, "mutex.Both", opts)
	return g
}

// onOneSet reports whether g is of Both, and both sets are the same: then the
// second hold would wait for the first without end.
func (g *Group) onOneSet() bool {
	if len(g.parts) != 2 || g.parts[0].spec.Name != g.parts[1].spec.Name {
		return false
	}
	old, new := g.parts[0].q.Members.Config.Load(), g.parts[1].q.Members.Config.Load()
	return old != nil && new != nil && old.Kin(new)
}

var errOneSet = fmt.Errorf("%w: both Quorums given to mutex.Both are of the same set of nodes; use mutex.New",
	fault.ErrInvalid)
