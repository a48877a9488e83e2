package sim

import (
	"math/rand/v2"
	"time"
)

// The aims in which processes close, and in which the renewal of holds ends.

// closing: processes close while they hold, wait and begin, and nothing fails.
// What they leave is passed on promptly, and no node keeps anything of them.
var closing = generator{
	name: "closing",
	set: func(r *rand.Rand, s *setting) {
		severalNames(r, s)
		s.clean, s.bootstrap, s.record = true, true, false
		s.tail, s.window = min(s.tail, s.nodeTimeout/8), 0
		s.delay = min(s.delay, s.nodeTimeout/16)
		s.jitter = min(s.jitter, s.nodeTimeout/16)
		if !s.counting && r.IntN(2) == 0 {
			s.callers, s.linger = 2, s.ttl/20
		}
		s.length = 4 * s.ttl
	},
	plan: func(w *world) {
		w.lateMessages = false
		w.wallsApart()
		w.allLoop()
		for range 2 + w.rng.IntN(6) {
			p := w.procs[w.rng.IntN(len(w.procs))]
			w.at(time.Duration(w.rng.Int64N(int64(w.length))), p.close)
		}
	},
}

// maxHolds: a holder keeps what it holds, and its renewal ends after a while.
// So does that of a claim that is handed over inside of a process, counted from
// the hand-over. Every waiter is served though no holder lets go by itself.
var maxHolds = generator{
	name: "maxHolds",
	set: func(r *rand.Rand, s *setting) {
		severalNames(r, s)
		s.procs, s.parts, s.locks, s.record = 2, 1, 1, false
		s.maxHold = s.ttl / time.Duration(1+r.IntN(4))
		if s.counting {
			s.capacity, s.weights, s.counting = 1, []uint64{1}, false
		}
		s.callers = [...]int{0, 0, 3}[r.IntN(3)]
		s.hold = s.ttl / 2
		s.cancelEvery, s.tryEvery = 0, 0
		s.length = 4 * s.ttl
	},
	plan: func(w *world) {
		w.allLoop()
		for range w.rng.IntN(4) {
			l := w.procs[w.rng.IntN(len(w.procs))].links[w.rng.IntN(len(w.nodes))]
			w.at(time.Duration(w.rng.Int64N(int64(w.length))), l.snap)
		}
		// One participant never lets go by itself.
		if t := w.procs[0].parts[0]; t.value == nil {
			w.then(w.delay, func() { t.keeps = true })
		}
	},
}
