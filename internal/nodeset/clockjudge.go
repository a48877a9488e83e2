package nodeset

import (
	"github.com/quorate/quorate/internal/protocol"
	"math/bits"
	"time"
)

// This file owns the judgement: whose clock it was, the node's or this
// process's. The cases and their evidence are in nodeclock.go. The order
// matters. If q nodes have parted by as much, that settles it: this process's
// clock stood still, and no node is blamed for it. Only then is each case
// looked at by itself. A case that no evidence settles is taken for both at
// once.
// Invariant: a node is made to begin another incarnation only if q other nodes
// exclude that this process's clock stood still by as much.

// Tick decides what can be decided.
func (c *Clocks) Tick(now protocol.Time) {
	if c.open == 0 {
		return
	}
	c.judgeOwnClock(now)
	for i := range c.cases {
		k := &c.cases[i]
		if !k.open {
			continue
		}
		steady := c.Sets.Met(k.steady)
		if steady && !k.blamed { //mutant:RuleBlame=!k.blamed
			k.blamed = true
			c.Out = append(c.Out, ClockEvent{Kind: ClockJumped, Node: i, By: k.by}, ClockEvent{Kind: ClockMark, Node: i})
		}
		if !k.blamed && !k.doubted && now >= c.due(k) {
			c.doubt(i)
		}
		// No other node may show that this process's clock went on. Then the
		// leases that they gave end earlier, too.
		if k.doubted && !k.blamed && !k.alone && now >= k.at.Add(slowNodeFactor*c.Wait) {
			if k.alone = true; k.steady == 0 {
				c.early(1<<len(c.bounds)-1, k.hi)
			}
		}
		if now >= k.until {
			c.closeCase(i)
		}
	}
}

// Read takes a node's reading. It returns whether what came with it counts.
// Invariant: a node in doubt does not vote. When its case closes, all leases
// have ended that it may have ended early.
func (c *Clocks) Read(node int, r Reading) (counts bool) {
	b, k := c.bounds[node], &c.cases[node]
	c.noteEvidence(node, r)
	switch {
	case b.Take(r):
	case !b.known: // of before this process slept
		return false
	case r.Push: //mutant:RuleClock
		c.Out = append(c.Out, ClockEvent{Kind: ClockAsk, Nodes: 1 << node}) // an answer will show by how much
		return false
	default:
		c.suspect(node, r) //mutant:RuleClock=b.Forget(0)
	}
	c.Tick(r.Received)
	if k.open && k.blamed {
		c.Out = append(c.Out, ClockEvent{Kind: ClockMark, Node: node}) // it has not been marked yet
	}
	return !k.open //mutant:RuleDoubt=!k.open || k.doubted && !k.blamed
}

// doubt: it is unknown whose clock it was, so the node does not count until its
// case is closed, and its leases of before end for the claims that have them.
// Invariant: a case in doubt stays open until all leases have ended that the
// node gave to any client. None is longer than half the guard time of the set.
func (c *Clocks) doubt(node int) {
	k := &c.cases[node]
	k.doubted = true
	c.Out = append(c.Out, ClockEvent{Kind: ClockDoubted, Node: node, By: k.by})
	if k.hi > 0 {
		c.early(1<<node, max(k.hi, int64(c.Longest))) // no lease is longer
	}
}

// Regroup says which nodes count, and the guard time of their set. A longer one
// holds for open cases, too: leases of clients that follow before this one may
// be as long.
func (c *Clocks) Regroup(sets protocol.Quorums, guard time.Duration) {
	c.Sets, c.Longest = sets, max(c.Longest, guard/2)
	for i := range c.cases {
		if k := &c.cases[i]; k.open {
			k.until = max(k.until, k.at.Add(c.caseLasts(k)))
		}
	}
}

// judgeOwnClock: this process's clock has stood still if a majority of the
// nodes, at least two, may have parted from it by as much: a majority does not
// jump.
func (c *Clocks) judgeOwnClock(now protocol.Time) { //mutant:RuleStood
	for i := range c.cases {
		if !c.cases[i].open {
			continue
		}
		// Intervals that have a point in common have the greatest of their
		// lower ends.
		nodes := uint32(0)
		for j := range c.cases {
			if k := &c.cases[j]; k.open && k.lo <= c.cases[i].lo && c.cases[i].lo <= k.hi {
				nodes |= 1 << j
			}
		}
		if bits.OnesCount32(nodes) < 2 || !c.Sets.Met(nodes) {
			continue
		}
		c.Out = append(c.Out, ClockEvent{Kind: ClockStood, By: c.cases[i].by})
		c.early(1<<len(c.bounds)-1, c.cases[i].hi)
		for j, b := range c.bounds {
			switch {
			case nodes&(1<<j) != 0:
				c.closeCase(j)
			case !c.cases[j].open: // an answer of before may still be under way
				b.Forget(now)
			}
		}
		return
	}
}
