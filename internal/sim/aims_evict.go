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
