package sim

import (
	"math/rand/v2"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/nodeset"
)

// The aims in which a set gets smaller, and holders get their places at the
// nodes that stay: see lease/takeback.go.

// shrinkSet is a set of which so many nodes stay.
func shrinkSet(r *rand.Rand, s *setting) {
	outageSet(r, s)
	s.members = []int{3, 3, 5, 5}[r.IntN(4)]
	s.nodes = s.members
}

// shrinking is a set of which nodes leave: of those that stay, e has reached as
// few as it can and holds.
type shrinking struct {
	w             *world
	stay, leave   []*node
	reached, late []*node // of those that stay: by e before f, and after
	e, f          *participant
	operator      *proc
}

// shrinks has the claim of e reach a majority with as few nodes that stay as it
// can, and that of f all nodes. e reaches the others after that.
func (w *world) shrinks(stay int) *shrinking {
	all, need := w.shuffled(), w.members/2+1
	leave := w.members - stay
	few := max(0, need-leave)
	s := &shrinking{w: w, stay: all[:stay], leave: all[stay:], reached: all[:few], late: all[few:stay]}
	s.e, s.f, s.operator = w.procs[0].parts[0], w.procs[1].parts[0], w.procs[2]
	w.assemble(true)
	w.then(w.nodeTimeout, func() {
		s.e.proc.cut(s.late...)
		s.e.acquire(false)
	})
	w.once(holds(s.e), w.ttl, w.around(w.nodeTimeout), func() { s.f.acquire(false) })
	w.then(w.ttl/2, func() { s.e.proc.mend(s.late...) })
	return s
}

func (s *shrinking) remove() change.Goal { return s.w.change(nil, s.leave) }

// exchangeShrinks: three become two or one, five become three, two or one. The
// nodes that stay are a majority of the new set that does not have the holder
// at its ticket. The hold goes on, and the waiter holds when it ends.
var exchangeShrinks = generator{
	name: "exchange shrinks",
	set:  shrinkSet,
	plan: func(w *world) {
		s := w.shrinks(1 + w.rng.IntN(w.members/2+1))
		kept := func() {
			if !holds(s.e)() {
				w.fail("lost", "the hold ends as a set gets smaller")
			}
		}
		w.then(w.around(w.ttl), func() { s.operator.exchange(s.remove()) })
		w.once(s.operator.at(4), 4*w.guard, w.ttl+w.ttl/2, func() {
			if c := s.operator.members.Config(); len(c.Members) != len(s.stay) || c.Stage != nodeset.Stable {
				w.fail("stuck", "the exchange is not over: %v", c)
			}
			kept()
		})
		w.then(w.ttl+w.ttl/2, func() {
			kept()
			s.e.release()
		})
		w.once(holds(s.f), w.ttl, 0, func() {
			if !holds(s.f)() {
				w.fail("stuck", "the waiter does not hold after the exchange")
			}
		})
	},
}

// tookBack: A and B of ABCDE vote for f, as e is there at a higher ticket, and
// e holds by C, D and E. While D and E are to leave, A and B take e back. Then
// e loses C, and C votes for f. If f counts what A or B told it before, or e
// what they have just told it, both hold.
var tookBack = generator{
	name: "took back",
	set: func(r *rand.Rand, s *setting) {
		outageSet(r, s)
		s.members, s.nodes, s.procs = 5, 5, 4
		s.shortHold = true
	},
	plan: func(w *world) {
		all := w.shuffled()
		a, b, c := all[0], all[1], all[2]
		e, f, g, operator := w.procs[0].parts[0], w.procs[1].parts[0], w.procs[3].parts[0], w.procs[2]
		pushed, early := w.rng.IntN(2) == 0, w.rng.IntN(2) == 0
		w.assemble(true)
		w.then(w.nodeTimeout, func() {
			if pushed { // A and B vote for f by a push
				g.acquire(false)
			}
		})
		w.then(w.around(w.nodeTimeout), func() {
			e.proc.cut(a, b)
			e.acquire(false)
		})
		w.then(w.ttl/4, func() { f.acquire(false) })
		w.then(w.ttl/4, func() { g.release() })
		w.once(holds(e), w.ttl, w.ttl/4, func() { operator.exchange(w.change(nil, all[3:])) })
		w.once(operator.at(2), w.ttl, w.ttl/8, func() {
			if early { // f has heard last from A and B when they take e back, and e has C for as long as f has them
				e.proc.cut(c)
			}
		})
		w.then(w.ttl*45/100, func() {
			if early {
				f.proc.cut(a, b)
			}
			e.proc.mend(a, b)
		})
		w.then(w.guard, func() {
			if !early {
				e.proc.cut(c)
			}
		})
		w.once(func() bool { return holds(e)() && holds(f)() }, 2*w.ttl, 0, func() {})
	},
}
