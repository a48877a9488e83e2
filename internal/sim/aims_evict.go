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

// evictAtTimes has operators evict n times.
func (w *world) evictAtTimes(n int) {
	for range n {
		w.at(w.around(w.length/2), func() {
			of := w.check.of[w.rng.IntN(len(w.check.of))].holders
			if len(of) > 0 && !w.draining {
				w.evict(of[w.rng.IntN(len(of))], w.shuffled()[:1+w.rng.IntN(len(w.nodes))], 8)
			}
		})
	}
}

// evict has an operator ask some nodes to end a hold, and again while it lasts.
// Where nothing fails, the word of a quorum ends it.
func (w *world) evict(a *attempt, nodes []*node, times int) {
	by := uint32(0) // the words of two operators, or of two times, are not one
	for _, n := range nodes {
		if n.evict(a) {
			by |= 1 << n.idx
		}
	}
	w.at(w.around(2*w.slowest()), func() {
		switch {
		case !a.valid() || w.draining:
		case times > 0:
			w.evict(a, nodes, times-1)
		case w.clean && a.Sets.Met(by):
			w.fail("evicted", "%v holds on against the word of a quorum", a)
		}
	})
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
