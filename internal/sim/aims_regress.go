package sim

import (
	"math/rand/v2"
	"slices"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/nodeset"
)

// exchangeRegress: D takes the place of C, and A loses its data. A process that
// has missed what follows has A be a member of ABC again, or would. From then
// on it reaches A and C only, and the others reach B and D.
//
// The process sleeps through the exchange, or A loses its data when it alone
// has moved to the joint configuration. A may come back with a snapshot of
// before.
var exchangeRegress = generator{
	name: "exchange regress",
	set:  outageSet,
	plan: func(w *world) {
		old := slices.Clone(w.nodes[:3])
		w.rng.Shuffle(3, func(i, j int) { old[i], old[j] = old[j], old[i] })
		a, b, c, d := old[0], old[1], old[2], w.nodes[3]
		e, f, operator := w.procs[0].parts[0], w.procs[1].parts[0], w.procs[2]
		last := f
		left, others := e.proc, []*proc{f.proc, operator}
		w.assemble(true)
		part := func(n *node) {
			for _, p := range others {
				p.cut(n)
			}
		}
		meets := func() bool { return a.keeps().Phase == nodeset.SetRecorded }
		if w.rng.IntN(2) == 0 {
			file := w.rng.IntN(2) == 0
			w.then(w.nodeTimeout, func() {
				if file {
					a.save()
				}
				left.pause()
				c.crash()
				operator.exchange(w.change([]*node{d}, []*node{c}))
			})
			w.once(operator.at(4), 4*w.guard, w.around(w.nodeTimeout), func() {
				part(a)
				part(c) // or it learns at once which set it has left
				if left.cut(d); w.rng.IntN(2) == 0 {
					left.cut(b) // or an answer of b tells it as soon as it goes on
				}
				c.restart()
				w.wipe(a, file)
			})
			w.then(w.around(w.nodeTimeout), left.resume)
			w.once(meets, w.around(2*w.nodeTimeout), 0, func() { left.cut(b) })
		} else {
			w.then(w.nodeTimeout, func() { operator.exchange(w.change([]*node{d}, []*node{c})) })
			w.once(operator.at(2), 2*w.guard, 0, func() {
				left.cut(d)
				f.proc.cut(a, b, c, d)
			})
			w.once(d.model.CaughtUp, 2*w.guard, w.guard/2, func() {
				operator.cut(c) // its register does not hear of what is decided
			})
			w.once(operator.at(3), 3*w.guard, 0, func() {
				left.cut(a)
				operator.cut(b, c)
			})
			w.then(w.around(2*w.nodeTimeout), func() {
				operator.cut(a)
				w.wipe(a, false)
				left.mend(a)
			})
			last = operator.parts[0] // the others do not learn what follows
			w.once(meets, 12*w.nodeTimeout, 0, func() {
				left.cut(b)
				operator.mend(b)
			})
		}
		w.then(w.guard+w.ttl/4, func() { e.acquire(false) })
		w.then(w.around(w.ttl/2), func() {
			operator.mend(c)
			f.proc.mend(b, d)
		})
		w.once(operator.at(4), w.ttl/4, 0, func() { last.acquire(false) })
		w.then(w.ttl/2, func() {})
	},
}

// exchangeLate: all nodes are replaced, by two operators. The second one has
// seen that an old node is silent, and undoes the change. It begins just as it
// learns that the new nodes count alone: none of them has the register.
var exchangeLate = generator{
	name: "exchange late",
	set: func(r *rand.Rand, s *setting) {
		swapSet(r, s)
		if r.IntN(2) == 0 {
			s.members, s.nodes = 1, 2
		}
	},
	plan: func(w *world) {
		w.assemble(true)
		operator, other := w.procs[0], w.procs[1]
		w.once(func() bool { return true }, 0, w.around(w.nodeTimeout), func() {
			operator.exchange(w.change(w.nodes[w.members:], w.nodes[:w.members]))
		})
		var late *change.Succession
		w.once(other.at(3), 4*w.guard, w.guard, func() {
			c := other.members.Config()
			late = change.NewSuccession(c, change.Undo(c, other.ballot()), w.ttl, w.nodeTimeout, w.rules)
		})
		w.once(other.at(4), 2*w.guard, w.around(w.nodeTimeout), func() {
			other.succeed(late, func() {
				if c, _ := late.Decided(); c != nil {
					w.successor(other, c)
				}
			})
		})
		w.then(4*w.ttl, func() {})
	},
}
