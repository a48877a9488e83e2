package trial

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/world"
)

// This file holds schedules to the order of claims, and of runs on the record.

// passed: whatever fails, a is not admitted past claims that a majority of the
// nodes has before it. Each of these is in so many of a's views that a counts
// it.
//
// While nodes are being exchanged that is so in each of the two sets by itself,
// and for no claims of both together. Each claim that has settled has a
// majority of the old set in any case. One that has a majority of the new set
// alone has not settled yet: it goes behind the fence of the old set, and holds
// by none of the two.
//
// A holder whose deadline has passed while its process was stopped is over.
//
// A node within its guard time does not count. a may have had its vote before
// it lost its data, and a late message has brought it an old claim since.
func (c *checker) passed(w *Schedule, a *world.Attempt) {
	a.Claim.State.Sets.Each(func(set uint32) bool {
		c.passedIn(w, a, set)
		return true
	})
}

// passedIn is passed for one set of nodes.
func (c *checker) passedIn(w *Schedule, a *world.Attempt, set uint32) {
	sum := a.Claim.State.Weight
	var before []string
	for t := range w.Participants() {
		e := t.Att
		if e == nil || t.Lock != c.lock || e == a || e.Seen.Final() || e.Claim.State.Ticket() >= a.Claim.State.Ticket() {
			continue
		}
		if e.Seen == lease.Holding && !e.InForce() {
			continue
		}
		nodes, weight := uint32(0), e.Claim.State.Weight
		for _, n := range w.Nodes {
			i := a.Part.Proc.Numbered(n)
			if i < 0 || n.Model.Recovering(n.Millis()) > 0 {
				continue
			}
			for _, o := range n.Data(c.lock).Claims(n.Millis()) {
				if o.ID == e.Claim.State.ID && o.Ticket == e.Claim.State.Ticket() {
					nodes, weight = nodes|1<<i, min(weight, o.Weight)
				}
			}
		}
		if protocol.Most(set, nodes) {
			sum += weight
			before = append(before, fmt.Sprintf("%v (%s)", e, world.PhaseName(e.Seen)))
		}
	}
	if sum > max(w.Capacity, w.Permits.Most) {
		w.Fail("order", "%v is admitted past %s, which a majority has before it", a, strings.Join(before, " "))
	}
}

// inOrder: a claim that had settled before a began is before a in the queue,
// and a is admitted only if it leaves that claim room.
func (c *checker) inOrder(w *Schedule, a *world.Attempt) {
	sum := a.Claim.State.Weight
	for _, h := range c.holders {
		if h != a && h.Claim.State.Ticket() < a.Claim.State.Ticket() && h.InForce() {
			sum += h.Claim.State.Weight
		}
	}
	for t := range w.Participants() {
		if e := t.Att; e != nil && t.Lock == c.lock && e.Seen == lease.Waiting && e.Settled < a.BeganAt &&
			e.Claim.State.Ticket() < a.Claim.State.Ticket() {
			sum += e.Claim.State.Weight
		}
	}
	if sum > max(w.Capacity, w.Permits.Most) {
		w.Fail("order", "%v is admitted past the claims that waited before it", a)
	}
}

// lost notes that a node has lost its data: of records a majority must remain
// caught up, or be repaired before the next one goes. That is asked of a set
// that is about to count alone, too: its nodes were looked at before, and what
// they lose between the look and the decision is as lost as after it.
func (l *ledger) lost(w *Schedule) {
	caughtUp := w.Decisions.Numbers(func(n *world.Node) bool {
		return n.Model.CaughtUp() && !n.Unmarked && !n.Clock.Unsettled()
	})
	for _, sets := range append(w.Operators.next(), w.Decisions.Sets()) {
		l.void = l.void || !sets.Attested(caughtUp)
	}
}

// settled holds what an operation has found, or done, against all others.
func (l *ledger) settled(w *Schedule, i *world.RegisterOp) {
	if l.void {
		return
	}
	w.Stats.RegisterOps++
	found := i.Op.Newest().Version
	content := i.Op.Newest()
	if i.Op.Op == protocol.OpPut {
		content = i.Op.Stored
	}
	l.same(w, i, content)
	reported := found
	switch i.Op.Op {
	case protocol.OpOpen:
		// What it finds on a minority it does not return before it has recorded
		// it again.
		if _, few := i.Op.Adopt(); few {
			reported = protocol.Version{}
		}
		l.Opens = append(l.Opens, opened{i.Op.Stored.Version, found})
	case protocol.OpPut:
		reported = i.Op.Stored.Version
		l.Puts = append(l.Puts, reported)
	}
	if i.Op.Op != protocol.OpPut && found.Compare(i.Before) < 0 {
		w.Fail("record", "%v finds %s though %s was there before it began", i,
			world.VersionName(found), world.VersionName(i.Before))
	}
	// What a caller has got as recorded, each later run has found: its own
	// write, or what it read.
	if reported != (protocol.Version{}) && !slices.Contains(l.reported, reported) {
		l.reported = append(l.reported, reported)
	}
	for _, o := range l.Opens {
		for _, p := range l.reported {
			if p.Run(o.Run) < 0 && p.Compare(o.found) > 0 {
				w.Fail("record", "%v: %s is recorded though the run at %s has begun and found %s", i,
					world.VersionName(p), world.VersionName(o.Run), world.VersionName(o.found))
			}
		}
	}
	if reported.Compare(l.Best) > 0 {
		l.Best = reported
	}
}

// same: under one version every reader gets the same.
func (l *ledger) same(w *Schedule, i *world.RegisterOp, s protocol.Stored) {
	if l.values == nil {
		l.values = map[protocol.Version]string{}
	}
	text := fmt.Sprintf("%t %s", s.Erased, s.Value)
	if was, known := l.values[s.Version]; known && was != text {
		w.Fail("record", "%v: %s is %q and was %q", i, world.VersionName(s.Version), text, was)
	}
	l.values[s.Version] = text
}
