package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/trial"
	"github.com/quorate/quorate/internal/sim/world"
)

// The aims in which nodes, processes and operators come back that have missed
// an exchange.

// exchangeRegress: D takes the place of C, and A loses its data. A process that
// has missed what follows has A be a member of ABC again, or would. From then
// on it reaches A and C only, and the others reach B and D.
//
// The process sleeps through the exchange, or A loses its data when it alone
// has moved to the joint configuration. A may come back with a snapshot of
// before.
var exchangeRegress = generator{
	name: "exchange regress",
	set:  outageSet,
	plan: func(w *trial.Schedule) {
		old := slices.Clone(w.Nodes[:3])
		w.RNG.Shuffle(3, func(i, j int) { old[i], old[j] = old[j], old[i] })
		a, b, c, d := old[0], old[1], old[2], w.Nodes[3]
		e, f, operator := w.Procs[0].Parts[0], w.Procs[1].Parts[0], w.Procs[2]
		last := f
		left, others := e.Proc, []*world.Proc{f.Proc, operator}
		w.Decisions.Assemble(true)
		part := func(n *world.Node) {
			for _, p := range others {
				p.Cut(n)
			}
		}
		meets := func() bool { return a.Keeps().Phase == nodeset.SetRecorded }
		if w.RNG.IntN(2) == 0 {
			file := w.RNG.IntN(2) == 0
			w.Then(w.NodeTimeout, func() {
				if file {
					a.Save()
				}
				left.Pause()
				c.Crash()
				operator.Exchange(w.Operators.Change([]*world.Node{d}, []*world.Node{c}))
			})
			w.Once(operator.Follower.At(4), 4*w.Guard, w.Around(w.NodeTimeout), func() {
				part(a)
				part(c) // or it learns at once which set it has left
				if left.Cut(d); w.RNG.IntN(2) == 0 {
					left.Cut(b) // or an answer of b tells it as soon as it goes on
				}
				c.Restart()
				w.Faults.Wipe(a, file)
			})
			w.Then(w.Around(w.NodeTimeout), left.Resume)
			w.Once(meets, w.Around(2*w.NodeTimeout), 0, func() { left.Cut(b) })
		} else {
			w.Then(w.NodeTimeout, func() { operator.Exchange(w.Operators.Change([]*world.Node{d}, []*world.Node{c})) })
			w.Once(operator.Follower.At(2), 2*w.Guard, 0, func() {
				left.Cut(d)
				f.Proc.Cut(a, b, c, d)
			})
			w.Once(d.Model.CaughtUp, 2*w.Guard, w.Guard/2, func() {
				operator.Cut(c) // its register does not hear of what is decided
			})
			w.Once(operator.Follower.At(3), 3*w.Guard, 0, func() {
				left.Cut(a)
				operator.Cut(b, c)
			})
			w.Then(w.Around(2*w.NodeTimeout), func() {
				operator.Cut(a)
				w.Faults.Wipe(a, false)
				left.Mend(a)
			})
			last = operator.Parts[0] // the others do not learn what follows
			w.Once(meets, 12*w.NodeTimeout, 0, func() {
				left.Cut(b)
				operator.Mend(b)
			})
		}
		w.Then(w.Guard+w.TTL/4, func() { e.Acquire(false) })
		w.Then(w.Around(w.TTL/2), func() {
			operator.Mend(c)
			f.Proc.Mend(b, d)
		})
		w.Once(operator.Follower.At(4), w.TTL/4, 0, func() { last.Acquire(false) })
		w.Then(w.TTL/2, func() {})
	},
}

// exchangeLate: all nodes are replaced, by two operators. The second one has
// seen that an old node is silent, and undoes the change. It begins just as it
// learns that the new nodes count alone: none of them has the register.
var exchangeLate = generator{
	name: "exchange late",
	set: func(r *rand.Rand, s *course.Setting) {
		swapSet(r, s)
		if r.IntN(2) == 0 {
			s.Members, s.Nodes = 1, 2
		}
	},
	plan: func(w *trial.Schedule) {
		w.Decisions.Assemble(true)
		operator, other := w.Procs[0], w.Procs[1]
		w.Once(func() bool { return true }, 0, w.Around(w.NodeTimeout), func() {
			operator.Exchange(w.Operators.Change(w.Nodes[w.Members:], w.Nodes[:w.Members]))
		})
		var late *change.Succession
		w.Once(other.Follower.At(3), 4*w.Guard, w.Guard, func() {
			c := other.Follower.Members.Config()
			late = change.NewSuccession(c, change.Undo(c, other.Follower.Ballot("")), w.TTL, w.NodeTimeout)
		})
		w.Once(other.Follower.At(4), 2*w.Guard, w.Around(w.NodeTimeout), func() {
			other.Follower.Succeed(late, func() {
				if c, _ := late.Decided(); c != nil {
					w.Decisions.Successor(other, c)
				}
			})
		})
		w.Then(4*w.TTL, func() {})
	},
}

// powerless: the site loses power in any stage of an exchange. Each node comes
// back with all it had, with an older file, or with nothing. Those that have
// left are stopped permanently.
var powerless = generator{
	name: "exchange powerless",
	set: func(r *rand.Rand, s *course.Setting) {
		exchangeSet(r, s)
		s.Members, s.Nodes, s.Record = 3, 5, false
	},
	plan: func(w *trial.Schedule) {
		w.Decisions.Assemble(true)
		w.AllLoop()
		operator, files := w.Procs[0], w.RNG.IntN(3)
		w.At(w.Around(w.TTL), func() { operator.Exchange(w.Operators.Changes()...) })
		for i := range 8 {
			w.At(time.Duration(i)*w.Guard/4, func() {
				for _, n := range w.Nodes {
					if files > 0 && w.RNG.IntN(2) == 0 && !n.Down {
						n.Save()
					}
				}
			})
		}
		w.Once(func() bool { return w.Decisions.Latest().Stamp.Epoch() > w.RNG.Uint64N(5) },
			4*w.Guard, w.Around(w.Guard/2), func() {
				// Nothing tells a client of before which set counts.
				lost := files == 0 && slices.ContainsFunc(w.Nodes, w.Decisions.Retired)
				for _, n := range w.Nodes {
					n.Crash()
					switch {
					case files == 0:
						n.Forget()
					case files == 1:
						n.Revert()
					}
					if w.Decisions.Retired(n) {
						n.Gone = true
						continue
					}
					w.At(w.Around(w.NodeTimeout), n.Restart)
				}
				for _, p := range w.Procs {
					if w.RNG.IntN(2) == 0 || lost {
						p.Crash()
						w.At(w.Around(w.NodeTimeout), p.Restart)
					}
				}
				w.Decisions.ForgetDecisions()
				for i := range 4 {
					w.At(time.Duration(i+2)*w.Guard, w.Operators.EmptyAhead)
				}
			})
	},
}
