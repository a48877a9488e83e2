package process

import (
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/repair"
)

// This file owns the events of a Client: replies, pushes, connections, answers
// to what it asked, and time. Each one is taken under c.mu as a whole, and
// returns what the runtime is to do once the lock is released.
//
// Invariant: nearly all replies take no lock that is shared by all nodes. A
// reply of the incarnation that votes, whose time is within the bounds of its
// node's clock, counts at once: see judge and within. All claims of a process
// would wait for one another else.

// Reply judges the answer a to the request r of a claim, or of an operation on
// a record, at a name. The runtime carries out what is returned, then it gives
// the reply and the Verdict to the claim or the operation. A node's word that
// it has removed a claim always counts: no vote rests on it.
func (c *Client) Reply(now protocol.Time, n *Name, r *protocol.Request, a *protocol.Answer) (v protocol.Verdict, do []Action) {
	if r.Op == protocol.OpLeave {
		return protocol.Verdict{Why: protocol.Counts}, nil
	}
	v.Why, do = c.judge(now, r.Node, a.Incarnation, nodeset.Reading{Sent: r.Sent, Received: now, Micros: a.Clock})
	if !v.Counts() { //mutant:RuleJudged
		return v, do
	}
	v.Guarding = c.Recovers(r.Node, a.Status == protocol.Recovering)
	seen := a.Ticket
	if e := a.Record; e != nil {
		seen = max(e.Ticket, e.Promise.Ticket)
	}
	// The client's next ticket is to be above what its nodes have given.
	// Otherwise each of its attempts would be moved up by the nodes, one after
	// the other, and settle a round trip later.
	if seen > r.Ticket && r.Op != protocol.OpBeat { // else it is the claim's own, or an earlier one's
		n.tickets.Observe(seen, c.Clock(now), c.Window())
	}
	// An answer may say that its node is not caught up, or does not know of a
	// Resize. Any such answer starts the repair, so a client that uses locks
	// only repairs as well.
	if a.Record != nil && !a.Record.CaughtUp || n.Counting && a.Status == protocol.Recovering {
		c.mu.Lock()
		c.repair.Look(now, r.Node)
		do = append(do, c.unlock(now)...)
	}
	return v, do
}

// Answer takes a node's answer to r, which Reply has judged. It returns what the
// clocks say against the answer, and what the runtime is to do.
// Invariant: what is under way is known before the claim gets the answer.
func (c *Client) Answer(now protocol.Time, a *Attempt, n *Name, r *protocol.Request, ans *protocol.Answer, v protocol.Verdict) (d lease.Doubt, do []Action) {
	if !v.Counts() {
		a.Fail(now, r, false)
		return d, nil
	}
	a.outbox.landed(r) //mutant:RuleLanded=defer a.outbox.landed(r)
	c.fanout.Answered(now, r.Node, now.Sub(r.Sent), c.NodeTimeout)
	if r.Op == protocol.OpLeave {
		a.outbox.left(r.Node, true)
		return d, nil
	}
	if ans.Foreign && (ans.Wait == 0 || ans.Wait > foreignPoll) { //mutant:RuleForeign
		ans.Wait = foreignPoll
	}
	a.Reached(r.Node)
	d = a.Claim.Answer(now, *r, *ans)
	if d == lease.DoubtOld && r.Op != protocol.OpJoin {
		d = lease.NoDoubt // it is not the T0 of a join any more
	}
	if d != lease.NoDoubt && a.State.Phase() == lease.Joining && !a.State.Raised() && c.Window().Far(a.State.Ticket(), c.Clock(a.State.Began())) {
		// Its T0 is from the clock of a node that others contradict by now.
		a.End(now, lease.Expired)
	}
	if r.Op == protocol.OpJoin && ans.Status == protocol.OK {
		// Nodes that are asked later may not know the claims that the first
		// nodes know.
		a.met = a.met || !ans.Vote || !ans.HasTotals || ans.Sum > 0
		n.Meet(a.met)
	}
	if a.Claim.State.MissedResize(ans) {
		c.mu.Lock()
		if !c.closed {
			c.repair.MissedResize(now, n.Name, c.NodeTimeout)
		}
		do = c.unlock(now)
	}
	return d, do
}

// foreignPoll is how often the head of a queue asks whether another Redlock
// client still holds the redlock key. A node publishes every other release, but
// not that one. The other waiters do not ask.
const foreignPoll = 100 * time.Millisecond

// Push judges a push. If it counts, the runtime carries out what is returned,
// and then gives the push to the claim. A word about a record is no evidence:
// the node is asked.
func (c *Client) Push(now protocol.Time, node int, m *protocol.Push) (counts bool, do []Action) {
	if m.Changed {
		return true, nil
	}
	why, do := c.judge(now, node, m.Incarnation, nodeset.Reading{Received: now, Micros: m.Clock, Push: true})
	return why == protocol.Counts, do
}

// judge finds out whether a reply or a push counts.
// Invariant: the incarnation comes first.
//
// Note: Here is an incorrect order:
//
//	why = c.check(node, inc, r.Push)
//	why = c.read(node, r)
//	c.nodeActions(now)
func (c *Client) judge(now protocol.Time, node int, inc protocol.Incarnation, r nodeset.Reading) (why protocol.Why, do []Action) {
	if inc != 0 && c.votes[node].Load() == uint64(inc) && c.within(node, r) {
		return protocol.Counts, nil
	}
	c.mu.Lock()
	if why = c.check(node, inc, r.Push); why == protocol.Counts {
		c.nodeActions(now) //mutant:RuleBegins
		why = c.read(node, r)
	}
	return why, c.unlock(now)
}

// check finds out whether what a node says in an incarnation counts. Called
// with c.mu held.
func (c *Client) check(node int, inc protocol.Incarnation, push bool) protocol.Why {
	// The set may have grown since the node was connected to, and this client
	// not count on it yet.
	if node < c.incarnations.Len() && (push && c.incarnations.CheckPush(node, inc) || !push && c.incarnations.Check(node, inc)) {
		return protocol.Counts
	}
	return protocol.OtherIncarnation
}

// Check judges what a node says beside claims and records, by its incarnation
// alone.
func (c *Client) Check(now protocol.Time, node int, inc protocol.Incarnation) (why protocol.Why, do []Action) {
	if inc != 0 && c.votes[node].Load() == uint64(inc) {
		return protocol.Counts, nil
	}
	c.mu.Lock()
	why = c.check(node, inc, false)
	return why, c.unlock(now)
}

// Time takes what a node says when it is asked for its time. It returns what
// Reply would make of it.
func (c *Client) Time(node int, r nodeset.Reading) (why protocol.Why, do []Action) {
	if c.within(node, r) {
		return protocol.Counts, nil
	}
	c.mu.Lock()
	why = c.read(node, r)
	return why, c.unlock(r.Received)
}

// Slept says that this process slept until a time, and that its clock counts
// the sleep.
func (c *Client) Slept(now, until protocol.Time) (do []Action) {
	c.mu.Lock()
	c.judgeClocks(func(j *nodeset.Clocks) { j.Slept(until) })
	return c.unlock(now)
}

// Connect says that a connection to a node begins, and how long its first round
// trip took.
func (c *Client) Connect(now protocol.Time, node int, trip time.Duration) (do []Action) {
	c.mu.Lock()
	if node < c.incarnations.Len() { // else this client does not count on it yet
		c.incarnations.Connect(node)
		c.fanout.Begin(now, node, trip)
	}
	return c.unlock(now)
}

// Show says which incarnation a node has as its connection begins.
func (c *Client) Show(now protocol.Time, node int, inc protocol.Incarnation) (do []Action) {
	c.mu.Lock()
	c.incarnations.Show(node, inc)
	return c.unlock(now)
}

// Up says that a connection to a node is ready for requests. Each claim asks:
// the node may have lost claims or given votes meanwhile, and pushes are gone.
func (c *Client) Up(now protocol.Time, node int) (do []Action) {
	c.mu.Lock()
	c.act(Action{Kind: ActAsk, Node: node})
	if node < c.incarnations.Len() { // else this client does not count on it yet
		c.incarnations.Up(node)
	}
	if !c.closed {
		c.repair.Up(now, node)
	}
	return c.unlock(now)
}

// Subscribed says that the connection for a node's pushes is ready: some may be
// lost.
func (c *Client) Subscribed(now protocol.Time, node int) (do []Action) {
	c.mu.Lock()
	c.act(Action{Kind: ActAsk, Node: node})
	return c.unlock(now)
}

func (c *Client) Down(now protocol.Time, node int) (do []Action) {
	c.mu.Lock()
	if node < c.incarnations.Len() { // else it entered the set and left before this client counted on it
		c.repair.Down(now, node)
		c.act(Action{Kind: ActGone, Node: node})
	}
	return c.unlock(now)
}

// Marked says which incarnation a node has after an ActMark; without ok that is
// unknown.
func (c *Client) Marked(now protocol.Time, node int, try uint32, inc protocol.Incarnation, ok bool) (do []Action) {
	c.mu.Lock()
	c.incarnations.Marked(node, try, inc, ok)
	return c.unlock(now)
}

// Repaired takes an attempt to repair a node that has ended. It returns what
// the log says of it, nil for nothing.
func (c *Client) Repaired(now protocol.Time, a *repair.Attempt) (r *repair.Report, do []Action) {
	c.mu.Lock()
	r = c.repair.Ended(now, a)
	return r, c.unlock(now)
}

// Spread says that the number of permits of a semaphore has been spread.
func (c *Client) Spread(name string) {
	c.mu.Lock()
	c.repair.Spread(name)
	c.mu.Unlock()
}

// Tick lets time pass. With a ttl of 1 s or more, no bound of a connected
// node's clock is older than three eighths of it: protocol.md, "Clocks", counts
// on half of one.
func (c *Client) Tick(now protocol.Time) (do []Action) {
	c.mu.Lock()
	c.alarm = protocol.Never // the runtime's clock may have woken it too early
	c.judgeClocks(func(j *nodeset.Clocks) { j.Tick(now) })
	c.repair.Tick(now)
	if every := max(c.TTL/4, 250*time.Millisecond); c.poll == protocol.Never || now >= c.poll {
		ask := uint32(0)
		for i := range c.Nodes {
			c.incarnations.Up(i)
			if at, _ := c.Bounds(now, i); now.Sub(at) > every/2 && c.poll != protocol.Never { //mutant:RulePoll
				ask |= 1 << i
			}
		}
		if c.poll = now.Add(every); ask != 0 {
			c.act(Action{Kind: ActTime, Nodes: ask})
		}
	}
	return c.unlock(now)
}

// Close ends the repairs. Attempts under way are still reported, and give their
// turns up.
func (c *Client) Close(now protocol.Time) (do []Action) {
	c.mu.Lock()
	c.closed = true
	c.repair.Close(now)
	return c.unlock(now)
}

// Regroup has the client count on other nodes. The claims and the operations
// under way are for the caller to tell.
func (c *Client) Regroup(now protocol.Time, g protocol.Group) (do []Action) {
	c.mu.Lock()
	if had := c.Nodes; g.Nodes > had {
		c.incarnations.Grow(g.Nodes)
		c.repair.Grow(g.Nodes)
		c.fanout.Grow(g.Nodes)
		c.clocks.Grow(c.boundsOf(had, g.Nodes))
		c.Nodes = g.Nodes
	}
	c.group.Store(&g)
	c.judgeClocks(func(j *nodeset.Clocks) { j.Regroup(g.Sets, g.Guard) })
	c.repair.RetryNow(now)
	return c.unlock(now)
}
