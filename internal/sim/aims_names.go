package sim

import (
	"math/rand/v2"
)

// The aims in which each process claims several names at once. The names share
// the connections and the room at the nodes, their data is lost at one moment,
// and each is held to what the protocol promises by itself.

// severalNames is what these aims start from. The record, the number of permits
// and other Redlock clients are those of the first name.
func severalNames(r *rand.Rand, s *setting) {
	s.nodes, s.procs = 3+2*r.IntN(2), 2+r.IntN(3)
	s.locks = 2 + r.IntN(len(lockNames)-1)
	s.parts = s.locks * (1 + r.IntN(2))
	s.record = s.capacity == 1 && r.IntN(2) == 0
	s.skew, s.offsets = s.ttl/2, false // wall clocks differ, and stay as they are
	s.guard = 2*s.ttl + 2*s.skew
	s.hold, s.think = max(s.hold, s.ttl/20), max(s.think, s.ttl/20)
}

// manyNames: anything fails at any time, and in half of the schedules a node
// has room for a few requests only.
var manyNames = generator{
	name: "manyNames",
	set: func(r *rand.Rand, s *setting) {
		severalNames(r, s)
		s.window = [...]int{1, 2, 4, 0, 0, 0}[r.IntN(6)]
		s.names = 3
		if !s.record && !s.counting && r.IntN(2) == 0 {
			s.callers, s.linger = 2, s.ttl/20
		}
		s.length = s.guard + 3*s.ttl
	},
	plan: func(w *world) {
		w.wallsApart()
		w.allLoop()
		w.randomFaults(w.rng.IntN(12))
	},
}

// manyNamesCalm: nothing fails, so every name is served promptly, whatever the
// others do.
var manyNamesCalm = generator{
	name: "manyNamesCalm",
	set: func(r *rand.Rand, s *setting) {
		severalNames(r, s)
		s.clean, s.bootstrap, s.record = true, true, false
		s.tail, s.window = min(s.tail, s.nodeTimeout/8), 0
		s.length = 4 * s.ttl
	},
	plan: func(w *world) {
		w.wallsApart()
		w.allLoop()
	},
}
