package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/model"
	"github.com/quorate/quorate/internal/protocol"
)

// checks hold a schedule to what the protocol promises: each name by itself,
// and what is so for all.
type checks struct {
	of []*checker // by name
}

func newChecks(names int) (c checks) {
	for i := range max(1, names) {
		c.of = append(c.of, &checker{lock: i, local: localCheck{lock: i}})
	}
	return c
}

// always is what must be so at every moment.
func (c *checks) always(w *world) {
	for _, of := range c.of {
		of.always(w)
		if w.callers > 0 {
			of.local.always(w)
		}
	}
}

func (c *checks) changed(w *world, a *attempt, was lease.Phase) {
	if a.part.register == nil {
		c.of[a.part.lock].changed(w, a, was)
	}
}

// burst is how far ahead of the nodes' clocks a process may propose tickets by
// its own attempts.
const burst = 16*time.Millisecond + protocol.Residues*time.Microsecond

// began: a ticket is ahead of the nodes' clocks only as far as tickets of its
// own name are. With one ticket clock for all names the tickets of one that is
// claimed often would take all others ahead, until the nodes refuse them.
func (c *checks) began(w *world, a *attempt) {
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

// checker holds the claims of one name to that.
type checker struct {
	lock    int
	fence   protocol.Ticket // the highest that any node has had, where there are several names
	local   localCheck
	holders []*attempt
	highest []admission // per weight: the highest ticket that was ever admitted
	entered []*attempt  // admitted by the event that is being handled
	free    moment      // since when a waiter could be served and is not
}

type admission struct {
	weight uint64
	ticket protocol.Ticket
	holder *attempt
}

func (c *checker) always(w *world) {
	if rival := w.rival != nil && w.rival.valid() && c.lock == 0; len(c.holders) > 1 || rival {
		var sum uint64
		if rival {
			sum = w.capacity
		}
		for _, a := range c.holders {
			if a.valid() && !a.part.proc.mayBeWrong() {
				sum += a.Weight
			}
		}
		if sum > max(w.capacity, w.permits.most) {
			holder := fmt.Sprint(c.holders)
			if rival {
				holder += " and the rival"
			}
			w.fail("capacity", "%d of %d held by %s", sum, w.capacity, holder)
		}
	}
	for _, a := range c.holders {
		if a.expired && a.valid() {
			w.fail("final", "%v is valid again after its deadline", a)
		}
	}
	for _, a := range c.entered {
		c.passed(w, a)
	}
	c.entered = c.entered[:0]
	if w.maxHold > 0 {
		c.overlong(w)
	}
	if w.clean || w.limping {
		c.prompt(w)
	}
}

// changed follows the phases.
func (c *checker) changed(w *world, a *attempt, was lease.Phase) {
	if was.Final() {
		w.fail("final", "%v goes from %s to %s", a, phaseName(was), phaseName(a.phase))
	}
	if a.phase.Final() {
		c.gone(a)
	}
	switch {
	case a.Evicted() && !a.Sets.Met(a.evictedBy):
		w.fail("evicted", "%v is evicted by fewer nodes than a quorum: %b", a, a.evictedBy)
	case a.Evicted():
	case a.phase == lease.Expired && a.waited && !a.begun:
		w.fail("unsent", "%v is abandoned, and starts again at the end of the queue, though nothing of it has been sent", a)
	case a.phase == lease.Holding:
		c.admitted(w, a)
	case a.phase == lease.Waiting && w.clean:
		c.settled(w, a)
	case w.clean && (a.phase == lease.Lost || a.phase == lease.Expired || a.phase == lease.NoQuorum || a.phase == lease.Rejected):
		w.fail("lost", "%v is %s though nothing has failed", a, phaseName(a.phase))
	}
}

// settled: with a residue of its own a claim is not in the way of any other, so
// one round after the join settles it; like residues cost a few more.
func (c *checker) settled(w *world, a *attempt) {
	most := 8
	if w.alone(a) && w.window == 0 { // while some requests wait for room, others pass
		most = 2
	}
	if a.rounds > most {
		w.fail("rounds", "%v took %d rounds to settle", a, a.rounds)
	}
}

// alone: no other attempt that may meet a has its residue.
func (w *world) alone(a *attempt) bool {
	return w.residues == protocol.Residues && w.taken[a.ID.Residue()] == 1
}

// admitted: "a later conflicting holder has a higher ticket".
func (c *checker) admitted(w *world, a *attempt) {
	c.free = 0
	w.stats.Admissions++
	w.stats.Rounds += a.rounds
	c.holders = append(c.holders, a)
	if a.part.proc.mayBeWrong() {
		return
	}
	known := false
	for i := range c.highest {
		h := &c.highest[i]
		if h.weight+a.Weight > max(w.capacity, w.permits.most) && h.ticket >= a.Ticket() {
			w.fail("token", "%v is admitted at %s after %v at %s", a, ticketName(a.Ticket()), h.holder, ticketName(h.ticket))
		}
		if h.weight == a.Weight {
			known = true
			if a.Ticket() > h.ticket {
				h.ticket, h.holder = a.Ticket(), a
			}
		}
	}
	if !known {
		c.highest = append(c.highest, admission{a.Weight, a.Ticket(), a})
	}
	w.permits.fits(w, a, c.holders)
	c.entered = append(c.entered, a)
	if w.clean {
		c.inOrder(w, a)
	}
}

// prompt: while nothing that is needed fails, room is not left unused for long.
// A push is what passes it on; a beat would do so too, but only a third of a
// lease later.
func (c *checker) prompt(w *world) {
	if w.missing > 0 && !w.eager {
		return // time-outs count in too
	}
	var first *attempt
	for _, p := range w.procs {
		for _, t := range p.parts {
			if a := t.att; a != nil && t.lock == c.lock && a.phase < lease.Holding && !a.Postponed() && (first == nil || a.Ticket() < first.Ticket()) {
				first = a
			}
		}
	}
	if first != nil {
		sum := first.Weight
		for _, h := range c.holders {
			sum += h.Weight
		}
		if sum > w.room() {
			first = nil
		}
	}
	slow := w.slowest()
	if first != nil && first.Counting && first.Voted(first.part.proc.local(w.now)) {
		slow += 2 * w.nodeTimeout // a claim that is blocked by counting alone gets no push, and asks now and then
	}
	if w.limping {
		// A claim may be settled on a node that fails. Where a leave does not
		// get there, or a claim has to settle elsewhere first, that costs a
		// lease and a beat.
		slow += w.ttl + w.ttl/50 + w.ttl/3 + 4*w.nodeTimeout
	}
	switch {
	case first == nil:
		c.free = 0
	case c.free == 0:
		c.free = w.now
	case w.now-c.free > moment(slow):
		w.fail("late", "there is room for %v, and it is not served within %v", first, slow)
	}
}

// room is how many permits there are now.
func (w *world) room() uint64 {
	if w.permits.limit > 0 {
		return w.permits.limit
	}
	return w.capacity
}

// slowest is how long a hand-over may take when nothing fails.
func (w *world) slowest() time.Duration {
	if w.permits.most > 0 {
		return w.ttl // a claim that is blocked by counting alone gets no push, and asks ever more rarely
	}
	return max(40*(w.delay+w.jitter+w.tail), 50*time.Millisecond)
}

// gone: a holds no more.
func (c *checker) gone(a *attempt) {
	c.free = 0
	if i := slices.Index(c.holders, a); i >= 0 {
		c.holders = slices.Delete(c.holders, i, i+1)
	}
}

// Bounds on what one claim does within a second.
const (
	maxRequests = 40 // per node
	maxTicks    = 100
)

// busy: nothing spins.
func (c *checks) busy(w *world, a *attempt) {
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
func (w *world) portions(a *attempt) int {
	claims := a.claimsThen
	for _, n := range w.nodes {
		claims += n.sent
	}
	return 3 * claims / cmp.Or(w.portion, model.Portion)
}

// end is what must be so after all claims have left: nothing is anywhere, at
// once if nothing has failed, and after a lease otherwise, which ends later
// where the clock has been set back.
func (c *checks) end(w *world) {
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
