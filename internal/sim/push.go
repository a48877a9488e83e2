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
			w.Faults.Wipe(a, false)
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
		w.Then(w.NodeTimeout, func() { pe.Cut(b); w.Faults.Wipe(b, false) })
		w.Once(world.Holds(f), 2*w.Guard, w.NodeTimeout, func() {})
	},
}
