package sim

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// rival is another Redlock client on the same name: it sets the redlock key
// where that is free, holds with a majority, and retries at random.
type rival struct {
	clock
	w     *world
	lease time.Duration
	lossy bool // its messages get lost, or are late
	count int
	until protocol.Time // of the hold; 0: none
}

// newRival returns one whose leases are as long as ours, or, if it is lossy,
// longer.
func newRival(w *world, lossy bool) *rival {
	r := &rival{w: w, clock: newClock(w.rng, &w.setting), lease: w.ttl, lossy: lossy}
	if lossy && w.rng.IntN(2) == 0 {
		r.lease = w.ttl * time.Duration(1+w.rng.IntN(6))
	}
	w.rival = r
	return r
}

func (r *rival) valid() bool { return r.clock.local(r.w.now) < r.until }

// try is one round of Redlock.
func (r *rival) try() {
	w := r.w
	if w.draining {
		return
	}
	r.count++
	value := fmt.Sprintf("rival %d", r.count)
	began := r.local(w.now)
	set, answered, over := 0, 0, false
	decide := func() {
		switch {
		case over:
		case set > len(w.nodes)/2 && r.local(w.now) < r.end(began):
			over = true
			w.log("the rival holds")
			r.holds(r.end(began))
			w.checks.always()
			w.at(w.around(w.hold), func() { r.release(value) })
		case answered == len(w.nodes):
			over = true
			r.release(value)
		}
	}
	for _, n := range w.nodes {
		ok := false
		r.ask(n, func() { ok = n.setPlain(value, r.lease) }, func() {
			if answered++; ok {
				set++
			}
			decide()
		})
	}
	if r.lossy {
		w.at(w.nodeTimeout, func() {
			answered = len(w.nodes)
			decide()
		})
	}
}

// holds notes until when it holds.
func (r *rival) holds(until protocol.Time) {
	r.until = until
	if x := r.w.tape; x != nil {
		end := r.w.now
		if until > 0 {
			end = r.when(until)
		}
		x.note("rival until %v", time.Duration(end)-time.Second)
	}
}

// end is until when it takes keys that it began to set at a moment for its own.
func (r *rival) end(began protocol.Time) protocol.Time {
	return began.Add(r.lease - r.lease/100 - 2*time.Millisecond)
}

// ask has a node do something, and then tells.
func (r *rival) ask(n *node, do, tell func()) {
	w := r.w
	lost := func() bool { return r.lossy && w.rng.IntN(12) == 0 }
	delay := func() time.Duration {
		d := n.delay()
		if r.lossy && w.rng.IntN(12) == 0 {
			d += time.Duration(w.rng.Int64N(int64(2 * w.ttl)))
		}
		return d
	}
	if lost() {
		return
	}
	var arrive func()
	arrive = func() {
		switch {
		case n.down || n.refuse:
		case n.paused:
			w.at(w.nodeTimeout, arrive)
		default:
			if do(); !lost() {
				w.at(delay(), tell)
			}
		}
	}
	w.at(delay(), arrive)
}

// release deletes the keys, and comes back later.
func (r *rival) release(value string) {
	w := r.w
	r.holds(0)
	w.log("the rival releases")
	for _, n := range w.nodes {
		r.ask(n, func() { n.delPlain(value) }, func() {})
	}
	w.at(w.around(w.think)+4*(w.delay+w.jitter+w.tail), r.try)
}
