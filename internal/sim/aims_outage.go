package sim

import (
	"math/rand/v2"
	"slices"

	"github.com/quorate/quorate/internal/nodeset"
)

// The aims in which a node, or a client, is away while nodes are exchanged. One
// process holds all the while, and another one waits.

func outageSet(r *rand.Rand, s *setting) {
	plain(r, s, 3)
	s.members, s.nodes = 3, 5
	s.tail, s.shortHold, s.eager = 0, false, true
	s.length = 8*s.guard + 6*s.ttl
	s.hold = 2 * s.length
}

// outage is a set ABC, with D and E that may be added.
type outage struct {
	w        *world
	old      []*node // in a random order
	next     []*node
	e, f     *participant // the holder, and the waiter
	operator *proc
	waits    *attempt // f's
}

// newOutage has e hold and f wait.
func newOutage(w *world) *outage {
	o := &outage{w: w, old: slices.Clone(w.nodes[:3]), next: w.nodes[3:], e: w.procs[0].parts[0], f: w.procs[1].parts[0], operator: w.procs[2]}
	w.rng.Shuffle(3, func(i, j int) { o.old[i], o.old[j] = o.old[j], o.old[i] })
	w.assemble(true)
	w.then(w.nodeTimeout, func() { o.e.acquire(false) })
	w.once(holds(o.e), w.ttl, w.around(w.nodeTimeout), func() { o.f.acquire(false) })
	w.then(w.nodeTimeout, func() { o.waits = o.f.att })
	return o
}

// stays says that the holder, and the waiter, are as they were.
func (o *outage) stays() {
	switch {
	case !holds(o.e)():
		o.w.fail("lost", "the hold ends as nodes are exchanged")
	case o.f.att != o.waits:
		o.w.fail("place", "a waiter starts again as nodes are exchanged")
	}
}

// ends waits until the exchange is over, with the nodes that are to be the set
// then, if that is known.
func (o *outage) ends(set func() []*node) {
	over := func() bool { return o.w.exchanging != nil && !o.w.exchanging.goesOn() }
	o.w.once(over, 6*o.w.guard, o.w.ttl+o.w.ttl/2, func() {
		c := o.operator.members.Config()
		if !over() || c.Stage != nodeset.Stable {
			o.w.fail("stuck", "the exchange is not over: %v", c)
		}
		if want := set(); want != nil {
			fits := len(c.Members) == len(want)
			for _, n := range want {
				fits = fits && c.Place(n.address()) >= 0
			}
			if !fits {
				o.w.fail("set", "the set is %v", c.Addrs())
			}
		}
		o.stays()
	})
}

// exchangeGivenUp: D is added, or replaces C, and crashes for good: before,
// while it learns, or while both sets count. The operator gives the change up,
// unless the new set came to count before D had been silent for long enough.
var exchangeGivenUp = generator{
	name: "exchange given up",
	set:  outageSet,
	plan: func(w *world) {
		o := newOutage(w)
		remove, crashes := o.old[:w.rng.IntN(2)], w.rng.IntN(3)
		w.then(w.around(w.ttl), func() {
			if crashes == 0 {
				o.next[0].crash()
			}
			o.operator.exchange(w.change(o.next[:1], remove))
		})
		if crashes > 0 {
			w.once(o.operator.at(uint64(1+crashes)), 2*w.guard, w.around(w.nodeTimeout), o.next[0].crash)
		}
		o.ends(func() []*node {
			if crashes > 0 { // D may have learnt, and have voted, before
				return nil
			}
			return o.old
		})
	},
}

// exchangeDead: a member is dead for good. It is removed, or replaced.
var exchangeDead = generator{
	name: "exchange dead",
	set:  outageSet,
	plan: func(w *world) {
		o := newOutage(w)
		add := o.next[:w.rng.IntN(2)]
		w.then(w.around(w.ttl), o.old[0].crash)
		w.then(w.around(2*w.ttl), func() { o.operator.exchange(w.change(add, o.old[:1])) })
		o.ends(func() []*node { return append(slices.Clone(o.old[1:]), add...) })
		w.then(w.around(w.ttl), func() { o.e.release() })
		w.once(holds(o.f), w.ttl, 0, func() {
			if !holds(o.f)() {
				w.fail("stuck", "the waiter does not hold after the exchange")
			}
		})
	},
}

// exchangeAsleep: a holder stops, or sleeps with its clock, while ABC becomes
// BCD and then CDE, or DE. A and B may lose their data. It goes on when another
// claim holds. It may hold again later.
var exchangeAsleep = generator{
	name: "exchange asleep",
	set: func(r *rand.Rand, s *setting) {
		outageSet(r, s)
		s.length = 10*s.guard + 8*s.ttl
		s.hold = 2 * s.length
	},
	plan: func(w *world) {
		o := newOutage(w)
		p, left := o.e.proc, o.old[1:2+w.rng.IntN(2)]
		w.then(w.around(w.nodeTimeout), func() {
			if w.rng.IntN(2) == 0 {
				p.sleep(20*w.guard, w.rng.IntN(2) == 0)
			} else {
				p.pause()
			}
			o.operator.exchange(w.change(o.next[:1], o.old[:1]), w.change(o.next[1:], left))
		})
		w.once(o.operator.at(7), 7*w.guard, w.around(w.ttl), func() {
			if !o.operator.at(7)() {
				w.fail("stuck", "the exchanges are not over: %v", o.operator.members.Config())
			}
			for _, n := range o.old[:2] {
				if w.rng.IntN(2) == 0 {
					w.wipe(n, false)
				}
			}
		})
		w.once(holds(o.f), w.guard, w.around(w.nodeTimeout), func() {
			if !holds(o.f)() {
				w.fail("stuck", "the waiter does not hold after the exchanges")
			}
			p.resume()
		})
		w.then(w.ttl, func() { o.f.release() })
		w.then(w.ttl, func() {
			if o.e.att == nil && p.members.Config().Stamp.Epoch() == 7 {
				o.e.acquire(false)
			}
		})
		w.then(w.ttl, func() {})
	},
}

// exchangeSpares: ABC becomes ADE, and the operator stops while both sets
// count. An onlooker finds again and again whether one more node may be
// restarted, and one is stopped then. The hold is not lost.
var exchangeSpares = generator{
	name: "exchange spares",
	set:  outageSet,
	plan: func(w *world) {
		o := newOutage(w)
		onlooker, may := o.f.proc, false
		w.then(w.around(w.ttl), func() { o.operator.exchange(w.change(o.next, o.old[1:])) })
		w.once(o.operator.at(3), 3*w.guard, w.ttl, o.operator.pause)
		var look func()
		look = func() {
			onlooker.survey(func(ok bool) {
				if may = ok; !ok {
					onlooker.later(w.nodeTimeout, look)
				}
			})
		}
		for range 3 {
			w.then(w.nodeTimeout, func() {
				may = false
				look()
			})
			w.once(func() bool { return may }, w.ttl, w.around(w.nodeTimeout), func() {
				up := slices.DeleteFunc(w.shuffled(), func(n *node) bool { return n.down })
				if may {
					up[0].crash()
				}
			})
			w.then(2*w.ttl, func() {
				if !holds(o.e)() {
					w.fail("lost", "the hold ends as nodes are stopped of which one was to spare")
				}
			})
		}
	},
}
