package sim

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// wrongClock: the wall clocks of processes are wrong, by anything up to days.
// One has the lock with a ticket of the future and then another one, or one
// with a true ticket and then another one of the past. Between them nodes lose
// their data, or forget the fence because nothing happened for the retention
// time.
var wrongClock = generator{
	name: "wrong clock",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 2)
		s.length = 4*s.guard + 6*s.ttl
	},
	plan: func(w *world) {
		ns := w.shuffled()
		wrong, right := w.procs[0], w.procs[1]
		by := time.Duration(w.rng.Int64N(int64(w.guard))) // half of it is borne
		if w.rng.IntN(2) == 0 {
			by = 49 * time.Hour
		}
		first, second, sign := wrong, right, time.Duration(1)
		if w.rng.IntN(2) == 0 {
			first, second, sign = right, wrong, -1
		}
		wrong.off = sign * by
		if w.rng.IntN(3) == 0 { // both, in opposite directions
			by = w.guard/2 - w.skew - w.guard/time.Duration(32+w.rng.IntN(100))
			wrong.off, right.off = sign*by, -sign*by
		}
		wrong.adjust()
		right.adjust()
		right.cut(ns[2]) // so that ns[0], or ns[1], is what they have in common
		if w.rng.IntN(2) == 0 {
			right.mend(ns[2])
			wrong.cut(ns[1])
		}
		e, f := first.parts[0], second.parts[0]
		w.then(w.delay, func() { e.acquire(false) })
		w.once(holds(e), w.ttl/2, w.around(w.nodeTimeout), func() { e.release() })
		pause := w.guard
		if w.rng.IntN(2) == 0 { // the fence is forgotten
			pause = w.ttl + w.retention
		} else {
			w.then(w.around(w.delay), func() {
				w.wipe(ns[0], false)
				if w.rng.IntN(2) == 0 {
					second.cut(ns[1])
				}
			})
			w.then(w.delay, func() { right.parts[0].acquire(true) }) // the node begins to count
		}
		w.then(pause+w.around(w.nodeTimeout), func() { f.acquire(false) })
		w.once(holds(f), w.ttl, w.around(w.nodeTimeout), func() { f.release() })
	},
}

// polling: processes try over and over while they reach nothing, and then ask
// for what is free.
var polling = generator{
	name: "polling",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 2)
		s.clean, s.ttl, s.nodeTimeout = true, time.Second, 100*time.Millisecond
		s.skew = s.ttl / 2
		s.guard = 2*s.ttl + 2*s.skew
		s.tail, s.drift = 0, 0
		s.length = 4 * s.ttl
	},
	plan: func(w *world) {
		for _, p := range w.procs {
			for range w.guard.Microseconds() / 2 * 19 / 20 / (protocol.Residues / 2) {
				p.propose()
			}
			w.then(w.around(w.delay), func() { p.parts[0].acquire(false) })
		}
		w.then(w.around(w.hold), func() {
			for _, p := range w.procs {
				p.parts[0].loop()
				p.parts[0].release()
			}
		})
	},
}

// poisoned: the clock of one node is a year ahead, and a client whose clock is
// so, too, has been there. Another node is too slow for a moment.
var poisoned = generator{
	name: "poisoned",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 2)
		s.length = 4 * s.ttl
	},
	plan: func(w *world) {
		const year = 365 * 24 * time.Hour
		ns := w.shuffled()
		wrong, right := w.procs[0], w.procs[1]
		bad := ns[0]
		bad.clock.offset += int64(year)
		bad.wrong = year
		wrong.off = year
		wrong.adjust()
		f := right.parts[0]
		w.then(w.delay, func() { wrong.parts[0].acquire(true) })
		w.then(2*w.nodeTimeout, func() {
			right.to(ns[1]).cut(requests)
			f.acquire(false)
		})
		w.then(w.nodeTimeout+w.around(4*w.delay), func() { right.mend(ns[1]) })
		w.then(w.ttl*3/4, func() {
			if !w.draining && f.att != nil && !f.att.valid() {
				w.fail("stuck", "%v is not served though two nodes are well", f.att)
			}
		})
		w.then(w.delay, f.release)
	},
}

// forged: a record of the far future takes the place of what one node has, and
// at times another node forgets. Runs and reads go on.
var forged = forging("forged", func(w *world, _ *node) protocol.Ticket {
	return protocol.MaxTicket - 1 - protocol.Ticket(w.rng.IntN(1000))
})

// recordOfTheFuture: as forged, but the record is hours ahead.
var recordOfTheFuture = forging("recordOfTheFuture", func(w *world, n *node) protocol.Ticket {
	ahead := w.guard/2 + w.skew + time.Hour + time.Duration(w.rng.Int64N(int64(46*time.Hour)))
	return protocol.Ticket(n.millis(w.now)*1000 + ahead.Microseconds())
})

func forging(name string, ticket func(w *world, n *node) protocol.Ticket) generator {
	return generator{
		name: name,
		set: func(r *rand.Rand, s *setting) {
			plain(r, s, 3)
			s.nodes = 1 + 2*r.IntN(2)
			s.capacity, s.weights, s.record = 1, []uint64{1}, true
			s.hold, s.think = s.ttl/10, s.ttl/10
			s.length = 2*s.guard + 6*s.ttl
		},
		plan: func(w *world) {
			ns := w.shuffled()
			bad := ns[0]
			e := w.procs[0].parts[0]
			w.then(w.delay, func() { e.acquire(false) })
			w.once(func() bool { return len(w.ledger.puts) > 0 }, w.ttl, w.around(w.delay), func() {
				v := protocol.Version{Ticket: ticket(w, bad), ID: w.newID(), Seq: 1}
				stored := protocol.Stored{Version: v, Value: []byte("forged")}
				if w.rng.IntN(4) == 0 {
					stored = bad.model.Recorded() // and a promise is forged
				}
				w.log("node %d: a record is forged", bad.idx)
				bad.model.Forge(stored, v)
			})
			well := len(ns) > 1 && w.rng.IntN(2) == 0
			if len(ns) > 1 && !well && w.rng.IntN(2) == 0 {
				w.then(w.around(w.delay), func() { w.wipe(ns[1], false) })
			}
			w.then(w.around(w.nodeTimeout), func() { w.expectRead(w.procs[1], well) })
			// Two runs at a time, so that their claims are settled at some of
			// the nodes only.
			for range 2 {
				w.then(w.around(w.ttl), func() {
					w.expectRuns(well, w.procs[1].parts[0], w.procs[2].parts[0])
				})
			}
			w.then(w.around(w.ttl), func() {
				e.acquire(false)
				w.expectRead(w.procs[1], well)
			})
		},
	}
}
