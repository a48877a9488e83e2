package sim

import (
	"math/rand/v2"

	"github.com/quorate/quorate/internal/protocol"
)

// reborn: what one life of a node has said arrives in the next. e holds with
// the nodes b and c; f waits behind it and knows a from before a's restart. If
// f takes its old vote of a for good, the restart of b gives it the second one.
var reborn = generator{
	name: "reborn",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 3)
		s.shortHold = false // a forgets without a guard time once, so e must have b and c
		s.late = 0
		s.length = 3*s.guard + 10*s.ttl
	},
	plan: func(w *world) {
		ns := w.shuffled()
		a, b := ns[0], ns[1]
		pe, pf, pg := w.procs[0], w.procs[1], w.procs[2]
		e, f, g := pe.parts[0], pf.parts[0], pg.parts[0]
		byPush := w.rng.IntN(2) == 0
		w.then(w.delay, func() { e.acquire(false) })
		w.then(8*w.delay+w.tail, func() {
			if !byPush {
				pe.cut(a)
				a.model.Forget() // so that f has a's vote
				a.model.Bootstrap(0, a.incarnation())
			}
			f.acquire(false)
		})
		w.then(w.nodeTimeout, func() {
			if byPush {
				pe.cut(a)
				a.keep = pf
			}
		})
		if byPush {
			// e expires at a; g's question there sets the push off.
			w.once(func() bool { return a.wouldPush(f) }, 2*w.ttl, 0, func() { g.acquire(true) })
		}
		w.then(w.nodeTimeout, func() {
			pf.cut(a)
			w.wipe(a, false)
			g.acquire(true) // the first request finds out what a has lost
		})
		w.then(w.guard+w.around(w.nodeTimeout/4), func() { pe.mend(a) })
		w.then(w.nodeTimeout, func() {
			if !byPush {
				pf.again(f.att, a, protocol.OpJoin)
			}
		})
		w.then(w.nodeTimeout/2, func() { pf.mend(a) })
		w.then(w.nodeTimeout, a.deliver)
		w.then(w.nodeTimeout, func() { pe.cut(b); w.wipe(b, false) })
		w.once(holds(f), 2*w.guard, w.nodeTimeout, func() {})
	},
}

// pushOfOldTicket: the push that f is first on a is on its way while f moves
// behind e there. Node b votes for f, since e has never been there.
var pushOfOldTicket = generator{
	name: "pushOfOldTicket",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 4)
		s.skew = s.ttl / 2
		s.guard = 2*s.ttl + 2*s.skew
		s.delay, s.tail = min(s.delay, s.ttl/1000), 0
		s.jitter = s.delay
		s.length = 4 * s.ttl
	},
	plan: func(w *world) {
		ns := w.shuffled()
		a, b, c := ns[0], ns[1], ns[2]
		pd, pe, pf, pg := w.procs[0], w.procs[1], w.procs[2], w.procs[3]
		d, e, f, g := pd.parts[0], pe.parts[0], pf.parts[0], pg.parts[0]
		for _, p := range w.procs {
			p.wall = -w.skew / 2
		}
		pg.wall = w.skew / 2 // g passes through b alone: f must settle above T0
		pg.cut(a, c)
		pd.cut(b) // d is first on a, and nowhere else
		pd.cut(c)
		pf.cut(c)
		pe.cut(b)
		rtt := 8 * w.delay
		w.then(w.delay, func() { g.acquire(true) })
		w.then(w.nodeTimeout+rtt, func() { d.acquire(false) })
		w.then(rtt, func() { f.acquire(false) })
		w.then(rtt, func() {
			pf.cut(a) // the settle has to wait
			e.acquire(false)
		})
		w.then(w.around(rtt), func() {
			a.keep = pf
			d.release()
		})
		w.then(w.nodeTimeout+w.around(rtt), func() { pf.mend(a) })
		w.then(w.around(rtt), a.deliver)
		w.then(w.around(w.ttl/4), func() { pf.mend(c); pe.mend(b) })
	},
}
