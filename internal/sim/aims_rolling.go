package sim

import (
	"math/rand/v2"
	"time"
)

// rolling: all nodes lose their data, one after the other, each as soon as an
// onlooker finds that one more node may be restarted. One process holds a lock
// all the while, and others wait for it. No process reads a record. No name is
// forgotten, the hold is not lost, and each node is caught up soon after its
// guard time.
var rolling = generator{
	name: "rolling",
	set: func(r *rand.Rand, s *setting) {
		named(r, s, 4, 9)
		s.nodes = [...]int{3, 3, 5}[r.IntN(3)]
		s.length = time.Duration(3*s.nodes+1) * s.guard
		s.hold = 2 * s.length
	},
	plan: func(w *world) {
		e, onlooker := w.procs[0].parts[0], w.procs[3]
		may := false
		var look func()
		look = func() {
			onlooker.survey(func(ok bool) {
				if may = ok; !ok {
					onlooker.later(w.nodeTimeout/4, look)
				}
			})
		}
		w.then(w.delay, func() { e.acquire(false) })
		w.once(holds(e), w.ttl, w.nodeTimeout, func() {
			w.procs[1].parts[0].acquire(false)
			w.procs[2].parts[0].acquire(false)
		})
		w.then(w.ttl, func() { w.undecided["name 003"] = true })
		for i, n := range w.shuffled() {
			w.then(w.around(w.nodeTimeout), func() {
				if i == 0 { // the run of a name goes on for another guard time after the node's
					w.held["name 003"] = true
					w.at(2*w.guard+w.ttl/2, func() { clear(w.held) })
				}
				w.wipe(n, false)
				may = false
				onlooker.later(w.nodeTimeout, look)
			})
			w.once(func() bool { return may }, 2*w.guard+3*w.ttl, 0, func() {
				switch {
				case !may:
					w.fail("stuck", "node %d is not caught up", n.idx)
				case !holds(e)():
					w.fail("lost", "the hold ends as node %d, the %d. to be restarted, is back", n.idx, i+1)
				}
				w.remember()
			})
		}
	},
}
