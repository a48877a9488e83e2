package sim

import (
	"cmp"
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/model"
	"github.com/quorate/quorate/internal/protocol"
)

// This file owns the violation that a schedule shows. The promises are those of
// each name (check.go), and of all together.

// checks hold a schedule to what the protocol promises: each name by itself,
// and what is so for all.
type checks struct {
	w       *world
	of      []*checker // by name
	broken  *Violation // the first; nil: none
	excused bool       // a jump could not be noticed: two may hold
}

// Violation is what a schedule showed.
type Violation struct {
	Kind string // as in the package's documentation; or panic
	What string
	At   time.Duration
}

func (v *Violation) String() string { return fmt.Sprintf("%s at %v: %s", v.Kind, v.At, v.What) }

func newChecks(w *world) (c checks) {
	c.w = w
	for i := range max(1, w.locks) {
		c.of = append(c.of, &checker{lock: i, local: localCheck{lock: i}})
	}
	return c
}

// always is what must be so at every moment.
func (c *checks) always() {
	for _, of := range c.of {
		of.always(c.w)
		if c.w.callers > 0 {
			of.local.always(c.w)
		}
	}
}

func (c *checks) changed(a *attempt, was lease.Phase) {
	if a.part.register == nil {
		c.of[a.part.lock].changed(c.w, a, was)
	}
}

// burst is how far ahead of the nodes' clocks a process may propose tickets by
// its own attempts.
const burst = 16*time.Millisecond + protocol.Residues*time.Microsecond

// began: a ticket is ahead of the nodes' clocks only as far as tickets of its
// own name are. With one ticket clock for all names the tickets of one that is
// claimed often would take all others ahead, until the nodes refuse them.
func (c *checks) began(a *attempt) {
	w := c.w
	if w.locks == 0 || w.wire != nil || a.part.register != nil {
		return
	}
	ahead := protocol.Ticket(burst.Microseconds())
	if !w.clean { // the median may be behind that of before: of fewer clocks, and of one that was set back
		ahead += protocol.Ticket((w.skew + w.setBack()).Microseconds())
	}
	most := max(a.part.proc.client.Clock(a.local())+ahead, c.of[a.part.lock].fence+protocol.Residues)
	if a.first > most {
		w.fail("ahead", "%v begins at %s, and no ticket of its name is above %s", a, ticketName(a.first), ticketName(most))
	}
}

func (c *checks) gone(a *attempt) {
	if a.part.register == nil {
		c.of[a.part.lock].gone(a)
	}
}

// Bounds on what one claim does within a second.
const (
	maxRequests = 40 // per node
	maxTicks    = 100
)

// busy: nothing spins.
func (c *checks) busy(a *attempt) {
	w := c.w
	if w.now-a.window > moment(time.Second) {
		a.window, a.requests, a.ticks = w.now, 0, 0
		a.claimsThen = 0
		for _, n := range w.nodes {
			a.claimsThen += a.part.data(n).Size() - n.sent
		}
	}
	w.stats.Busiest = max(w.stats.Busiest, a.requests/len(w.nodes))
	times := max(1, int(w.ttl/a.TTL)) // a client with a shorter ttl has more to do
	if a.requests > times*maxRequests*len(w.nodes)+w.portions(a) || a.ticks > times*maxTicks {
		w.fail("busy", "%v: %d requests and %d ticks within a second", a, a.requests, a.ticks)
	}
}

// portions is how many requests the nodes may have asked of a beyond those of
// its own, in the second that is being counted: for each claim that was there
// in that time one to drop it, one to vote for it and one to tell it, and a
// portion with each.
func (c *checks) portions(a *attempt) int {
	claims := a.claimsThen
	for _, n := range c.w.nodes {
		claims += n.sent
	}
	return 3 * claims / cmp.Or(c.w.portion, model.Portion)
}

// end is what must be so after all claims have left: nothing is anywhere, at
// once if nothing has failed, and after a lease otherwise, which ends later
// where the clock has been set back.
func (c *checks) end() {
	w := c.w
	if w.tries && w.stats.Admissions == 0 {
		w.fail("free", "%d processes tried a free name at the same moment, and none has it", len(w.procs))
	}
	if !w.clean {
		left := w.ttl
		if w.rival != nil {
			left = w.rival.lease
		}
		w.now = w.now.add(left + left/50 + time.Millisecond)
	}
	for _, n := range w.nodes {
		for i := range c.of {
			if now, m := n.millis(w.now.add(n.setBack)), n.data(i); !n.down && !m.Empty(now) {
				w.fail("orphan", "node %d still keeps %d claims, redlock key %q", n.idx, len(m.Claims(now)), m.Plain(now))
			}
		}
	}
}

func (c *checks) fail(kind, format string, args ...any) {
	if c.excused && (kind == "capacity" || kind == "token") {
		return
	}
	if c.broken == nil {
		c.broken = &Violation{kind, fmt.Sprintf(format, args...), time.Duration(c.w.now)}
		c.w.log("VIOLATION %v", c.broken)
	}
}

// expectHeld fails the schedule unless t holds.
func (c *checks) expectHeld(t *participant, why string) {
	if t.att == nil || !t.att.valid() {
		c.fail("lost", "%s does not hold, though %s", t.name, why)
	}
}

// expectAll has each participant hold by then, and release.
func (c *checks) expectAll(by time.Duration) {
	c.w.then(by, func() {
		for t := range c.w.participants() {
			c.expectHeld(t, "there is a permit for each")
			t.release()
		}
	})
}

// expectRead has a process read; with well that succeeds although one node of
// three is not. A read that meets a run which is just recording is
// inconclusive, and is repeated.
func (c *checks) expectRead(p *proc, well bool) {
	tries := 0
	var read func()
	read = func() {
		p.startRegisterOp(nil, lease.RegisterOp{Op: protocol.OpRead}, func(i *registerOp, ok bool) {
			switch tries++; {
			case ok || !well:
			case tries < 5 && i.Outcome() == lease.Inconclusive:
				p.later(c.w.around(c.w.nodeTimeout), read)
			default:
				c.fail("stuck", "%v: cannot be read though one record of three is forged", i)
			}
		})
	}
	read()
}

// expectRuns has the participants begin a run each within three leases,
// although one node of three is not well. One that has come to nothing is begun
// again.
func (c *checks) expectRuns(well bool, parts ...*participant) {
	w, n := c.w, len(c.w.ledger.opens)+len(parts)
	again := func() {
		for _, t := range parts {
			if len(w.ledger.opens) < n && !w.draining {
				t.acquire(false)
			}
		}
	}
	again()
	for i := range 5 {
		w.at(w.ttl*time.Duration(i+1)/2, again)
	}
	w.at(3*w.ttl, func() {
		if len(w.ledger.opens) < n && !w.draining && well {
			c.fail("stuck", "%d runs have begun, of %d, though one record of three is forged", len(w.ledger.opens), n)
		}
	})
}

// served waits until t holds, and fails if it does not within a time.
func (c *checks) served(t *participant, within time.Duration) {
	c.w.once(holds(t), within, 0, func() {
		if !holds(t)() {
			c.fail("stuck", "%s does not hold: it counts on %v", t.name, t.proc.members.Config())
		}
	})
}

// caughtUp is the last step of an aim: the node is caught up by now.
func (c *checks) caughtUp(n *node) {
	if !n.model.CaughtUp() {
		c.fail("stuck", "node %d is not caught up", n.idx)
	}
}

// remember: each name that all nodes had is on one of them still.
func (c *checks) remember() {
	for name := range c.w.listed {
		known := false
		for _, n := range c.w.nodes {
			known = known || n.names[name]
		}
		if !known {
			c.fail("record", "no node has %s any more", name)
		}
	}
}
