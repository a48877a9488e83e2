package sim

import (
	"math/rand/v2"
	"time"
)

// The aims in this file walk towards clocks that are judged wrongly.

// leap: a holder has two nodes of three, and the clock of one of them jumps
// ahead, once or while the node is within its guard time. Another client waits
// for it, or comes then.
var leap = generator{
	name: "leap",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 2)
		s.length = 3*s.guard + 4*s.ttl
	},
	plan: func(w *world) {
		ns := w.shuffled()
		a, c := ns[0], ns[2]
		holder, other := w.procs[0], w.procs[1]
		e, f := holder.parts[0], other.parts[0]
		early, twice := w.rng.IntN(2) == 0, w.rng.IntN(3) == 0
		holder.cut(c)
		w.then(w.delay, func() { e.acquire(false) })
		w.once(holds(e), w.ttl, w.around(w.delay*4), func() {
			if early {
				f.acquire(false)
			}
			if twice {
				w.wipe(a, false)
			}
		})
		w.then(w.around(w.nodeTimeout), func() { a.leap(w.around(w.guard)) })
		w.then(w.around(w.delay*4), func() {
			if !early {
				f.acquire(false)
			}
		})
		w.once(holds(f), 2*w.guard, w.around(w.nodeTimeout), func() {})
	},
}

// doubt: as leap, and the other client reaches too few nodes to tell whose
// clock it was: there is only one, or it cannot reach the one that would show
// it.
var doubt = generator{
	name: "doubt",
	set: func(r *rand.Rand, s *setting) {
		leap.set(r, s)
		s.nodes = 1 + 2*r.IntN(2)
	},
	plan: func(w *world) {
		ns := w.shuffled()
		holder, other := w.procs[0], w.procs[1]
		e, f := holder.parts[0], other.parts[0]
		early := w.rng.IntN(2) == 0
		w.then(w.nodeTimeout, func() {
			if len(ns) > 1 {
				holder.cut(ns[2])
				other.cut(ns[1])
			}
			e.acquire(false)
		})
		w.once(holds(e), w.ttl, w.around(w.delay*4), func() {
			if early {
				f.acquire(false)
			}
		})
		w.then(w.around(w.nodeTimeout), func() { ns[0].leap(w.around(w.ttl / time.Duration(1+w.rng.IntN(8)))) })
		w.then(w.around(w.delay*4), func() {
			if w.rng.IntN(2) == 0 {
				holder.cut(ns[0]) // so that it does not renew, and does not hear of it either
			}
			f.acquire(false)
		})
		w.once(holds(f), 2*w.guard, w.around(w.nodeTimeout), func() {})
	},
}

// nap: a client sleeps for long while it neither holds nor waits, and its
// connections come back one after the other. It is served soon then.
var nap = generator{
	name: "nap",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 1)
		s.nodes = 3 + 2*r.IntN(2)
		s.delay, s.jitter, s.tail = s.nodeTimeout/20, s.nodeTimeout/20, 0
		s.length = 4*s.guard + 4*s.ttl
	},
	plan: func(w *world) {
		p, t := w.procs[0], w.procs[0].parts[0]
		d := w.guard + w.around(w.ttl)
		w.then(w.nodeTimeout, func() { p.sleep(d, true) })
		w.then(d+w.nodeTimeout, func() { t.acquire(false) })
		w.then(6*w.nodeTimeout, func() {
			w.expectHeld(t, "no other client wants it")
			t.release()
		})
	},
}

// doze: a client's clock stands still for a moment, no longer than what it
// knows of two nodes excludes, and the third one it knows better.
var doze = generator{
	name: "doze",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 1)
		s.delay, s.jitter, s.tail, s.late, s.drift = 100*time.Microsecond, 100*time.Microsecond, 0, 0, 0
		s.length = 4 * s.ttl
	},
	plan: func(w *world) {
		ns := w.shuffled()
		p := w.procs[0]
		rtt := 4 * (w.delay + w.jitter)
		w.then(w.nodeTimeout, func() {
			p.cut(ns[1], ns[2])
		})
		w.then(w.ttl/2+w.around(w.ttl/4), func() { p.to(ns[0]).askTime() })
		w.then(rtt, func() { p.sleep(w.ttl/200+time.Duration(w.rng.Int64N(int64(w.ttl/200))), false) })
		w.then(w.ttl/100+rtt, func() { p.to(ns[0]).askTime() })
		w.then(rtt, func() {
			p.mend(ns[1], ns[2])
		})
	},
}

// midsleep: a client sleeps while a node has two of its requests, one sent long
// before the sleep and one just before. The node answers in the middle of the
// sleep: the second answer shows a part of it, and the first one excludes
// little. Its next answer is slow, and the one after that shows the rest.
var midsleep = generator{
	name: "midsleep",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 1)
		s.delay, s.jitter, s.tail = s.nodeTimeout/100, s.nodeTimeout/100, 0
		s.length = 4*s.ttl + s.guard
	},
	plan: func(w *world) {
		ns := w.shuffled()
		p := w.procs[0]
		l := p.to(ns[0])
		d := w.ttl/8 + w.around(w.ttl/8)
		w.then(w.ttl/2+w.around(w.ttl/4), func() {
			l.cut(requests)
			l.askTime()
		})
		w.then(d, l.askTime)
		w.then(w.around(w.delay), func() { p.sleep(d, false) })
		w.then(d/2+time.Duration(w.rng.Int64N(int64(d/4))), func() { l.heal(false) })
		w.then(d/8, func() { l.cut(answers) })
		w.then(d+w.nodeTimeout, func() { l.heal(false) })
		w.then(w.nodeTimeout, l.askTime)
	},
}

// buffered: as doze, and an answer of the third node that was given before that
// moment is read after the other nodes have shown the time since.
var buffered = generator{
	name: "buffered",
	set:  doze.set,
	plan: func(w *world) {
		ns := w.shuffled()
		p := w.procs[0]
		rtt := 4 * (w.delay + w.jitter)
		w.then(w.nodeTimeout, func() {
			p.cut(ns[1], ns[2])
		})
		w.then(w.ttl/2+w.around(w.ttl/4), func() { p.to(ns[0]).askTime() })
		w.then(rtt, func() {
			p.to(ns[0]).cut(answers)
			p.to(ns[0]).askTime()
		})
		d := w.ttl/200 + time.Duration(w.rng.Int64N(int64(w.ttl/200)))
		w.then(rtt, func() { p.sleep(d, false) })
		w.then(d+rtt, func() {
			for _, n := range ns[1:] {
				p.mend(n)
				p.to(n).askTime()
			}
		})
		w.then(rtt, func() { p.mend(ns[0]) })
		w.then(rtt, func() { p.to(ns[0]).askTime() })
	},
}

// overslept: a holder's machine sleeps for longer than the lease, another
// client takes over, and the first one that wakes reaches one node alone.
var overslept = generator{
	name: "overslept",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 2)
		s.length = 8*s.ttl + 2*s.guard
	},
	plan: func(w *world) {
		ns := w.shuffled()
		p := w.procs[0]
		e, f := p.parts[0], w.procs[1].parts[0]
		d := w.ttl + w.ttl/8 + w.around(w.ttl/2)
		w.then(w.delay, func() { e.acquire(false) })
		w.once(holds(e), w.ttl, w.around(w.nodeTimeout), func() { f.acquire(false) })
		w.then(w.nodeTimeout, func() {
			p.cut(ns[1], ns[2])
			p.sleep(d, w.rng.IntN(2) == 0)
		})
		w.once(holds(f), d, 0, func() {})
		w.then(d+2*w.ttl, func() { f.release() })
	},
}

// nudge: the clock of one of a holder's two nodes jumps by less than can be
// noticed, and all clocks differ as much as they may: the holder's is slow.
var nudge = generator{
	name: "nudge",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 2)
		s.drift, s.late = clockRate, 0
		s.delay, s.jitter, s.tail = s.ttl/4000, s.ttl/4000, 0
		s.length = 6 * s.ttl
	},
	plan: func(w *world) {
		ns := w.shuffled()
		holder, other := w.procs[0], w.procs[1]
		holder.rate = 1 - w.drift
		other.rate = 1 + w.drift
		for _, n := range ns {
			n.rate = 1 + w.drift
		}
		e, f := holder.parts[0], other.parts[0]
		holder.cut(ns[2])
		w.then(w.nodeTimeout, func() { e.acquire(false) })
		w.once(holds(e), w.ttl, w.around(w.nodeTimeout), func() {
			holder.cut(ns[0], ns[1])
			f.acquire(false)
		})
		w.then(time.Duration(w.rng.Int64N(int64(w.ttl*3/4))), func() { ns[0].leap(time.Duration(w.rng.Int64N(int64(w.ttl / 50)))) })
		w.once(holds(f), 2*w.ttl, w.around(w.nodeTimeout), func() {})
	},
}
