package trial

import (
	"cmp"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/model"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/world"
)

// The promises that involve all names together. Those of each name are in
// check.go.

func newChecks(w *Schedule) (c checks) {
	c.w = w
	for i := range max(1, w.Locks) {
		c.Of = append(c.Of, &checker{lock: i, local: localCheck{lock: i}})
	}
	return c
}

// Always is what must be so at every moment.
func (c *checks) Always() {
	for _, of := range c.Of {
		of.always(c.w)
		if c.w.Callers > 0 {
			of.local.always(c.w)
		}
	}
}

func (c *checks) Changed(a *world.Attempt, was lease.Phase) {
	if a.Part.Register == nil {
		c.Of[a.Part.Lock].changed(c.w, a, was)
	}
}

// burst is how far ahead of the nodes' clocks a process may propose tickets by
// its own attempts.
const burst = 16*time.Millisecond + protocol.Residues*time.Microsecond

// Began: a ticket is ahead of the nodes' clocks only as far as tickets of its
// own name are. With one ticket clock for all names the tickets of one that is
// claimed often would take all others ahead, until the nodes refuse them.
func (c *checks) Began(a *world.Attempt) {
	w := c.w
	if w.Locks == 0 || w.Wire != nil || a.Part.Register != nil {
		return
	}
	ahead := protocol.Ticket(burst.Microseconds())
	if !w.Clean { // the median may be behind that of before: of fewer clocks, and of one that was set back
		ahead += protocol.Ticket((w.Skew + w.Faults.setBack()).Microseconds())
	}
	most := max(a.Part.Proc.Client.Clock(a.Now())+ahead, c.Of[a.Part.Lock].fence+protocol.Residues)
	if a.T0 > most {
		w.Fail("ahead", "%v begins at %s, and no ticket of its name is above %s",
			a, world.TicketName(a.T0), world.TicketName(most))
	}
}

func (c *checks) Gone(a *world.Attempt) {
	if a.Part.Register == nil {
		c.Of[a.Part.Lock].gone(a)
	}
}

// Bounds on what one claim does within a second.
const (
	maxRequests = 40 // per node
	maxTicks    = 100
)

// Worked: nothing spins.
func (c *checks) Worked(a *world.Attempt) {
	w := c.w
	if w.Now-a.Second > course.Moment(time.Second) {
		a.Second, a.Requests, a.Ticks = w.Now, 0, 0
		a.ClaimsThen = 0
		for _, n := range w.Nodes {
			a.ClaimsThen += a.Part.Data(n).Size() - n.Sent
		}
	}
	w.Stats.Busiest = max(w.Stats.Busiest, a.Requests/len(w.Nodes))
	times := max(1, int(w.TTL/a.Claim.State.TTL)) // a client with a shorter ttl has more to do
	if a.Requests > times*maxRequests*len(w.Nodes)+w.Checks.portions(a) || a.Ticks > times*maxTicks {
		w.Fail("busy", "%v: %d requests and %d ticks within a second", a, a.Requests, a.Ticks)
	}
}

// portions is how many requests the nodes may have asked of a beyond those of
// its own, in the second that is being counted: for each claim that was there
// in that time one to drop it, one to vote for it and one to tell it, and a
// portion with each.
func (c *checks) portions(a *world.Attempt) int {
	claims := a.ClaimsThen
	for _, n := range c.w.Nodes {
		claims += n.Sent
	}
	return 3 * claims / cmp.Or(c.w.Portion, model.Portion)
}

// end is what must be so after all claims have left: nothing is anywhere, at
// once if nothing has failed, and after a lease otherwise, which ends later
// where the clock has been set back.
func (c *checks) end() {
	w := c.w
	if w.Tries && w.Stats.Admissions == 0 {
		w.Fail("free", "%d processes tried a free name at the same moment, and none has it", len(w.Procs))
	}
	if !w.Clean {
		left := w.TTL
		if w.Rival != nil {
			left = w.Rival.Lease
		}
		w.Now = w.Now.Add(left + left/50 + time.Millisecond)
	}
	for _, n := range w.Nodes {
		for i := range c.Of {
			if now, m := n.Clock.Millis(w.Now.Add(n.Clock.SetBack)), n.Data(i); !n.Down && !m.Empty(now) {
				w.Fail("orphan", "node %d still keeps %d claims, redlock key %q", n.Index,
					len(m.Claims(now)), m.Redlock.Value(now))
			}
		}
	}
}

// ExpectHeld fails the schedule unless t holds.
func (c *checks) ExpectHeld(t *world.Participant, why string) {
	if t.Att == nil || !t.Att.InForce() {
		c.w.Fail("lost", "%s does not hold, though %s", t.Name, why)
	}
}

// ExpectRead has a process read; with well that succeeds although one node of
// three is not. A read that meets a run which is just recording is
// inconclusive, and is repeated.
func (c *checks) ExpectRead(p *world.Proc, well bool) {
	tries := 0
	var read func()
	read = func() {
		p.RegisterOps.Start(nil, lease.RegisterOp{Op: protocol.OpRead}, func(i *world.RegisterOp, ok bool) {
			switch tries++; {
			case ok || !well:
			case tries < 5 && i.Op.Outcome() == lease.Inconclusive:
				p.Later(c.w.Around(c.w.NodeTimeout), read)
			default:
				c.w.Fail("stuck", "%v: cannot be read though one record of three is forged", i)
			}
		})
	}
	read()
}

// ExpectRuns has the participants begin a run each within three leases,
// although one node of three is not well. One that has come to nothing is begun
// again.
func (c *checks) ExpectRuns(well bool, parts ...*world.Participant) {
	w, n := c.w, len(c.w.Ledger.Opens)+len(parts)
	again := func() {
		for _, t := range parts {
			if len(w.Ledger.Opens) < n && !w.Draining {
				t.Acquire(false)
			}
		}
	}
	again()
	for i := range 5 {
		w.At(w.TTL*time.Duration(i+1)/2, again)
	}
	w.At(3*w.TTL, func() {
		if len(w.Ledger.Opens) < n && !w.Draining && well {
			c.w.Fail("stuck", "%d runs have begun, of %d, though one record of three is forged", len(w.Ledger.Opens),
				n)
		}
	})
}

// Served waits until t holds, and fails if it does not within a time.
func (c *checks) Served(t *world.Participant, within time.Duration) {
	c.w.Once(world.Holds(t), within, 0, func() {
		if !world.Holds(t)() {
			c.w.Fail("stuck", "%s does not hold: it counts on %v", t.Name, t.Proc.Follower.Members.Config())
		}
	})
}

// Remember: each name that all nodes had is on one of them still.
func (c *checks) Remember() {
	for name := range c.w.Listed {
		known := false
		for _, n := range c.w.Nodes {
			known = known || n.Names[name]
		}
		if !known {
			c.w.Fail("record", "no node has %s any more", name)
		}
	}
}
