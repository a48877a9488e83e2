package protocol

import (
	"math/bits"
	"time"
)

// This file owns the judgement: whose clock it was, the node's or this
// process's. The cases and their evidence are in nodeclock.go.
//
// The order matters. If q nodes have parted by as much, that settles it: this
// process's clock stood still, and no node is blamed for it. Only then is each
// case looked at by itself. A case that no evidence settles is taken for both
// at once: this process's leases end earlier, and the node's votes count later.
// Both are safe whichever clock it was.
//
// Invariant: a node is made to begin another incarnation only if q other nodes
// exclude that this process's clock stood still by as much. Without that one
// client that slept has every node marked, and no client gets a lock for a
// guard time.

// judge decides what can be decided.
func (c *Clocks) judge(now Time) {
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
		if !k.blamed && (steady || !c.Rules.on(RuleBlame)) {
			k.blamed = true
			c.Out = append(c.Out, ClockEvent{Kind: ClockJumped, Node: i, By: k.by}, ClockEvent{Kind: ClockMark, Node: i})
		}
		if !k.blamed && !k.doubted && now >= c.due(k) {
			c.doubt(i)
		}
		if k.doubted && !k.blamed && !k.allShortened && now >= k.at.Add(slowNodeFactor*c.Wait) {
			c.shortenAll(i)
		}
		if now >= k.until && !k.unread {
			c.closeCase(i)
		}
	}
}

// due is when a case that cannot be decided is taken for one.
func (c *Clocks) due(k *clockCase) Time {
	if bits.OnesCount32(c.Sets.All()) == 1 {
		return k.at // no other node can tell
	}
	return min(k.at.Add(c.Wait), k.until)
}

// doubt: it is unknown whose clock it was. If the node's is ahead, its leases
// end earlier by this process's clock in either case.
//
// Invariant: a case in doubt stays open until all leases have ended that the
// node gave to any client. Clients with longer settings have shown theirs to
// the node. Without the rule a client with a short guard time counts the node's
// votes at once after half of that, and the node then drops another client's
// long lease early by the jump: two holders.
func (c *Clocks) doubt(node int) {
	k := &c.cases[node]
	k.doubted = true
	if k.hi > 0 && c.Rules.on(RuleLongest) {
		k.unread = true
		c.Out = append(c.Out, ClockEvent{Kind: ClockGuard, Node: node})
	}
	c.Out = append(c.Out, ClockEvent{Kind: ClockDoubted, Node: node, By: k.by})
	c.shorten(k, 1<<node)
}

// Guard says which guard time is the longest that clients have shown to a node.
func (c *Clocks) Guard(now Time, node int, guard time.Duration) {
	if k := &c.cases[node]; k.open && k.unread {
		k.unread = false
		k.until = max(k.until, k.at.Add(max(guard/2, c.Longest)))
	}
	c.judge(now)
}

// slowNodeFactor is how many times Wait the client relies on the other nodes'
// leases while none of these nodes answers. They may only be slow, and show
// then that this process's clock has not stood still. No more than a ttl: a
// node timeout is a quarter of that at most.
const slowNodeFactor = 4

// shortenAll: no other node shows that this process's clock has not stood
// still, so the leases that they gave end earlier as well.
func (c *Clocks) shortenAll(node int) {
	k := &c.cases[node]
	if k.allShortened = true; k.steady == 0 {
		c.shorten(k, 1<<len(c.bounds)-1)
	}
}

// shorten has leases at nodes end earlier, unless they do for another case that
// may have the same cause. If a clock was set back, leases last longer: no
// reason to rely on that.
func (c *Clocks) shorten(k *clockCase, nodes uint32) {
	for i := range c.cases {
		if o := &c.cases[i]; o.open && o.lo <= k.hi && k.lo <= o.hi {
			nodes &^= o.shortened
		}
	}
	k.shortened |= nodes
	if k.shift > 0 && nodes != 0 && c.Rules.on(RuleEarly) {
		c.Out = append(c.Out, ClockEvent{Kind: ClockEarly, Nodes: nodes, By: time.Duration(k.shift)})
	}
}

// judgeOwnClock: this process's clock has stood still if a majority of the
// nodes, at least two, may have parted from it by as much: a majority does not
// jump.
func (c *Clocks) judgeOwnClock(now Time) {
	if !c.Rules.on(RuleStood) {
		return
	}
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
		c.shorten(&c.cases[i], 1<<len(c.bounds)-1)
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

// closeCase closes a case.
func (c *Clocks) closeCase(node int) {
	c.cases[node] = clockCase{}
	c.open--
	c.Out = append(c.Out, ClockEvent{Kind: ClockCleared, Node: node})
}
