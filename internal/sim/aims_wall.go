package sim

import (
	"math/rand/v2"
	"time"
)

// wallClocks: the wall clock of one process is set wrong, and right again a
// while later. The clock of one node is wrong, too. At times two nodes cannot
// be reached while the clocks are compared.
var wallClocks = generator{
	name: "wallClocks",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 2)
		s.nodes, s.walls, s.offsets, s.record, s.eager = 3, true, false, false, true
		s.ttl, s.nodeTimeout, s.skew = 8*time.Second, 100*time.Millisecond, 2*time.Second
		s.guard = 2*s.ttl + 2*s.skew
		s.length = 6 * s.ttl
	},
	plan: func(w *world) {
		ns := w.shuffled()
		wrong, right := w.procs[0], w.procs[1]
		by := time.Duration(2 + w.rng.IntN(1000))
		if w.rng.IntN(2) == 0 {
			by = -by
		}
		ns[2].clock.offset += int64(by * w.guard)
		ns[2].wrong += by * w.guard
		cut := w.rng.IntN(2) == 0
		w.then(time.Second, func() {
			wrong.off = by * w.guard
			wrong.adjust()
			wrong.parts[0].acquire(true)
		})
		w.then(time.Second, func() {
			wrong.expectWall(true)
			right.parts[0].loop()
			if cut {
				wrong.cutOff(ns[0])
				wrong.cutOff(ns[1])
			}
		})
		w.then(2500*time.Millisecond, func() {
			wrong.off = 0
			wrong.adjust()
			for _, n := range ns[:2] {
				wrong.to(n).heal(true)
			}
		})
		w.then(4*time.Second, func() { wrong.expectWall(false) })
	},
}
