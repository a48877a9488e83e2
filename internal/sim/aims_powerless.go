package sim

import (
	"math/rand/v2"
	"slices"
	"time"
)

// powerless: the site loses power in any stage of an exchange. Each node comes
// back with all it had, with an older file, or with nothing. Those that have
// left are stopped for good.
var powerless = generator{
	name: "exchange powerless",
	set: func(r *rand.Rand, s *setting) {
		exchangeSet(r, s)
		s.members, s.nodes, s.record = 3, 5, false
	},
	plan: func(w *world) {
		w.assemble(true)
		w.allLoop()
		operator, files := w.procs[0], w.rng.IntN(3)
		w.at(w.around(w.ttl), func() { operator.exchange(w.changes()...) })
		for i := range 8 {
			w.at(time.Duration(i)*w.guard/4, func() {
				for _, n := range w.nodes {
					if files > 0 && w.rng.IntN(2) == 0 && !n.down {
						n.save()
					}
				}
			})
		}
		w.once(func() bool { return w.latest().Stamp.Epoch() > w.rng.Uint64N(5) }, 4*w.guard, w.around(w.guard/2), func() {
			lost := files == 0 && slices.ContainsFunc(w.nodes, w.retired) // nothing tells a client of before which set counts
			for _, n := range w.nodes {
				n.crash()
				switch {
				case files == 0:
					n.forget()
				case files == 1:
					n.revert()
				}
				if w.retired(n) {
					n.gone = true
					continue
				}
				w.at(w.around(w.nodeTimeout), n.restart)
			}
			for _, p := range w.procs {
				if w.rng.IntN(2) == 0 || lost {
					p.crash()
					w.at(w.around(w.nodeTimeout), p.restart)
				}
			}
			w.forgetDecisions()
			for i := range 4 {
				w.at(time.Duration(i+2)*w.guard, w.emptyAhead)
			}
		})
	},
}
