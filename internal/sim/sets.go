package sim

import (
	"math/rand/v2"
	"slices"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/trial"
	"github.com/quorate/quorate/internal/sim/world"
)

// The aims in which a node or an operator leads clients astray, or they start
// when their set is being changed. Beside all other checks, no process counts
// on a configuration that was not decided: so it dials no address that a
// majority has not named.

// liar: one node shows what it likes, and serves every request: that it alone
// is the set now, that the others have other addresses, or the first
// configuration permanently. Clients start, and nodes are exchanged, meanwhile.
// All are served by the others.
var liar = generator{
	name: "liar",
	set: func(r *rand.Rand, s *course.Setting) {
		exchangeSet(r, s)
		s.Members, s.Nodes, s.Record = 3, 5, false
	},
	plan: func(w *trial.Schedule) {
		w.Decisions.Assemble(true)
		w.AllLoop()
		bad := w.Nodes[w.RNG.IntN(3)]
		w.At(w.Around(w.TTL), func() {
			if kind := w.RNG.IntN(3); kind > 0 {
				bad.Forges(kind == 1)
			} else {
				old := bad.Model.SetText()
				bad.Lie = func() string { return old }
			}
		})
		for _, p := range w.Procs {
			w.At(w.Around(4*w.TTL), func() {
				p.Crash()
				p.Restart()
			})
		}
		if w.RNG.IntN(2) == 0 {
			// The node that lies is replaced. With another one of three there is no old
			// majority that says what followed.
			add := w.Nodes[3 : 4+w.RNG.IntN(2)]
			w.At(w.Around(2*w.TTL), func() { w.Procs[0].Exchange(w.Operators.Change(add, []*world.Node{bad})) })
		}
	},
}

// twofold: an address of a client leads to another member's server, which it
// reaches at that one's address, too. Another client holds by the two other
// servers.
var twofold = generator{
	name: "twofold",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 2)
		s.Length = 4 * s.TTL
	},
	plan: func(w *trial.Schedule) {
		ns := w.Shuffled()
		holder, other := w.Procs[0], w.Procs[1]
		e, f := holder.Parts[0], other.Parts[0]
		w.Decisions.Assemble(true)
		w.Then(w.NodeTimeout, func() {
			holder.Cut(ns[0])
			other.Cut(ns[2])
			other.Follower.Leads(ns[1], ns[0])
		})
		w.Then(w.Around(w.Delay), func() { e.Acquire(false) })
		w.Once(world.Holds(e), w.TTL, w.Around(w.NodeTimeout), func() { f.Acquire(false) })
		w.Once(world.Holds(f), w.TTL, w.Around(w.NodeTimeout), func() {})
	},
}

// starts: a client starts while ABC becomes BCD or CDE, in any stage, with the
// old list, the one that follows, or one node that stays. It holds when the
// change is over.
var starts = generator{
	name: "exchange starts",
	set:  outageSet,
	plan: func(w *trial.Schedule) {
		o := newOutage(w)
		p, leave := o.f.Proc, 1+w.RNG.IntN(2)
		list := [][]*world.Node{o.old, append(slices.Clone(o.old[leave:]), o.next[:leave]...),
			o.old[2:]}[w.RNG.IntN(3)]
		w.Then(w.Around(w.NodeTimeout), func() {
			o.e.Release()
			o.operator.Exchange(w.Operators.Change(o.next[:leave], o.old[:leave]))
		})
		w.Once(o.operator.Follower.At(1+w.RNG.Uint64N(4)), 4*w.Guard, w.Around(w.NodeTimeout), func() {
			p.Crash()
			p.Follower.List = list
			p.Restart()
			o.f.Insists()
		})
		w.Checks.Served(o.f, 4*w.Guard)
	},
}

// dies: an operator ends permanently when a node has carried out its first,
// second or a later step. That keeps no client from its locks.
var dies = generator{
	name: "exchange dies",
	set:  outageSet,
	plan: func(w *trial.Schedule) {
		o := newOutage(w)
		all, steps := w.RNG.IntN(2) == 0, 1+w.RNG.IntN(9)
		w.Then(w.Around(w.NodeTimeout), func() {
			o.e.Release()
			o.f.Release()
			if all {
				o.operator.Exchange(w.Operators.Change(o.next, o.old[:2]))
			} else {
				o.operator.Exchange(w.Operators.Change(o.next[:1], o.old[:w.RNG.IntN(2)]))
			}
			w.Stepped = func() {
				if steps--; steps == 0 {
					w.At(0, func() {
						w.Exchanging.Goals = nil
						o.operator.Crash()
					})
				}
			}
		})
		w.Once(func() bool { return steps <= 0 }, 4*w.Guard, w.Around(w.NodeTimeout), func() { o.e.Acquire(false) })
		w.Checks.Served(o.e, w.TTL)
		w.Then(w.Around(w.TTL), o.e.Release)
		w.Then(w.Around(w.NodeTimeout), func() { // one that starts knows the first configuration, at most
			o.f.Proc.Crash()
			o.f.Proc.Restart()
			o.f.Acquire(false)
		})
		w.Checks.Served(o.f, 2*w.TTL+w.Guard)
	},
}

// returns: changes follow each other without a pause, and bring servers back:
// 3 -> 1 -> 3, 3 -> 5 -> 3, or a server changes its address. The hold goes on,
// and the waiter keeps its place.
var returns = generator{
	name: "exchange returns",
	set: func(r *rand.Rand, s *course.Setting) {
		outageSet(r, s)
		s.Length = 20*s.Guard + 6*s.TTL
		s.Hold = 2 * s.Length
	},
	plan: func(w *trial.Schedule) {
		o := newOutage(w)
		some := o.old[:2]
		x := func() []change.Goal {
			switch w.RNG.IntN(3) {
			case 0:
				return []change.Goal{w.Operators.Change(nil, some), w.Operators.Change(some, nil)}
			case 1:
				return []change.Goal{w.Operators.Change(o.next, nil), w.Operators.Change(nil, o.next)}
			}
			return []change.Goal{
				w.Operators.Moves(o.old[0]), w.Operators.Change(o.next[:1], o.old[2:]),
				w.Operators.Change(o.old[2:], o.next[:1]),
			}
		}
		w.Then(w.Around(w.NodeTimeout), func() { o.operator.Exchange(x()...) })
		over := func() bool { return !o.operator.World.Exchanges() }
		w.Once(over, 18*w.Guard, w.TTL+w.TTL/2, func() {
			if !over() || len(w.Decisions.Latest().Members) != 3 {
				w.Fail("stuck", "the exchange is not over: %v", w.Decisions.Latest())
			}
			o.stays()
		})
		w.Then(w.Around(w.TTL), o.e.Release)
		w.Checks.Served(o.f, w.TTL)
	},
}

// slept: a process sleeps while ABC becomes DE, and A, B and C are stopped. It
// gets the new list and holds again.
var slept = generator{
	name: "exchange slept",
	set:  outageSet,
	plan: func(w *trial.Schedule) {
		o := newOutage(w)
		p := o.e.Proc
		w.Then(w.Around(w.NodeTimeout), func() {
			o.e.Release()
			p.Pause()
			o.operator.Exchange(w.Operators.Change(o.next, o.old))
		})
		w.Once(o.operator.Follower.At(4), 4*w.Guard, w.TTL, func() {
			for _, n := range o.old {
				n.Gone = true
				n.Crash()
			}
			o.f.Release()
			p.Resume()
			p.Follower.Members.Relist(world.Addresses(o.next))
			p.Follower.Regroup()
			o.e.Acquire(false)
		})
		w.Checks.Served(o.e, w.Guard+2*w.TTL)
	},
}

// stops: changes take away so many addresses that no majority of the old set is
// left: ABC becomes A, or DE, or A and B change their addresses. The servers
// that have left are stopped as soon as the operator may. Clients that know the
// old set go on.
var stops = generator{
	name: "exchange stops",
	set:  outageSet,
	plan: func(w *trial.Schedule) {
		o := newOutage(w)
		some := o.old[:2]
		goals := func() []change.Goal {
			switch w.RNG.IntN(3) {
			case 0:
				return []change.Goal{w.Operators.Change(nil, some)}
			case 1:
				return []change.Goal{w.Operators.Change(o.next, o.old)}
			}
			return []change.Goal{w.Operators.Moves(some[0]), w.Operators.Moves(some[1])}
		}
		idle := w.RNG.IntN(2) == 0
		w.Then(w.Around(w.NodeTimeout), func() {
			if idle {
				o.f.Release()
			}
			o.operator.Exchange(goals()...).Over = func() {
				for _, n := range o.old {
					if w.Decisions.Retired(n) {
						n.Gone = true
						n.Crash()
					}
				}
			}
		})
		over := func() bool { return !w.Exchanges() }
		w.Once(over, 6*w.Guard, w.TTL+w.TTL/2, func() {
			if !over() {
				w.Fail("stuck", "the exchange is not over: %v", w.Decisions.Latest())
			}
			for _, p := range w.Procs {
				if p.Follower.Members.Stamp() != w.Decisions.Latest().Stamp {
					w.Fail("stuck", "process %s waits for good: it counts on %v", p.Name, p.Follower.Members.Config())
				}
			}
			if idle {
				o.waits = nil
			}
			o.stays()
			o.e.Release()
			if idle {
				o.f.Acquire(false)
			}
		})
		w.Checks.Served(o.f, w.TTL)
	},
}

// shorter: the guard time of a set becomes shorter than a holder's leases need.
// A node of the holder's loses its data, and votes when that guard time is
// over.
var shorter = generator{
	name: "exchange shorter",
	set: func(r *rand.Rand, s *course.Setting) {
		outageSet(r, s)
		s.Members, s.Nodes = 3, 3
		s.Skew, s.Guard = 0, 2*s.TTL
	},
	plan: func(w *trial.Schedule) {
		ns := w.Shuffled()
		e, f, operator := w.Procs[0].Parts[0], w.Procs[1].Parts[0], w.Procs[2]
		w.Decisions.Assemble(true)
		less := w.Settings()
		less.Guard = w.Guard / 8
		w.Then(w.NodeTimeout, func() {
			e.Proc.Cut(ns[2])
			e.Acquire(false)
		})
		w.Once(world.Holds(e), w.TTL, w.Around(w.NodeTimeout),
			func() { operator.Exchange(change.Goal{Shared: &less}) })
		w.Once(operator.Follower.At(3), 4*w.Guard, w.Around(w.NodeTimeout), func() {
			f.Proc.Cut(ns[1])
			e.Proc.Cut(ns[0])
			w.Faults.Wipe(ns[0], false)
		})
		w.Then(w.Around(less.Guard), func() { f.Acquire(false) })
		w.Once(world.Holds(f), w.TTL, 0, func() {})
	},
}
