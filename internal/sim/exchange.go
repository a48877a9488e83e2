package sim

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/trial"
	"github.com/quorate/quorate/internal/sim/world"
)

// The aims in which the nodes of a set are exchanged.

func exchangeSet(r *rand.Rand, s *course.Setting) {
	s.Members = [...]int{1, 2, 3, 3, 3}[r.IntN(5)]
	s.Nodes = s.Members + 2
	s.Bootstrap = true
	s.Length = 6*s.Guard + s.Length
}

// exchangeCalm: nodes are exchanged while nothing fails.
var exchangeCalm = generator{
	name: "exchange calm",
	set: func(r *rand.Rand, s *course.Setting) {
		exchangeSet(r, s)
		s.Length += s.Guard // for two changes; see exchangesEnd
	},
	plan: func(w *trial.Schedule) {
		w.Decisions.Assemble(true)
		w.AllLoop()
		done := false
		w.At(w.Around(w.TTL), func() {
			w.Procs[0].Exchange(w.Operators.Changes()...).Over = func() { done = true }
		})
		w.At(w.Length-time.Millisecond, func() {
			if !done {
				w.Fail("stuck", "the exchange is not over")
			}
		})
	},
}

// exchangeStorm: nodes are exchanged while anything fails at any time.
var exchangeStorm = generator{
	name: "exchange storm",
	set:  exchangeSet,
	plan: func(w *trial.Schedule) {
		w.Decisions.Assemble(true)
		w.AllLoop()
		w.Faults.RandomFaults(w.RNG.IntN(12))
		for i, p := range w.Procs[:1+w.RNG.IntN(2)] {
			w.At(w.Around(w.TTL)*time.Duration(1+3*i), func() {
				if w.Draining {
					return
				}
				x := p.Exchange(w.Operators.Changes()...)
				if w.RNG.IntN(3) == 0 {
					w.At(w.Around(w.Guard), x.GiveUp)
				}
			})
		}
	},
}

// swapSet is for the aims that replace all nodes of a set: ABC by DEF.
func swapSet(r *rand.Rand, s *course.Setting) {
	plain(r, s, 3)
	s.Members, s.Nodes = 3, 6
	s.Hold = 4 * s.Guard
	s.Length = 4*s.Guard + 6*s.TTL
}

// exchangeFalls: the last claim of the old set has a ticket far ahead of the
// clocks. The first one of the new set has one far behind, and was not settled
// when that set began to count.
var exchangeFalls = generator{
	name: "exchange falls",
	set: func(r *rand.Rand, s *course.Setting) {
		swapSet(r, s)
		s.Skew, s.Guard = 0, 2*s.TTL
		s.Drift, s.Tail = 0, 0
		s.Hold = s.TTL / 4
	},
	plan: func(w *trial.Schedule) {
		old, next, holder, other, operator := w.Operators.Swap()
		e, f := holder.Parts[0], other.Parts[0]
		holder.Cut(next...)
		holder.Off, other.Off = w.Guard/2-w.TTL/16, -(w.Guard/2 - w.TTL/16)
		holder.Adjust()
		other.Adjust()
		w.Once(operator.Follower.At(2), w.TTL, w.Guard-w.TTL/8, func() { e.Acquire(false) })
		w.Once(operator.Follower.At(3), 3*w.Guard, 0, func() {
			e.Release()
			holder.Cut(old...)
		})
		w.Then(w.NodeTimeout, func() {
			for _, l := range other.Links { // it learns what counts now
				l.Snap()
			}
		})
		w.Then(w.Guard-w.TTL/2, func() {
			other.Cut(old...)
			f.Acquire(false)
		})
		// They say what counts now.
		w.Once(operator.Follower.At(4), 2*w.Guard, w.NodeTimeout/4, func() { other.Mend(old...) })
		w.Once(world.Holds(f), 2*w.Guard, w.Around(w.NodeTimeout), func() {})
	},
}

// exchangeRecords: what is recorded by the nodes that leave, just before the
// others count, is found later.
var exchangeRecords = generator{
	name: "exchange records",
	set: func(r *rand.Rand, s *course.Setting) {
		swapSet(r, s)
		s.Capacity, s.Weights, s.Record = 1, []uint64{1}, true
		s.Hold, s.Think = s.TTL/20, 20*s.Guard
	},
	plan: func(w *trial.Schedule) {
		old, next, holder, other, operator := w.Operators.Swap()
		e := holder.Parts[0]
		w.Once(operator.Follower.At(2), w.TTL, w.Guard/2, func() {
			operator.Cut(old[:2]...)
			for _, l := range other.Links { // it learns what counts, and brings the new nodes what they lack
				l.Snap()
			}
			holder.Cut(next...)
		})
		w.Then(w.Guard+w.TTL/2, func() { e.Acquire(false) })
		w.Once(func() bool { return len(w.Ledger.Puts) > 0 }, w.TTL, 0, func() { operator.Mend(old[:2]...) })
		w.Once(operator.Follower.At(3), 3*w.Guard, 0, func() {
			holder.Cut(old...)
			for _, n := range next { // a client that has the turn to repair them hangs
				n.TurnEnds = n.Clock.Millis(w.Now.Add(w.Guard + w.Guard/2))
			}
		})
		w.Once(operator.Follower.At(4), 3*w.Guard, 0, func() {
			for _, l := range other.Links {
				l.Snap()
			}
		})
		w.Then(w.TTL/2, func() {
			other.RegisterOps.Start(nil, lease.RegisterOp{Op: protocol.OpRead}, func(*world.RegisterOp, bool) {})
		})
		w.Then(w.TTL, func() {})
	},
}

// exchangeAgain: an exchange is given up, and the next one is finished. A
// process that sleeps meanwhile has told the nodes of the set in between, and
// that comes late.
var exchangeAgain = generator{
	name: "exchange again",
	set: func(r *rand.Rand, s *course.Setting) {
		swapSet(r, s)
		s.Length = 7*s.Guard + 6*s.TTL
	},
	plan: func(w *trial.Schedule) {
		old, next, holder, other, operator := w.Operators.Swap()
		e, f := holder.Parts[0], other.Parts[0]
		var between *nodeset.Configuration
		w.Once(operator.Follower.At(2), w.TTL, 0, func() { w.Exchanging.GiveUp() })
		w.Once(operator.Follower.At(3), w.Guard, 0, func() { between = operator.Follower.Members.Config() })
		w.Once(holder.Follower.At(3), w.TTL, w.Around(w.NodeTimeout), func() {
			holder.Cut(w.Nodes...)
			operator.Exchange(w.Operators.Change(next, old))
		})
		w.Once(operator.Follower.At(6), 6*w.Guard, w.Around(w.NodeTimeout), func() {
			f.Acquire(false)
		})
		w.Once(world.Holds(f), w.TTL, w.Around(w.NodeTimeout), func() {
			for _, n := range old {
				n.Step(nodeset.RecordStep{Kind: nodeset.SetMove,
					Identity: between.Members[between.Place(n.Address())].Identity, Config: between})
			}
			holder.Mend(old...)
		})
		w.Then(w.NodeTimeout, func() { e.Acquire(false) })
		w.Once(world.Holds(e), w.TTL, w.Around(w.NodeTimeout), func() {})
	},
}
