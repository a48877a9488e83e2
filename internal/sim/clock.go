package sim

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/trial"
	"github.com/quorate/quorate/internal/sim/world"
)

// wrongClock: the wall clocks of processes are wrong, by anything up to days.
// One has the lock with a ticket of the future and then another one, or one
// with a true ticket and then another one of the past. Between them nodes lose
// their data, or forget the fence because nothing happened for the retention
// time.
var wrongClock = generator{
	name: "wrong clock",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 2)
		s.Length = 4*s.Guard + 6*s.TTL
	},
	plan: func(w *trial.Schedule) {
		ns := w.Shuffled()
		wrong, right := w.Procs[0], w.Procs[1]
		by := time.Duration(w.RNG.Int64N(int64(w.Guard))) // half of it is borne
		if w.RNG.IntN(2) == 0 {
			by = 49 * time.Hour
		}
		first, second, sign := wrong, right, time.Duration(1)
		if w.RNG.IntN(2) == 0 {
			first, second, sign = right, wrong, -1
		}
		wrong.Off = sign * by
		if w.RNG.IntN(3) == 0 { // both, in opposite directions
			by = w.Guard/2 - w.Skew - w.Guard/time.Duration(32+w.RNG.IntN(100))
			wrong.Off, right.Off = sign*by, -sign*by
		}
		wrong.Adjust()
		right.Adjust()
		right.Cut(ns[2]) // so that ns[0], or ns[1], is what they have in common
		if w.RNG.IntN(2) == 0 {
			right.Mend(ns[2])
			wrong.Cut(ns[1])
		}
		e, f := first.Parts[0], second.Parts[0]
		w.Then(w.Delay, func() { e.Acquire(false) })
		w.Once(world.Holds(e), w.TTL/2, w.Around(w.NodeTimeout), func() { e.Release() })
		pause := w.Guard
		if w.RNG.IntN(2) == 0 { // the fence is forgotten
			pause = w.TTL + w.Retention
		} else {
			w.Then(w.Around(w.Delay), func() {
				w.Faults.Wipe(ns[0], false)
				if w.RNG.IntN(2) == 0 {
					second.Cut(ns[1])
				}
			})
			w.Then(w.Delay, func() { right.Parts[0].Acquire(true) }) // the node begins to count
		}
		w.Then(pause+w.Around(w.NodeTimeout), func() { f.Acquire(false) })
		w.Once(world.Holds(f), w.TTL, w.Around(w.NodeTimeout), func() { f.Release() })
	},
}

// polling: processes try over and over while they reach nothing, and then ask
// for what is free.
var polling = generator{
	name: "polling",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 2)
		s.Clean, s.TTL, s.NodeTimeout = true, time.Second, 100*time.Millisecond
		s.Skew = s.TTL / 2
		s.Guard = 2*s.TTL + 2*s.Skew
		s.Tail, s.Drift = 0, 0
		s.Length = 4 * s.TTL
	},
	plan: func(w *trial.Schedule) {
		for _, p := range w.Procs {
			for range w.Guard.Microseconds() / 2 * 19 / 20 / (protocol.Residues / 2) {
				p.Propose()
			}
			w.Then(w.Around(w.Delay), func() { p.Parts[0].Acquire(false) })
		}
		w.Then(w.Around(w.Hold), func() {
			for _, p := range w.Procs {
				p.Parts[0].Loop()
				p.Parts[0].Release()
			}
		})
	},
}

// forged: a record of the far future takes the place of what one node has, and
// at times another node forgets. Runs and reads go on.
var forged = forging("forged", func(w *trial.Schedule, _ *world.Node) protocol.Ticket {
	return protocol.MaxTicket - 1 - protocol.Ticket(w.RNG.IntN(1000))
})

// recordOfTheFuture: as forged, but the record is hours ahead.
var recordOfTheFuture = forging("recordOfTheFuture", func(w *trial.Schedule, n *world.Node) protocol.Ticket {
	ahead := w.Guard/2 + w.Skew + time.Hour + time.Duration(w.RNG.Int64N(int64(46*time.Hour)))
	return protocol.Ticket(n.Millis()*1000 + ahead.Microseconds())
})

func forging(name string, ticket func(w *trial.Schedule, n *world.Node) protocol.Ticket) generator {
	return generator{
		name: name,
		set: func(r *rand.Rand, s *course.Setting) {
			plain(r, s, 3)
			s.Nodes = 1 + 2*r.IntN(2)
			s.Capacity, s.Weights, s.Record = 1, []uint64{1}, true
			s.Hold, s.Think = s.TTL/10, s.TTL/10
			s.Length = 2*s.Guard + 6*s.TTL
		},
		plan: func(w *trial.Schedule) {
			ns := w.Shuffled()
			bad := ns[0]
			e := w.Procs[0].Parts[0]
			w.Then(w.Delay, func() { e.Acquire(false) })
			w.Once(func() bool { return len(w.Ledger.Puts) > 0 }, w.TTL, w.Around(w.Delay), func() {
				v := protocol.Version{Ticket: ticket(w, bad), ID: w.NewID(), Seq: 1}
				stored := protocol.Stored{Version: v, Value: []byte("forged")}
				if w.RNG.IntN(4) == 0 {
					stored = bad.Data(0).Recorded() // and a promise is forged
				}
				w.Log("node %d: a record is forged", bad.Index)
				bad.Data(0).Forge(stored, v)
			})
			well := len(ns) > 1 && w.RNG.IntN(2) == 0
			if len(ns) > 1 && !well && w.RNG.IntN(2) == 0 {
				w.Then(w.Around(w.Delay), func() { w.Faults.Wipe(ns[1], false) })
			}
			w.Then(w.Around(w.NodeTimeout), func() { w.Checks.ExpectRead(w.Procs[1], well) })
			// Two runs at a time, so that their claims are settled at some of
			// the nodes only.
			for range 2 {
				w.Then(w.Around(w.TTL), func() {
					w.Checks.ExpectRuns(well, w.Procs[1].Parts[0], w.Procs[2].Parts[0])
				})
			}
			w.Then(w.Around(w.TTL), func() {
				e.Acquire(false)
				w.Checks.ExpectRead(w.Procs[1], well)
			})
		},
	}
}
