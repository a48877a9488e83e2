package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// rival is another Redlock client on the same name: it sets the classic key
// where that is free, holds with a majority, and retries at random.
type rival struct {
	clock
	w     *world
	count int
	value string
	until protocol.Time // of the hold; 0: none
}

func (r *rival) valid() bool { return r.clock.local(r.w.now) < r.until }

// try is one round of Redlock.
func (r *rival) try() {
	w := r.w
	if w.draining {
		return
	}
	r.count++
	r.value = fmt.Sprintf("rival %d", r.count)
	began := r.local(w.now)
	set, answered := 0, 0
	for _, n := range w.nodes {
		w.at(n.delay(), func() {
			ok := n.model.SetPlain(n.millis(w.now), r.value, w.ttl)
			w.at(n.delay(), func() {
				if answered++; ok {
					set++
				}
				if answered < len(w.nodes) {
					return
				}
				if set > len(w.nodes)/2 {
					w.log("the rival holds")
					r.until = began.Add(w.ttl - w.margin())
					w.check.always(w)
					w.at(w.around(w.hold), r.release)
				} else {
					r.release()
				}
			})
		})
	}
}

// release deletes the keys, and comes back later.
func (r *rival) release() {
	w := r.w
	r.until = 0
	w.log("the rival releases")
	value := r.value
	for _, n := range w.nodes {
		w.at(n.delay(), func() { n.model.DelPlain(n.millis(w.now), value) })
	}
	w.at(w.around(w.think)+4*(w.delay+w.jitter+w.tail), r.try)
}

// foreign: a mutex shared with another Redlock client, while nothing fails:
// more than that Redlock does not bear.
var foreign = generator{
	name: "foreign",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 1+r.IntN(3))
		s.capacity, s.weights = 1, []uint64{1}
		s.tail = min(s.tail, s.nodeTimeout/8)
		s.hold, s.think = s.ttl/time.Duration(2+r.IntN(50)), s.ttl/time.Duration(2+r.IntN(50))
		s.length = 10 * s.ttl
	},
	plan: func(w *world) {
		w.rival = &rival{w: w, clock: newClock(w.rng, &w.setting)}
		w.at(w.delay, w.rival.try)
		w.everybody()
	},
}
