package trial

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/world"
)

// The promises that each name is checked against by itself. The order of claims
// is in check_order.go.

func (c *checker) always(w *Schedule) {
	if rival := w.Rival != nil && w.Rival.Valid() && c.lock == 0; len(c.holders) > 1 || rival {
		var sum uint64
		if rival {
			sum = w.Capacity
		}
		for _, a := range c.holders {
			if a.InForce() && !a.Part.Proc.MayBeWrong() {
				sum += a.Claim.State.Weight
			}
		}
		if sum > max(w.Capacity, w.Permits.Most) {
			holder := fmt.Sprint(c.holders)
			if rival {
				holder += " and the rival"
			}
			w.Fail("capacity", "%d of %d held by %s", sum, w.Capacity, holder)
		}
	}
	for _, a := range c.holders {
		if a.Expired && a.InForce() {
			w.Fail("final", "%v is valid again after its deadline", a)
		}
	}
	for _, a := range c.entered {
		c.passed(w, a)
	}
	c.entered = c.entered[:0]
	if w.MaxHold > 0 {
		c.overlong(w)
	}
	if w.Clean || w.Limping {
		c.prompt(w)
	}
}

// changed follows the phases.
func (c *checker) changed(w *Schedule, a *world.Attempt, was lease.Phase) {
	if was.Final() {
		w.Fail("final", "%v goes from %s to %s", a, world.PhaseName(was), world.PhaseName(a.Seen))
	}
	if a.Seen.Final() {
		c.gone(a)
	}
	switch {
	case a.Claim.State.Evicted() && !a.Claim.State.Sets.Met(a.EvictedBy):
		w.Fail("evicted", "%v is evicted by fewer nodes than a quorum: %b", a, a.EvictedBy)
	case a.Claim.State.Evicted():
	case a.Seen == lease.Expired && a.Waited && !a.Begun:
		w.Fail("unsent",
			"%v is abandoned, and starts again at the end of the queue, though nothing of it has been sent", a)
	case a.Seen == lease.Holding:
		c.admitted(w, a)
	case a.Seen == lease.Waiting && w.Clean:
		c.settled(w, a)
	case w.Clean && (a.Seen == lease.Lost || a.Seen == lease.Expired || a.Seen == lease.NoQuorum ||
		a.Seen == lease.Rejected):
		w.Fail("lost", "%v is %s though nothing has failed", a, world.PhaseName(a.Seen))
	}
}

// settled: with a residue of its own a claim is not in the way of any other, so
// one round after the join settles it; like residues cost a few more.
func (c *checker) settled(w *Schedule, a *world.Attempt) {
	most := 8
	// No other attempt that may meet a has it.
	own := w.Residues == protocol.Residues && w.Taken[a.Claim.State.ID.Residue()] == 1
	if own && w.Window == 0 { // while some requests wait for room, others pass
		most = 2
	}
	if a.Rounds > most {
		w.Fail("rounds", "%v took %d rounds to settle", a, a.Rounds)
	}
}

// admitted: "a later conflicting holder has a higher ticket".
func (c *checker) admitted(w *Schedule, a *world.Attempt) {
	c.free = 0
	w.Stats.Admissions++
	w.Stats.Rounds += a.Rounds
	c.holders = append(c.holders, a)
	if a.Part.Proc.MayBeWrong() {
		return
	}
	known := false
	for i := range c.highest {
		h := &c.highest[i]
		if h.weight+a.Claim.State.Weight > max(w.Capacity, w.Permits.Most) && h.ticket >= a.Claim.State.Ticket() {
			w.Fail("token", "%v is admitted at %s after %v at %s", a, world.TicketName(a.Claim.State.Ticket()),
				h.holder, world.TicketName(h.ticket))
		}
		if h.weight == a.Claim.State.Weight {
			known = true
			if a.Claim.State.Ticket() > h.ticket {
				h.ticket, h.holder = a.Claim.State.Ticket(), a
			}
		}
	}
	if !known {
		c.highest = append(c.highest, admission{a.Claim.State.Weight, a.Claim.State.Ticket(), a})
	}
	w.Permits.fits(w, a, c.holders)
	c.entered = append(c.entered, a)
	if w.Clean {
		c.inOrder(w, a)
	}
}

// prompt: while nothing that is needed fails, room is not left unused for long.
// A push is what passes it on; a beat would do so too, but only a third of a
// lease later.
func (c *checker) prompt(w *Schedule) {
	if w.Faults.missing > 0 && !w.Eager {
		return // time-outs count in too
	}
	var first *world.Attempt
	for t := range w.Participants() {
		if a := t.Att; a != nil && t.Lock == c.lock && a.Seen < lease.Holding && !a.Claim.State.NotStarted() &&
			(first == nil || a.Claim.State.Ticket() < first.Claim.State.Ticket()) {
			first = a
		}
	}
	if first != nil {
		sum := first.Claim.State.Weight
		for _, h := range c.holders {
			sum += h.Claim.State.Weight
		}
		if sum > cmp.Or(w.Permits.limit, w.Capacity) {
			first = nil
		}
	}
	slow := w.Slowest()
	if first != nil && first.Claim.State.Counting && first.Claim.State.Voted(first.Part.Proc.Now()) {
		slow += 2 * w.NodeTimeout // a claim that is blocked by counting alone gets no push, and asks now and then
	}
	if w.Limping {
		// A claim may be settled on a node that fails. Where a leave does not
		// get there, or a claim has to settle elsewhere first, that costs a
		// lease and a beat.
		slow += w.TTL + w.TTL/50 + w.TTL/3 + 4*w.NodeTimeout
	}
	switch {
	case first == nil:
		c.free = 0
	case c.free == 0:
		c.free = w.Now
	case w.Now-c.free > course.Moment(slow):
		w.Fail("late", "there is room for %v, and it is not served within %v", first, slow)
	}
}

// gone: a holds no more.
func (c *checker) gone(a *world.Attempt) {
	c.free = 0
	if i := slices.Index(c.holders, a); i >= 0 {
		c.holders = slices.Delete(c.holders, i, i+1)
	}
}

// overlong: no hold outlasts its bound by more than a lease, however long its
// holder keeps it.
func (c *checker) overlong(w *Schedule) {
	for _, a := range c.holders {
		if a.Bound > 0 && a.InForce() && w.Now > a.Bound.Add(w.TTL+w.TTL/20+w.Late) {
			w.Fail("overlong", "%v holds on, and its bound was at %v", a, time.Duration(a.Bound))
		}
	}
}
