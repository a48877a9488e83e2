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

// barred: another client's key stays at one node, and of two who wait each is ahead at one
// of the others.
var barred = generator{
	name: "barred",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 2)
		s.capacity, s.weights = 1, []uint64{1}
		s.hold, s.think = s.ttl/20, 8*s.ttl
		s.length = 6 * s.ttl
	},
	plan: func(w *world) {
		ns := w.shuffled()
		a, b, c := ns[0], ns[1], ns[2]
		first, second := w.procs[0], w.procs[1]
		e, f := first.parts[0], second.parts[0]
		a.model.SetPlain(a.millis(w.now), "a key that stays", 0)
		first.cutOff(c)
		second.cutOff(b)
		w.then(w.delay, func() {
			e.acquire(false)
			f.acquire(false)
		})
		w.then(w.slowest(), func() {
			first.to(c).heal(false)
			second.to(b).heal(false)
		})
		w.once(func() bool { return holds(e)() || holds(f)() }, w.ttl, 0, func() {
			if !holds(e)() && !holds(f)() {
				w.fail("stuck", "neither %s nor %s is served, though two nodes are free", e.name, f.name)
			}
			a.model.DelPlain(a.millis(w.now), "")
		})
	},
}
