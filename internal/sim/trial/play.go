package trial

import (
	"fmt"
	"io"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/world"
)

// How a schedule is played, and how long that may take.

func NewSchedule(s course.Setting, r *rand.Rand, trace io.Writer) *Schedule {
	w := &Schedule{}
	w.Faults, w.Operators = faults{w: w}, operators{w: w}
	w.World = world.NewWorld(s, r, trace, &w.Checks)
	w.Checks = newChecks(w)
	return w
}

// maxEvents is far above what any honest schedule takes.
const maxEvents = 500_000

// Play runs the schedule until nothing more happens.
func (w *Schedule) Play() (v *course.Violation) {
	defer w.End()
	defer func() {
		if p := recover(); p != nil {
			w.Fail("panic", "%v\n%s", p, debug.Stack())
			v = w.Broken
		}
	}()
	if w.Tape != nil {
		w.Setup()
	}
	if w.Record {
		for _, p := range w.Procs {
			p.RegisterOps.Reads()
		}
	}
	for _, p := range w.Procs {
		for _, l := range p.Links {
			if l.Up {
				l.Ask(world.Hello, 0)
			}
		}
		p.StartClockChecks()
	}
	w.Limit = w.Now.Add(w.Length + w.bound())
	w.At(w.Length, w.Faults.stop)
	w.Step()
	for !w.Queue.Empty() && w.Broken == nil {
		e := w.Queue.Pop()
		w.Now = e.At
		w.Stats.Events++
		if w.Stats.Events > maxEvents {
			w.Fail("busy", "more than %d events", maxEvents)
			break
		}
		if e.At > w.Limit {
			w.Operators.dismiss()
		}
		if e.At > w.Limit && !w.Idle() {
			w.Fail("stuck", "%s", w.waiting())
			break
		}
		w.Dispatch(e)
		w.Checks.Always()
		w.Step()
	}
	if w.Broken == nil {
		w.Checks.end()
	}
	return w.Broken
}

// bound is how long after the faults the last waiter may be served: nodes
// recover, leases of the dead end, and then every waiter has its turn.
func (w *Schedule) bound() time.Duration {
	each := 4*w.Hold + 4*w.NodeTimeout + w.TTL/3
	if w.Record {
		// An open that cannot find out, and a put that cannot reach a majority, are
		// given up after a while.
		each += 10 * w.TTL
	}
	wait := 2*w.Operators.LongestGuard() + 4*w.TTL
	if w.Rival != nil {
		wait += w.Rival.Lease + 2*w.TTL // its keys may stay, or come late
	}
	if w.Procs[0].Follower.Members != nil {
		// While faults go on, tries fail, and their pauses double.
		wait += 2 * nodeset.LongestRecordPause(w.NodeTimeout)
	}
	return wait + time.Duration(len(w.Procs)*w.Parts*max(1, w.Callers)+2)*each
}

func (w *Schedule) waiting() string {
	s := "not served"
	if w.Exchanges() {
		s = "an exchange is not over"
	}
	for a := range w.Participants() {
		if !a.Idle() {
			s += fmt.Sprintf("; %v (%v)", a.Att, world.PhaseName(a.Att.Claim.State.Phase()))
		}
	}
	return s
}

// lastly reads once more when everything is well again: that must succeed.
func (w *Schedule) lastly() {
	caughtUp := w.Decisions.Numbers(func(n *world.Node) bool {
		return n.Model.CaughtUp() && !n.Gone && !n.Clock.Unsettled()
	})
	// One node permanently gone and another without its data: it cannot be known.
	if !w.Decisions.Sets().Attested(caughtUp) {
		return
	}
	w.LastRead = w.Now.Add(2*w.Guard + 10*w.TTL)
	// A run that has begun and come to nothing leaves it open what a minority
	// has, and so does a node that goes when one has found it all: the next one
	// decides.
	w.At(w.Guard+w.TTL/2, func() { w.Procs[0].Parts[0].Acquire(false) })
	w.At(w.Guard+4*w.TTL, func() {
		w.readLast(func() {
			w.Procs[0].Parts[0].Acquire(false)
			w.At(3*w.TTL, func() { w.readLast(nil) })
		})
	})
}

// readLast reads; unsettled is called when a run is to decide first, if one
// still may.
func (w *Schedule) readLast(unsettled func()) {
	w.Procs[0].RegisterOps.Start(nil, lease.RegisterOp{Op: protocol.OpRead}, func(i *world.RegisterOp, ok bool) {
		open := i.Op.Outcome() == lease.Inconclusive
		switch {
		case ok || w.Ledger.void || w.Procs[0].Follower.Blocked():
		case open && !w.Idle(): // it is that run's to decide
		case open && unsettled != nil:
			unsettled()
		default:
			w.Fail("stuck", "%v: cannot be read", i)
		}
	})
}
