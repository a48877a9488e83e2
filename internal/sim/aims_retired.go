package sim

import (
	"math/rand/v2"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
)

// The aims in which nodes, processes and operators come back that have missed
// an exchange.

// exchangeStale: ABC is replaced by DEF, and the nodes that left still serve
// both sets. D loses its data, or comes back with that of before. A process
// with the old list reaches A, B, C and D only.
var exchangeStale = generator{
	name: "exchange stale",
	set: func(r *rand.Rand, s *setting) {
		swapSet(r, s)
		s.capacity, s.weights, s.record = 1, []uint64{1}, true
		s.hold, s.think = s.ttl/20, 20*s.guard
		s.length = 8*s.guard + 6*s.ttl
	},
	plan: func(w *world) {
		old, next, _, other, operator := w.swap()
		memory := (*node).forget
		w.once(operator.at(3), 4*w.guard, w.guard/2, func() {
			if w.rng.IntN(2) == 0 {
				next[0].save()
				memory = (*node).revert
			}
		})
		w.once(operator.at(4), 4*w.guard, 0, func() {
			for _, p := range w.procs {
				p.cut(old...)
			}
			operator.cut(next[2])
		})
		w.then(w.nodeTimeout+w.around(w.nodeTimeout), func() { operator.parts[0].acquire(false) })
		w.once(func() bool { return len(w.ledger.puts) > 0 }, w.ttl, w.nodeTimeout, func() {
			w.procs[0].cut(next...)
			operator.cut(next[0])
			other.crash()
			w.bounce(next[0], w.around(w.nodeTimeout), memory)
		})
		w.then(2*w.nodeTimeout, func() {
			other.cut(next[1:]...)
			other.mend(old...)
			other.restart()
		})
		w.then(w.guard+w.guard/4+w.around(w.ttl), func() { // D may be taken for one that knows all
			other.cut(next[0])
			operator.cut(next[1])
			operator.mend(next[0], next[2])
		})
		w.then(w.ttl/2, func() {
			operator.startRegisterOp(nil, lease.RegisterOp{Op: protocol.OpRead}, func(*registerOp, bool) {})
		})
		w.then(w.ttl, func() {})
	},
}
