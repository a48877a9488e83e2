package sim

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
)

// The aims in which the nodes of a set are exchanged.

func exchangeSet(r *rand.Rand, s *setting) {
	s.members = [...]int{1, 2, 3, 3, 3}[r.IntN(5)]
	s.nodes = s.members + 2
	s.bootstrap = true
	s.length = 6*s.guard + s.length
}

// exchangeCalm: nodes are exchanged while nothing fails.
var exchangeCalm = generator{
	name: "exchange calm",
	set: func(r *rand.Rand, s *setting) {
		exchangeSet(r, s)
		s.length += s.guard // for two changes, see exchangesEnd
	},
	plan: func(w *world) {
		w.assemble(true)
		w.allLoop()
		done := false
		w.at(w.around(w.ttl), func() {
			w.procs[0].exchange(w.changes()...).over = func() { done = true }
		})
		w.at(w.length-time.Millisecond, func() {
			if !done {
				w.fail("stuck", "the exchange is not over")
			}
		})
	},
}

// exchangeStorm: nodes are exchanged while anything fails at any time.
var exchangeStorm = generator{
	name: "exchange storm",
	set:  exchangeSet,
	plan: func(w *world) {
		w.assemble(true)
		w.allLoop()
		w.randomFaults(w.rng.IntN(12))
		for i, p := range w.procs[:1+w.rng.IntN(2)] {
			w.at(w.around(w.ttl)*time.Duration(1+3*i), func() {
				if w.draining {
					return
				}
				x := p.exchange(w.changes()...)
				if w.rng.IntN(3) == 0 {
					w.at(w.around(w.guard), x.giveUp)
				}
			})
		}
	},
}

// swapSet is for the aims that replace all nodes of a set: ABC by DEF.
func swapSet(r *rand.Rand, s *setting) {
	plain(r, s, 3)
	s.members, s.nodes = 3, 6
	s.hold = 4 * s.guard
	s.length = 4*s.guard + 6*s.ttl
}

// exchangeLeft: a holder holds by nodes that leave, and cannot be reached from
// then on. Another claim comes when all nodes count, or when only the new ones
// do.
var exchangeLeft = generator{
	name: "exchange left",
	set:  swapSet,
	plan: func(w *world) {
		old, next, holder, other, operator := w.swap()
		e, f := holder.parts[0], other.parts[0]
		held := old[:2+w.rng.IntN(2)]
		late := w.rng.IntN(2) == 0 // the nodes that leave learn late that they do
		holder.cut(next...)
		holder.cut(old[len(held):]...)
		w.once(operator.at(2), w.ttl, w.around(w.nodeTimeout), func() { e.acquire(false) })
		w.once(operator.at(3), 3*w.guard, 0, func() {
			if late {
				operator.cut(old...)
				other.cut(old...) // a client that follows moves them, too
				return
			}
			holder.cut(old...)
		})
		w.then(w.around(w.nodeTimeout), func() {
			if late {
				return
			}
			if f.acquire(false); w.rng.IntN(2) == 0 {
				other.cut(held...)
			}
		})
		w.then(w.nodeTimeout, func() {
			if late {
				w.at(w.guard+w.guard/8+2*w.skew, func() {
					operator.mend(old...)
					other.mend(old...)
					holder.cut(old...)
				})
			}
		})
		w.once(operator.at(4), 2*w.guard, 0, func() { f.acquire(false) })
		w.once(holds(f), 2*w.guard, w.around(w.nodeTimeout), func() {})
	},
}

// exchangeKept: a holder has no lease of the new nodes when these begin to
// count, or a waiter no place there. The holder goes on, and the waiter keeps
// its place.
var exchangeKept = generator{
	name: "exchange kept",
	set: func(r *rand.Rand, s *setting) {
		swapSet(r, s)
		s.tail, s.shortHold, s.eager = 0, false, true
	},
	plan: func(w *world) {
		_, next, holder, other, operator := w.swap()
		e, f := holder.parts[0], other.parts[0]
		away := []*proc{nil, holder, other}[w.rng.IntN(3)]
		if away != nil {
			away.cut(next...)
		}
		w.then(w.nodeTimeout, func() { e.acquire(false) })
		w.once(holds(e), w.ttl, w.around(w.nodeTimeout), func() {
			if away != holder { // or that claim would be there before the holder
				f.acquire(false)
			}
		})
		var a *attempt
		w.once(operator.at(2), w.ttl, w.around(w.nodeTimeout), func() { a = f.att })
		kept := func() {
			switch {
			case !holds(e)():
				w.fail("lost", "the hold ends as nodes are exchanged")
			case f.att != a:
				w.fail("place", "a waiter starts again as nodes are exchanged")
			}
		}
		w.once(operator.at(3), 3*w.guard, 0, func() {
			if away != nil {
				away.mend(next...)
			}
		})
		w.then(w.ttl/4, kept)
		w.then(w.ttl+w.ttl/2, kept)
		w.once(operator.at(4), 2*w.guard, w.ttl+w.ttl/2, kept)
	},
}

// exchangeFalls: the last claim of the set of before has a ticket far ahead of
// the clocks. The first one of the new set has one far behind, and was not
// settled when that set began to count.
var exchangeFalls = generator{
	name: "exchange falls",
	set: func(r *rand.Rand, s *setting) {
		swapSet(r, s)
		s.skew, s.guard = 0, 2*s.ttl
		s.drift, s.tail = 0, 0
		s.hold = s.ttl / 4
	},
	plan: func(w *world) {
		old, next, holder, other, operator := w.swap()
		e, f := holder.parts[0], other.parts[0]
		holder.cut(next...)
		holder.off, other.off = w.guard/2-w.ttl/16, -(w.guard/2 - w.ttl/16)
		holder.adjust()
		other.adjust()
		w.once(operator.at(2), w.ttl, w.guard-w.ttl/8, func() { e.acquire(false) })
		w.once(operator.at(3), 3*w.guard, 0, func() {
			e.release()
			holder.cut(old...)
		})
		w.then(w.nodeTimeout, func() {
			for _, l := range other.links { // it learns what counts now
				l.snap()
			}
		})
		w.then(w.guard-w.ttl/2, func() {
			other.cut(old...)
			f.acquire(false)
		})
		w.once(operator.at(4), 2*w.guard, w.nodeTimeout/4, func() { other.mend(old...) }) // they say what counts now
		w.once(holds(f), 2*w.guard, w.around(w.nodeTimeout), func() {})
	},
}

// exchangeRecords: what is recorded by the nodes that leave, just before the
// others count, is found later.
var exchangeRecords = generator{
	name: "exchange records",
	set: func(r *rand.Rand, s *setting) {
		swapSet(r, s)
		s.capacity, s.weights, s.record = 1, []uint64{1}, true
		s.hold, s.think = s.ttl/20, 20*s.guard
	},
	plan: func(w *world) {
		old, next, holder, other, operator := w.swap()
		e := holder.parts[0]
		w.once(operator.at(2), w.ttl, w.guard/2, func() {
			operator.cut(old[:2]...)
			for _, l := range other.links { // it learns what counts, and brings the new nodes what they lack
				l.snap()
			}
			holder.cut(next...)
		})
		w.then(w.guard+w.ttl/2, func() { e.acquire(false) })
		w.once(func() bool { return len(w.ledger.puts) > 0 }, w.ttl, 0, func() { operator.mend(old[:2]...) })
		w.once(operator.at(3), 3*w.guard, 0, func() {
			holder.cut(old...)
			for _, n := range next { // a client that has the turn to repair them hangs
				n.turnEnds = n.millis(w.now.add(w.guard + w.guard/2))
			}
		})
		w.once(operator.at(4), 3*w.guard, 0, func() {
			for _, l := range other.links {
				l.snap()
			}
		})
		w.then(w.ttl/2, func() {
			other.startRegisterOp(nil, lease.RegisterOp{Op: protocol.OpRead}, func(*registerOp, bool) {})
		})
		w.then(w.ttl, func() {})
	},
}

// exchangeAgain: an exchange is given up, and the next one is finished. A
// process that sleeps meanwhile has told the nodes of the set in between, and
// that comes late.
var exchangeAgain = generator{
	name: "exchange again",
	set: func(r *rand.Rand, s *setting) {
		swapSet(r, s)
		s.length = 7*s.guard + 6*s.ttl
	},
	plan: func(w *world) {
		old, next, holder, other, operator := w.swap()
		e, f := holder.parts[0], other.parts[0]
		var between *nodeset.Configuration
		w.once(operator.at(2), w.ttl, 0, func() { w.exchanging.giveUp() })
		w.once(operator.at(3), w.guard, 0, func() { between = operator.members.Config() })
		w.once(holder.at(3), w.ttl, w.around(w.nodeTimeout), func() {
			holder.cut(w.nodes...)
			operator.exchange(w.change(next, old))
		})
		w.once(operator.at(6), 6*w.guard, w.around(w.nodeTimeout), func() {
			f.acquire(false)
		})
		w.once(holds(f), w.ttl, w.around(w.nodeTimeout), func() {
			for _, n := range old {
				n.step(nodeset.RecordStep{Kind: nodeset.SetMove, Identity: between.Members[between.Place(n.address())].Identity, Config: between})
			}
			holder.mend(old...)
		})
		w.then(w.nodeTimeout, func() { e.acquire(false) })
		w.once(holds(e), w.ttl, w.around(w.nodeTimeout), func() {})
	},
}
