package sim

import (
	"math/rand/v2"
	"slices"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/trial"
	"github.com/quorate/quorate/internal/sim/world"
)

// The aims in which a node, or a client, is away while nodes are exchanged. One
// process holds all the while, and another one waits.

func outageSet(r *rand.Rand, s *course.Setting) {
	plain(r, s, 3)
	s.Members, s.Nodes = 3, 5
	s.Tail, s.ShortHold, s.Eager = 0, false, true
	s.Length = 8*s.Guard + 6*s.TTL
	s.Hold = 2 * s.Length
}

// outage is a set ABC, with D and E that may be added.
type outage struct {
	w        *trial.Schedule
	old      []*world.Node // in a random order
	next     []*world.Node
	e, f     *world.Participant // the holder, and the waiter
	operator *world.Proc
	waits    *world.Attempt // f's
}

// newOutage has e hold and f wait.
func newOutage(w *trial.Schedule) *outage {
	o := &outage{w: w, old: slices.Clone(w.Nodes[:3]), next: w.Nodes[3:], e: w.Procs[0].Parts[0],
		f: w.Procs[1].Parts[0], operator: w.Procs[2]}
	w.RNG.Shuffle(3, func(i, j int) { o.old[i], o.old[j] = o.old[j], o.old[i] })
	w.Decisions.Assemble(true)
	w.Then(w.NodeTimeout, func() { o.e.Acquire(false) })
	w.Once(world.Holds(o.e), w.TTL, w.Around(w.NodeTimeout), func() { o.f.Acquire(false) })
	w.Then(w.NodeTimeout, func() { o.waits = o.f.Att })
	return o
}

// stays says that the holder, and the waiter, are as they were.
func (o *outage) stays() {
	switch {
	case !world.Holds(o.e)():
		o.w.Fail("lost", "the hold ends as nodes are exchanged")
	case o.f.Att != o.waits:
		o.w.Fail("place", "a waiter starts again as nodes are exchanged")
	}
}

// ends waits until the exchange is over, with the nodes that are to be the set
// then, if that is known.
func (o *outage) ends(set func() []*world.Node) {
	over := func() bool { return o.w.Exchanging != nil && !o.w.Exchanging.GoesOn() }
	o.w.Once(over, 6*o.w.Guard, o.w.TTL+o.w.TTL/2, func() {
		c := o.operator.Follower.Members.Config()
		if !over() || c.Stage != nodeset.Stable {
			o.w.Fail("stuck", "the exchange is not over: %v", c)
		}
		if want := set(); want != nil {
			fits := len(c.Members) == len(want)
			for _, n := range want {
				fits = fits && c.Place(n.Address()) >= 0
			}
			if !fits {
				o.w.Fail("set", "the set is %v", c.Addrs())
			}
		}
		o.stays()
	})
}

// exchangeGivenUp: D is added, or replaces C, and crashes permanently: before,
// while it learns, or while both sets count. The operator gives the change up,
// unless the new set came to count before D had been silent for long enough.
var exchangeGivenUp = generator{
	name: "exchange given up",
	set:  outageSet,
	plan: func(w *trial.Schedule) {
		o := newOutage(w)
		remove, crashes := o.old[:w.RNG.IntN(2)], w.RNG.IntN(3)
		w.Then(w.Around(w.TTL), func() {
			if crashes == 0 {
				o.next[0].Crash()
			}
			o.operator.Exchange(w.Operators.Change(o.next[:1], remove))
		})
		if crashes > 0 {
			w.Once(o.operator.Follower.At(uint64(1+crashes)), 2*w.Guard, w.Around(w.NodeTimeout), o.next[0].Crash)
		}
		o.ends(func() []*world.Node {
			if crashes > 0 { // D may have learnt, and have voted, before
				return nil
			}
			return o.old
		})
	},
}

// exchangeDead: a member is permanently dead. It is removed, or replaced.
var exchangeDead = generator{
	name: "exchange dead",
	set:  outageSet,
	plan: func(w *trial.Schedule) {
		o := newOutage(w)
		add := o.next[:w.RNG.IntN(2)]
		w.Then(w.Around(w.TTL), o.old[0].Crash)
		w.Then(w.Around(2*w.TTL), func() { o.operator.Exchange(w.Operators.Change(add, o.old[:1])) })
		o.ends(func() []*world.Node { return append(slices.Clone(o.old[1:]), add...) })
		w.Then(w.Around(w.TTL), func() { o.e.Release() })
		w.Once(world.Holds(o.f), w.TTL, 0, func() {
			if !world.Holds(o.f)() {
				w.Fail("stuck", "the waiter does not hold after the exchange")
			}
		})
	},
}

// exchangeAsleep: a holder stops, or sleeps with its clock, while ABC becomes
// BCD and then CDE, or DE. A and B may lose their data. It goes on when another
// claim holds. It may hold again later.
var exchangeAsleep = generator{
	name: "exchange asleep",
	set: func(r *rand.Rand, s *course.Setting) {
		outageSet(r, s)
		s.Length = 10*s.Guard + 8*s.TTL
		s.Hold = 2 * s.Length
	},
	plan: func(w *trial.Schedule) {
		o := newOutage(w)
		p, left := o.e.Proc, o.old[1:2+w.RNG.IntN(2)]
		w.Then(w.Around(w.NodeTimeout), func() {
			if w.RNG.IntN(2) == 0 {
				p.Sleep(20*w.Guard, w.RNG.IntN(2) == 0)
			} else {
				p.Pause()
			}
			o.operator.Exchange(w.Operators.Change(o.next[:1], o.old[:1]), w.Operators.Change(o.next[1:], left))
		})
		w.Once(o.operator.Follower.At(7), 7*w.Guard, w.Around(w.TTL), func() {
			if !o.operator.Follower.At(7)() {
				w.Fail("stuck", "the exchanges are not over: %v", o.operator.Follower.Members.Config())
			}
			for _, n := range o.old[:2] {
				if w.RNG.IntN(2) == 0 {
					w.Faults.Wipe(n, false)
				}
			}
		})
		w.Once(world.Holds(o.f), w.Guard, w.Around(w.NodeTimeout), func() {
			if !world.Holds(o.f)() {
				w.Fail("stuck", "the waiter does not hold after the exchanges")
			}
			p.Resume()
		})
		w.Then(w.TTL, func() { o.f.Release() })
		w.Then(w.TTL, func() {
			if o.e.Att == nil && p.Follower.Members.Config().Stamp.Epoch() == 7 {
				o.e.Acquire(false)
			}
		})
		w.Then(w.TTL, func() {})
	},
}

// exchangeSpares: ABC becomes ADE, and the operator stops while both sets
// count. An onlooker finds again and again whether one more node may be
// restarted, and one is stopped then. The hold is not lost.
var exchangeSpares = generator{
	name: "exchange spares",
	set:  outageSet,
	plan: func(w *trial.Schedule) {
		o := newOutage(w)
		onlooker, may := o.f.Proc, false
		w.Then(w.Around(w.TTL), func() { o.operator.Exchange(w.Operators.Change(o.next, o.old[1:])) })
		w.Once(o.operator.Follower.At(3), 3*w.Guard, w.TTL, o.operator.Pause)
		for range 3 {
			w.Then(w.NodeTimeout, func() {
				may = false
				onlooker.Mender.UntilSpare(w.NodeTimeout, func() { may = true })
			})
			w.Once(func() bool { return may }, w.TTL, w.Around(w.NodeTimeout), func() {
				up := slices.DeleteFunc(w.Shuffled(), func(n *world.Node) bool { return n.Down })
				if may {
					up[0].Crash()
				}
			})
			w.Then(2*w.TTL, func() {
				if !world.Holds(o.e)() {
					w.Fail("lost", "the hold ends as nodes are stopped of which one was to spare")
				}
			})
		}
	},
}
