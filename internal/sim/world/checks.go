package world

import (
	"cmp"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/model"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/course"
)

// This file owns the promises of all names together. Those of each name are in
// check.go.

// checks hold a schedule to what the protocol promises: each name by itself,
// and what is so for all.
type checks struct {
	w  *Schedule
	Of []*checker // by name
}

func newChecks(w *Schedule) (c checks) {
	c.w = w
	for i := range max(1, w.Locks) {
		c.Of = append(c.Of, &checker{lock: i, local: localCheck{lock: i}})
	}
	return c
}

// always is what must be so at every moment.
func (c *checks) always() {
	for _, of := range c.Of {
		of.always(c.w)
		if c.w.Callers > 0 {
			of.local.always(c.w)
		}
	}
}

func (c *checks) changed(a *Attempt, was lease.Phase) {
	if a.Part.register == nil {
		c.Of[a.Part.Lock].changed(c.w, a, was)
	}
}

// burst is how far ahead of the nodes' clocks a process may propose tickets by
// its own attempts.
const burst = 16*time.Millisecond + protocol.Residues*time.Microsecond

// began: a ticket is ahead of the nodes' clocks only as far as tickets of its
// own name are. With one ticket clock for all names the tickets of one that is
// claimed often would take all others ahead, until the nodes refuse them.
func (c *checks) began(a *Attempt) {
	w := c.w
	if w.Locks == 0 || w.Wire != nil || a.Part.register != nil {
		return
	}
	ahead := protocol.Ticket(burst.Microseconds())
	if !w.Clean { // the median may be behind that of before: of fewer clocks, and of one that was set back
		ahead += protocol.Ticket((w.Skew + w.setBack()).Microseconds())
	}
	most := max(a.Part.Proc.Client.Clock(a.Local())+ahead, c.Of[a.Part.Lock].fence+protocol.Residues)
	if a.first > most {
		w.Fail("ahead", "%v begins at %s, and no ticket of its name is above %s", a, TicketName(a.first), TicketName(most))
	}
}

func (c *checks) gone(a *Attempt) {
	if a.Part.register == nil {
		c.Of[a.Part.Lock].gone(a)
	}
}

// Bounds on what one claim does within a second.
const (
	maxRequests = 40 // per node
	maxTicks    = 100
)

// busy: nothing spins.
func (c *checks) busy(a *Attempt) {
	w := c.w
	if w.Now-a.window > course.Moment(time.Second) {
		a.window, a.requests, a.ticks = w.Now, 0, 0
		a.claimsThen = 0
		for _, n := range w.Nodes {
			a.claimsThen += a.Part.data(n).Size() - n.Sent
		}
	}
	w.Stats.Busiest = max(w.Stats.Busiest, a.requests/len(w.Nodes))
	times := max(1, int(w.TTL/a.TTL)) // a client with a shorter ttl has more to do
	if a.requests > times*maxRequests*len(w.Nodes)+w.portions(a) || a.ticks > times*maxTicks {
		w.Fail("busy", "%v: %d requests and %d ticks within a second", a, a.requests, a.ticks)
	}
}

// portions is how many requests the nodes may have asked of a beyond those of
// its own, in the second that is being counted: for each claim that was there
// in that time one to drop it, one to vote for it and one to tell it, and a
// portion with each.
func (c *checks) portions(a *Attempt) int {
	claims := a.claimsThen
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
			if now, m := n.Millis(w.Now.Add(n.setBack)), n.Data(i); !n.Down && !m.Empty(now) {
				w.Fail("orphan", "node %d still keeps %d claims, redlock key %q", n.Index, len(m.Claims(now)), m.Plain(now))
			}
		}
	}
}

// ExpectHeld fails the schedule unless t holds.
func (c *checks) ExpectHeld(t *Participant, why string) {
	if t.Att == nil || !t.Att.InForce() {
		c.w.Fail("lost", "%s does not hold, though %s", t.Name, why)
	}
}

// ExpectAll has each participant hold by then, and release.
func (c *checks) ExpectAll(by time.Duration) {
	c.w.Then(by, func() {
		for t := range c.w.Participants() {
			c.ExpectHeld(t, "there is a permit for each")
			t.Release()
		}
	})
}

// ExpectRead has a process read; with well that succeeds although one node of
// three is not. A read that meets a run which is just recording is
// inconclusive, and is repeated.
func (c *checks) ExpectRead(p *Proc, well bool) {
	tries := 0
	var read func()
	read = func() {
		p.StartRegisterOp(nil, lease.RegisterOp{Op: protocol.OpRead}, func(i *RegisterOp, ok bool) {
			switch tries++; {
			case ok || !well:
			case tries < 5 && i.Outcome() == lease.Inconclusive:
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
func (c *checks) ExpectRuns(well bool, parts ...*Participant) {
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
			c.w.Fail("stuck", "%d runs have begun, of %d, though one record of three is forged", len(w.Ledger.Opens), n)
		}
	})
}

// Served waits until t holds, and fails if it does not within a time.
func (c *checks) Served(t *Participant, within time.Duration) {
	c.w.Once(Holds(t), within, 0, func() {
		if !Holds(t)() {
			c.w.Fail("stuck", "%s does not hold: it counts on %v", t.Name, t.Proc.Members.Config())
		}
	})
}

// CaughtUp is the last step of an aim: the node is caught up by now.
func (c *checks) CaughtUp(n *Node) {
	if !n.Model.CaughtUp() {
		c.w.Fail("stuck", "node %d is not caught up", n.Index)
	}
}

// Remember: each name that all nodes had is on one of them still.
func (c *checks) Remember() {
	for name := range c.w.listed {
		known := false
		for _, n := range c.w.Nodes {
			known = known || n.Names[name]
		}
		if !known {
			c.w.Fail("record", "no node has %s any more", name)
		}
	}
}
