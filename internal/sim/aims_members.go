package sim

import (
	"math/rand/v2"
	"time"
)

// The aims in which processes have different lists of nodes. The lists are ABC
// and ABD.

func membersSet(r *rand.Rand, s *setting) {
	plain(r, s, 2)
	s.nodes, s.members = 4, 3
	s.hold = 2 * s.guard
	s.length = 2*s.guard + 6*s.ttl
}

// recordings: two processes record two sets at the same moment: ABC and ABD.
var recordings = generator{
	name: "recordings",
	set:  membersSet,
	plan: func(w *world) {
		ns := w.shuffled()
		holder, other := w.procs[0], w.procs[1]
		holder.list, other.list = ns[:3], []*node{ns[0], ns[1], ns[3]}
		w.assemble(false)
		w.then(w.around(w.nodeTimeout), func() {
			holder.parts[0].acquire(false)
			w.at(time.Duration(w.rng.Int64N(int64(32*w.delay))), func() { other.parts[0].acquire(false) })
		})
		// Each has another one of the two common nodes from then on.
		w.once(holder.counts(), w.ttl, 0, func() { holder.cut(ns[1]) })
		w.once(other.counts(), w.ttl, 0, func() { other.cut(ns[0]) })
		w.then(w.guard+4*w.ttl, w.setsAgree)
	},
}

// wiped: most nodes of a set lose their data at about one time, or all, again
// and again. They come back by themselves.
var wiped = generator{
	name: "wiped",
	set: func(_ *rand.Rand, s *setting) {
		s.bootstrap = true
		s.length = 8 * s.guard
	},
	plan: func(w *world) {
		w.assemble(true)
		w.allLoop()
		for range 1 + w.rng.IntN(3) {
			ns := w.shuffled()
			for _, n := range ns[:len(ns)-w.rng.IntN(w.spare()+1)] {
				w.then(0, func() {
					n.crash()
					n.forget()
					w.at(w.around(2*w.nodeTimeout), n.restart)
				})
			}
			w.then(w.around(2*w.guard), func() {})
		}
	},
}

// recordedStorm: anything fails at any time, and the nodes are a set, or are
// recorded as one meanwhile.
var recordedStorm = generator{
	name: "recorded storm",
	plan: func(w *world) {
		w.assemble(w.rng.IntN(2) == 0)
		w.allLoop()
		w.randomFaults(w.rng.IntN(12))
	},
}
