package sim

import (
	"math/rand/v2"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/trial"
	"github.com/quorate/quorate/internal/sim/world"
)

// reborn: what one life of a node has said arrives in the next. e holds with
// the nodes b and c; f waits behind it and knows a from before a's restart. If
// f takes its old vote of a permanently, the restart of b gives it the second
// one.
var reborn = generator{
	name: "reborn",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 3)
		s.ShortHold = false // a forgets without a guard time once, so e must have b and c
		s.Late = 0
		s.Length = 3*s.Guard + 10*s.TTL
	},
	plan: func(w *trial.Schedule) {
		ns := w.Shuffled()
		a, b := ns[0], ns[1]
		pe, pf, pg := w.Procs[0], w.Procs[1], w.Procs[2]
		e, f, g := pe.Parts[0], pf.Parts[0], pg.Parts[0]
		byPush := w.RNG.IntN(2) == 0
		w.Then(w.Delay, func() { e.Acquire(false) })
		w.Then(8*w.Delay+w.Tail, func() {
			if !byPush {
				pe.Cut(a)
				a.Model.Forget() // so that f has a's vote
				a.Model.Bootstrap(0, a.Incarnation())
			}
			f.Acquire(false)
		})
		w.Then(w.NodeTimeout, func() {
			if byPush {
				pe.Cut(a)
				a.Keep = pf
			}
		})
		if byPush {
			// e expires at a; g's question there sets the push off.
			w.Once(func() bool { return a.WouldPush(f) }, 2*w.TTL, 0, func() { g.Acquire(true) })
		}
		w.Then(w.NodeTimeout, func() {
			pf.Cut(a)
			w.Wipe(a, false)
			g.Acquire(true) // the first request finds out what a has lost
		})
		w.Then(w.Guard+w.Around(w.NodeTimeout/4), func() { pe.Mend(a) })
		w.Then(w.NodeTimeout, func() {
			if !byPush {
				pf.Again(f.Att, a, protocol.OpJoin)
			}
		})
		w.Then(w.NodeTimeout/2, func() { pf.Mend(a) })
		w.Then(w.NodeTimeout, a.Deliver)
		w.Then(w.NodeTimeout, func() { pe.Cut(b); w.Wipe(b, false) })
		w.Once(world.Holds(f), 2*w.Guard, w.NodeTimeout, func() {})
	},
}

// pushOfOldTicket: the push that f is first on a is on its way while f moves
// behind e there. Node b votes for f, since e has never been there.
var pushOfOldTicket = generator{
	name: "pushOfOldTicket",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 4)
		s.Skew = s.TTL / 2
		s.Guard = 2*s.TTL + 2*s.Skew
		s.Delay, s.Tail = min(s.Delay, s.TTL/1000), 0
		s.Jitter = s.Delay
		s.Length = 4 * s.TTL
	},
	plan: func(w *trial.Schedule) {
		ns := w.Shuffled()
		a, b, c := ns[0], ns[1], ns[2]
		pd, pe, pf, pg := w.Procs[0], w.Procs[1], w.Procs[2], w.Procs[3]
		d, e, f, g := pd.Parts[0], pe.Parts[0], pf.Parts[0], pg.Parts[0]
		for _, p := range w.Procs {
			p.Wall = -w.Skew / 2
		}
		pg.Wall = w.Skew / 2 // g passes through b alone: f must settle above T0
		pg.Cut(a, c)
		pd.Cut(b) // d is first on a, and nowhere else
		pd.Cut(c)
		pf.Cut(c)
		pe.Cut(b)
		rtt := 8 * w.Delay
		w.Then(w.Delay, func() { g.Acquire(true) })
		w.Then(w.NodeTimeout+rtt, func() { d.Acquire(false) })
		w.Then(rtt, func() { f.Acquire(false) })
		w.Then(rtt, func() {
			pf.Cut(a) // the settle has to wait
			e.Acquire(false)
		})
		w.Then(w.Around(rtt), func() {
			a.Keep = pf
			d.Release()
		})
		w.Then(w.NodeTimeout+w.Around(rtt), func() { pf.Mend(a) })
		w.Then(w.Around(rtt), a.Deliver)
		w.Then(w.Around(w.TTL/4), func() { pf.Mend(c); pe.Mend(b) })
	},
}
