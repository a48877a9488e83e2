package sim

import (
	"math/rand/v2"
)

// evictions: operators end holds, by the word of one node, of some, or of all.
// Nothing else fails.
var evictions = generator{
	name: "evictions",
	set:  func(r *rand.Rand, s *setting) { calm.set(r, s); s.hold += s.ttl / 8 },
	plan: func(w *world) {
		w.allLoop()
		w.evictAtTimes(2 + w.rng.IntN(8))
	},
}

// evictionStorm: and anything fails.
var evictionStorm = generator{
	name: "evictionStorm",
	plan: func(w *world) {
		storm.plan(w)
		w.evictAtTimes(4 + w.rng.IntN(16))
	},
}

// evict has a node say that an operator ends a hold, and reports whether it
// does.
func (n *node) evict(a *attempt) (says bool) {
	n.w.tape.note("evict %s %d", a.part.label(), n.idx+1)
	if n.down || n.paused {
		return false
	}
	n.w.log("an operator ends %v at node %d", a, n.idx)
	_, outs := a.part.data(n).Evict(n.millis(n.w.now), a.Ticket())
	for _, o := range outs {
		if o.Push.ID == a.ID {
			says = true
			a.evictedBy |= 1 << n.idx
		}
		n.push(o)
	}
	return says
}
