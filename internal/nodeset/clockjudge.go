package nodeset

import (
	"github.com/quorate/quorate/internal/invariant"
	"github.com/quorate/quorate/internal/protocol"
	"math/bits"
	"time"
)

// Deciding whose clock was wrong, the node's or this process's. The cases and
// their evidence are in nodeclock.go. The order matters. If q nodes have parted
// by the same amount, this process's clock stood still, and no node is blamed.
// Only then is each case judged by itself. A case without decisive evidence is
// treated as if both clocks were wrong.
// Invariant: a node is asked to begin another incarnation only if q other nodes
// rule out that this process's clock stood still by that amount.

// Tick decides every case that can now be decided.
func (c *Clocks) Tick(now protocol.Time) {
	if invariant.On {
		defer c.check()
	}
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
			c.Out = append(c.Out, ClockEvent{Kind: ClockReportJump, Node: i, By: k.by},
				ClockEvent{Kind: ClockMark, Node: i})
		}
		if !k.blamed && !k.doubted && now >= c.due(k) {
			c.doubt(i)
		}
		// Perhaps no other node shows that this process's clock kept running.
		// Then the leases of the other nodes end earlier, too.
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

// Read takes a node's reading and returns whether the reply that contained it
// counts.
// Invariant: a node in doubt does not vote. By the time its case closes, all
// leases have ended that it may have ended early.
func (c *Clocks) Read(node int, r Reading) (counts bool) {
	b, k := c.bounds[node], &c.cases[node]
	c.noteEvidence(node, r)
	switch {
	case b.Take(r):
	case !b.known: // sent before this process slept
		return false
	case r.Push: //mutant:RuleClock
		c.Out = append(c.Out, ClockEvent{Kind: ClockAsk, Nodes: 1 << node}) // an answer will show by how much
		return false
	default:
		c.suspect(node, r) //mutant:RuleClock=b.Forget(0)
	}
	c.Tick(r.Received)
	if k.open && k.blamed {
		// The node has not yet begun another incarnation, so make it begin one.
		c.Out = append(c.Out, ClockEvent{Kind: ClockMark, Node: node})
	}
	return !k.open //mutant:RuleDoubt=!k.open || k.doubted && !k.blamed
}

// doubt handles a case in which it is unknown whose clock was wrong. The node
// does not count until the case closes, and its earlier leases end early for
// their claims.
// Invariant: a case in doubt stays open until every lease has ended that the
// node gave to any client. None is longer than half the set's guard time.
func (c *Clocks) doubt(node int) {
	k := &c.cases[node]
	k.doubted = true
	c.Out = append(c.Out, ClockEvent{Kind: ClockDoubted, Node: node, By: k.by})
	if k.hi > 0 {
		c.early(1<<node, max(k.hi, int64(c.Longest))) // no lease is longer
	}
}

// Regroup sets which nodes count, and their set's guard time. A longer guard
// time also extends open cases: clients that learn of it before this one may
// take leases that long.
func (c *Clocks) Regroup(sets protocol.Quorums, guard time.Duration) {
	c.Sets, c.Longest = sets, max(c.Longest, guard/2)
	for i := range c.cases {
		if k := &c.cases[i]; k.open {
			k.until = max(k.until, k.at.Add(c.caseLasts(k)))
		}
	}
}

// judgeOwnClock closes the cases of a majority of the nodes, at least two, if
// all of them can have parted from this process's clock by the same amount:
// then this process's clock stood still, because a majority of clocks does not
// jump.
func (c *Clocks) judgeOwnClock(now protocol.Time) { //mutant:RuleStood
	for i := range c.cases {
		if !c.cases[i].open {
			continue
		}
		// If intervals have a common point, the greatest of their lower ends is
		// one.
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
			case !c.cases[j].open: // an earlier answer may still be in flight
				b.Forget(now)
			}
		}
		return
	}
}
