package sim

import (
	"math/rand/v2"

	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/trial"
)

// addresses: each member of ABC gets a second address, while one process holds
// and another one waits. The waiter then starts again with a list of the second
// addresses, by which alone it reaches the nodes, and takes its turn when the
// holder releases. At last the first addresses are dropped, and closed as soon
// as the operator may. The holder, whose list has these, holds again.
var addresses = generator{
	name: "exchange addresses",
	set: func(r *rand.Rand, s *course.Setting) {
		outageSet(r, s)
		s.Members, s.Nodes = 3, 3
		s.Length += 4 * s.Guard
	},
	plan: func(w *trial.Schedule) {
		o := newOutage(w)
		w.Then(w.Around(w.NodeTimeout), func() { o.operator.Exchange(w.Operators.Opens(o.old)...) })
		over := func() bool { return o.w.Exchanging != nil && !w.Exchanges() }
		w.Once(over, w.Guard, w.Around(w.NodeTimeout), func() {
			if !over() {
				w.Fail("stuck", "the addresses are not added: %v", w.Decisions.Latest())
			}
			o.stays()
			p := o.f.Proc
			p.Crash()
			p.Follower.Outside = true
			p.Restart()
			o.f.Insists()
		})
		w.Then(w.Around(w.TTL), func() {
			if p := o.f.Proc; p.Follower.Members.Stamp() != w.Decisions.Latest().Stamp {
				w.Fail("stuck", "process %s does not find its set: it counts on %v", p.Name, p.Follower.Members.Config())
			}
			o.e.Release()
		})
		w.Checks.Served(o.f, 2*w.TTL)
		w.Then(w.Around(w.NodeTimeout), func() {
			o.operator.Exchange(w.Operators.Shuts(o.old)...).Over = func() {
				for _, n := range o.old {
					n.Shut = true
				}
				for _, p := range w.Procs {
					p.Follower.Tend()
				}
			}
		})
		w.Once(func() bool { return !w.Exchanges() }, 4*w.Guard, w.Around(w.TTL), func() {
			o.f.Release()
			o.e.Acquire(false)
		})
		w.Checks.Served(o.e, 2*w.TTL)
	},
}
