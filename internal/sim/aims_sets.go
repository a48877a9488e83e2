package sim

import (
	"math/rand/v2"
	"slices"

	"github.com/quorate/quorate/internal/change"
)

// The aims in which a node or an operator leads clients astray, or they start
// when their set is being changed. Beside all other checks, no process counts
// on a configuration that was not decided: so it dials no address that a
// majority has not named.

// liar: one node shows what it likes, and serves every request: that it alone
// is the set now, that the others have other addresses, or the first
// configuration for good. Clients start, and nodes
// are exchanged, meanwhile. All are served by the others.
var liar = generator{
	name: "liar",
	set: func(r *rand.Rand, s *setting) {
		exchangeSet(r, s)
		s.members, s.nodes, s.record = 3, 5, false
	},
	plan: func(w *world) {
		w.assemble(true)
		w.allLoop()
		bad := w.nodes[w.rng.IntN(3)]
		w.at(w.around(w.ttl), func() {
			if kind := w.rng.IntN(3); kind > 0 {
				bad.forges(kind == 1)
			} else {
				old := bad.model.SetText()
				bad.lie = func() string { return old }
			}
		})
		for _, p := range w.procs {
			w.at(w.around(4*w.ttl), func() {
				p.crash()
				p.restart()
			})
		}
		if w.rng.IntN(2) == 0 {
			// The node that lies is replaced. With another one of three there
			// is no majority of before that says what followed.
			add := w.nodes[3 : 4+w.rng.IntN(2)]
			w.at(w.around(2*w.ttl), func() { w.procs[0].exchange(w.change(add, []*node{bad})) })
		}
	},
}

// twofold: an address of a client leads to another member's server, which it
// reaches at that one's address, too. Another client holds by the two other
// servers.
var twofold = generator{
	name: "twofold",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 2)
		s.length = 4 * s.ttl
	},
	plan: func(w *world) {
		ns := w.shuffled()
		holder, other := w.procs[0], w.procs[1]
		e, f := holder.parts[0], other.parts[0]
		w.assemble(true)
		w.then(w.nodeTimeout, func() {
			holder.cut(ns[0])
			other.cut(ns[2])
			other.leads(ns[1], ns[0])
		})
		w.then(w.around(w.delay), func() { e.acquire(false) })
		w.once(holds(e), w.ttl, w.around(w.nodeTimeout), func() { f.acquire(false) })
		w.once(holds(f), w.ttl, w.around(w.nodeTimeout), func() {})
	},
}

// starts: a client starts while ABC becomes BCD or CDE, in any stage, with the
// list of before, the one that follows, or one node that stays. It holds when
// the change is over.
var starts = generator{
	name: "exchange starts",
	set:  outageSet,
	plan: func(w *world) {
		o := newOutage(w)
		p, leave := o.f.proc, 1+w.rng.IntN(2)
		list := [][]*node{o.old, append(slices.Clone(o.old[leave:]), o.next[:leave]...), o.old[2:]}[w.rng.IntN(3)]
		w.then(w.around(w.nodeTimeout), func() {
			o.e.release()
			o.operator.exchange(w.change(o.next[:leave], o.old[:leave]))
		})
		w.once(o.operator.at(1+w.rng.Uint64N(4)), 4*w.guard, w.around(w.nodeTimeout), func() {
			p.crash()
			p.list = list
			p.restart()
			o.f.insists()
		})
		w.served(o.f, 4*w.guard)
	},
}

// dies: an operator ends for good when a node has carried out its first, second
// or a later step. That keeps no client from its locks.
var dies = generator{
	name: "exchange dies",
	set:  outageSet,
	plan: func(w *world) {
		o := newOutage(w)
		all, steps := w.rng.IntN(2) == 0, 1+w.rng.IntN(9)
		w.then(w.around(w.nodeTimeout), func() {
			o.e.release()
			o.f.release()
			if all {
				o.operator.exchange(w.change(o.next, o.old[:2]))
			} else {
				o.operator.exchange(w.change(o.next[:1], o.old[:w.rng.IntN(2)]))
			}
			w.stepped = func() {
				if steps--; steps == 0 {
					w.at(0, func() {
						w.exchanging.goals = nil
						o.operator.crash()
					})
				}
			}
		})
		w.once(func() bool { return steps <= 0 }, 4*w.guard, w.around(w.nodeTimeout), func() { o.e.acquire(false) })
		w.served(o.e, w.ttl)
		w.then(w.around(w.ttl), o.e.release)
		w.then(w.around(w.nodeTimeout), func() { // one that starts knows the first configuration, at most
			o.f.proc.crash()
			o.f.proc.restart()
			o.f.acquire(false)
		})
		w.served(o.f, 2*w.ttl+w.guard)
	},
}

// returns: changes follow each other without a pause, and bring servers back:
// 3 -> 1 -> 3, 3 -> 5 -> 3, or a server changes its address. The hold goes on,
// and the waiter keeps its place.
var returns = generator{
	name: "exchange returns",
	set: func(r *rand.Rand, s *setting) {
		outageSet(r, s)
		s.length = 20*s.guard + 6*s.ttl
		s.hold = 2 * s.length
	},
	plan: func(w *world) {
		o := newOutage(w)
		some := o.old[:2]
		x := func() []change.Goal {
			switch w.rng.IntN(3) {
			case 0:
				return []change.Goal{w.change(nil, some), w.change(some, nil)}
			case 1:
				return []change.Goal{w.change(o.next, nil), w.change(nil, o.next)}
			}
			return []change.Goal{w.moves(o.old[0]), w.change(o.next[:1], o.old[2:]), w.change(o.old[2:], o.next[:1])}
		}
		w.then(w.around(w.nodeTimeout), func() { o.operator.exchange(x()...) })
		over := func() bool { return !o.operator.w.exchanges() }
		w.once(over, 18*w.guard, w.ttl+w.ttl/2, func() {
			if !over() || len(w.latest().Members) != 3 {
				w.fail("stuck", "the exchange is not over: %v", w.latest())
			}
			o.stays()
		})
		w.then(w.around(w.ttl), o.e.release)
		w.served(o.f, w.ttl)
	},
}

// slept: a process sleeps while ABC becomes DE, and A, B and C are stopped. It
// gets the new list and holds again.
var slept = generator{
	name: "exchange slept",
	set:  outageSet,
	plan: func(w *world) {
		o := newOutage(w)
		p := o.e.proc
		w.then(w.around(w.nodeTimeout), func() {
			o.e.release()
			p.pause()
			o.operator.exchange(w.change(o.next, o.old))
		})
		w.once(o.operator.at(4), 4*w.guard, w.ttl, func() {
			for _, n := range o.old {
				n.gone = true
				n.crash()
			}
			o.f.release()
			p.resume()
			p.members.Relist(addresses(o.next))
			p.regroup()
			o.e.acquire(false)
		})
		w.served(o.e, w.guard+2*w.ttl)
	},
}

// stops: changes take away so many addresses that no majority of the set of
// before is left: ABC becomes A, or DE, or A and B change their addresses. The
// servers that have left are stopped as soon as the operator may. Clients that
// know the set of before go on.
var stops = generator{
	name: "exchange stops",
	set:  outageSet,
	plan: func(w *world) {
		o := newOutage(w)
		some := o.old[:2]
		goals := func() []change.Goal {
			switch w.rng.IntN(3) {
			case 0:
				return []change.Goal{w.change(nil, some)}
			case 1:
				return []change.Goal{w.change(o.next, o.old)}
			}
			return []change.Goal{w.moves(some[0]), w.moves(some[1])}
		}
		idle := w.rng.IntN(2) == 0
		w.then(w.around(w.nodeTimeout), func() {
			if idle {
				o.f.release()
			}
			o.operator.exchange(goals()...).over = func() {
				for _, n := range o.old {
					if w.retired(n) {
						n.gone = true
						n.crash()
					}
				}
			}
		})
		over := func() bool { return !w.exchanges() }
		w.once(over, 6*w.guard, w.ttl+w.ttl/2, func() {
			if !over() {
				w.fail("stuck", "the exchange is not over: %v", w.latest())
			}
			for _, p := range w.procs {
				if p.members.Stamp() != w.latest().Stamp {
					w.fail("stuck", "process %s waits for good: it counts on %v", p.name, p.members.Config())
				}
			}
			if idle {
				o.waits = nil
			}
			o.stays()
			o.e.release()
			if idle {
				o.f.acquire(false)
			}
		})
		w.served(o.f, w.ttl)
	},
}

// shorter: the guard time of a set becomes shorter than a holder's leases need.
// A node of the holder's loses its data, and votes when that guard time is
// over.
var shorter = generator{
	name: "exchange shorter",
	set: func(r *rand.Rand, s *setting) {
		outageSet(r, s)
		s.members, s.nodes = 3, 3
		s.skew, s.guard = 0, 2*s.ttl
	},
	plan: func(w *world) {
		ns := w.shuffled()
		e, f, operator := w.procs[0].parts[0], w.procs[1].parts[0], w.procs[2]
		w.assemble(true)
		less := w.settings()
		less.Guard = w.guard / 8
		w.then(w.nodeTimeout, func() {
			e.proc.cut(ns[2])
			e.acquire(false)
		})
		w.once(holds(e), w.ttl, w.around(w.nodeTimeout), func() { operator.exchange(change.Goal{Shared: &less}) })
		w.once(operator.at(3), 4*w.guard, w.around(w.nodeTimeout), func() {
			f.proc.cut(ns[1])
			e.proc.cut(ns[0])
			w.wipe(ns[0], false)
		})
		w.then(w.around(less.Guard), func() { f.acquire(false) })
		w.once(holds(f), w.ttl, 0, func() {})
	},
}
