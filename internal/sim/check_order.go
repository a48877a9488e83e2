package sim

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
)

// This file holds schedules to the order of claims.

// passed: whatever fails, a is not admitted past claims that a majority of the
// nodes has before it. Each of these is in so many of a's views that a counts
// it.
//
// While nodes are being exchanged that is so in each of the two sets by itself,
// and for no claims of both together. Each claim that has settled has a
// majority of the set of before in any case. One that has a majority of the new
// set alone has not settled yet: it goes behind the fence of the set of before,
// and holds by none of the two.
//
// A holder whose deadline has passed while its process was stopped is over.
//
// A node within its guard time does not count. a may have had its vote before
// it lost its data, and a late message has brought it a claim of before since.
func (c *checker) passed(w *world, a *attempt) {
	for _, set := range a.Sets.Each() {
		c.passedIn(w, a, set)
	}
}

// passedIn is passed for one set of nodes.
func (c *checker) passedIn(w *world, a *attempt, set protocol.Quorums) {
	sum := a.Weight
	var before []string
	for _, p := range w.procs {
		for _, t := range p.parts {
			e := t.att
			if e == nil || t.lock != c.lock || e == a || e.phase.Final() || e.Ticket() >= a.Ticket() {
				continue
			}
			if e.phase == lease.Holding && !e.valid() {
				continue
			}
			nodes, weight := uint32(0), e.Weight
			for _, n := range w.nodes {
				i := a.part.proc.numbered(n)
				if i < 0 || n.model.Recovering(n.millis(w.now)) > 0 {
					continue
				}
				for _, o := range n.data(c.lock).Claims(n.millis(w.now)) {
					if o.ID == e.ID && o.Ticket == e.Ticket() {
						nodes, weight = nodes|1<<i, min(weight, o.Weight)
					}
				}
			}
			if set.Met(nodes) {
				sum += weight
				before = append(before, fmt.Sprintf("%v (%s)", e, phaseName(e.phase)))
			}
		}
	}
	if sum > max(w.capacity, w.permits.most) {
		w.fail("order", "%v is admitted past %s, which a majority has before it", a, strings.Join(before, " "))
	}
}

// inOrder: a claim that had settled before a began is before a in the queue,
// and a is admitted only if it leaves that claim room.
func (c *checker) inOrder(w *world, a *attempt) {
	sum := a.Weight
	for _, h := range c.holders {
		if h != a && h.Ticket() < a.Ticket() && h.valid() {
			sum += h.Weight
		}
	}
	for _, p := range w.procs {
		for _, t := range p.parts {
			if e := t.att; e != nil && t.lock == c.lock && e.phase == lease.Waiting && e.settled < a.began && e.Ticket() < a.Ticket() {
				sum += e.Weight
			}
		}
	}
	if sum > max(w.capacity, w.permits.most) {
		w.fail("order", "%v is admitted past the claims that waited before it", a)
	}
}
