package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
)

// This file owns what each name by itself is held to. The order of claims is in
// check_order.go.

// checker holds the claims of one name to what the protocol promises.
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
	own := w.residues == protocol.Residues && w.taken[a.ID.Residue()] == 1 // no other attempt that may meet a has it
	if own && w.window == 0 {                                              // while some requests wait for room, others pass
		most = 2
	}
	if a.rounds > most {
		w.fail("rounds", "%v took %d rounds to settle", a, a.rounds)
	}
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
	for t := range w.participants() {
		if a := t.att; a != nil && t.lock == c.lock && a.phase < lease.Holding && !a.Postponed() && (first == nil || a.Ticket() < first.Ticket()) {
			first = a
		}
	}
	if first != nil {
		sum := first.Weight
		for _, h := range c.holders {
			sum += h.Weight
		}
		if sum > cmp.Or(w.permits.limit, w.capacity) {
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

// gone: a holds no more.
func (c *checker) gone(a *attempt) {
	c.free = 0
	if i := slices.Index(c.holders, a); i >= 0 {
		c.holders = slices.Delete(c.holders, i, i+1)
	}
}

// overlong: no hold outlasts its bound by more than a lease, however long its
// holder keeps it.
func (c *checker) overlong(w *world) {
	for _, a := range c.holders {
		if a.ends > 0 && a.valid() && w.now > a.ends.add(w.ttl+w.ttl/20+w.late) {
			w.fail("overlong", "%v holds on, and its bound was at %v", a, time.Duration(a.ends))
		}
	}
}
