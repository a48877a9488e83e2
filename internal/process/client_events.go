package process

import (
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/repair"
)

// The events of a Client are replies, pushes, connections, answers to what it
// asked, and time. Each event is handled completely under c.mu, and returns
// what the runtime must do after the lock is released.
//
// Nearly all replies take no lock that all nodes share; otherwise all claims of
// a process would wait for one another. A reply counts at once if it comes from
// the incarnation that votes and its time is within the bounds of its node's
// clock: see judge and within.

// Reply judges the answer a to the request r of a claim, or of an operation on
// a record. The runtime carries out do, and then gives the reply and the
// Verdict to the claim or the operation. A reply that a claim was removed
// always counts, because no vote depends on it.
func (c *Client) Reply(
	now protocol.Time, n *Name, r *protocol.Request, a *protocol.Answer,
) (v protocol.Verdict, do []Action) {
	if r.Op == protocol.OpLeave {
		return protocol.Verdict{Why: protocol.Counts}, nil
	}
	v.Why, do = c.judge(now, r.Node, a.Incarnation, nodeset.Reading{Sent: r.Sent, Received: now,
		Micros: a.Clock})
	if !v.Counts() { //mutant:RuleJudged
		return v, do
	}
	v.Guarding = c.fanout.UpdateRecovering(r.Node, a.Status == protocol.Recovering)
	seen := a.Ticket
	if e := a.Record; e != nil {
		seen = max(e.Ticket, e.Promise.Ticket)
	}
	// The next ticket of the client should be above the tickets that its nodes
	// have given. Otherwise the nodes would raise the ticket of every attempt,
	// and each attempt would settle a round trip later.
	// Otherwise it is the claim's own ticket, or an earlier claim's.
	if seen > r.Ticket && r.Op != protocol.OpBeat {
		n.tickets.Observe(seen, c.Clock(now), c.Window())
	}
	// An answer may show that its node is not caught up, or does not know of a
	// Resize. Any such answer starts the repair, so even a client that uses
	// only locks repairs nodes.
	if a.Record != nil && !a.Record.CaughtUp || n.Counting && a.Status == protocol.Recovering {
		c.mu.Lock()
		c.repair.Look(now, r.Node)
		do = append(do, c.unlock(now)...)
	}
	return v, do
}

// Answer gives the attempt a node's answer to r, which Reply has judged. It
// returns how the clocks contradict the answer, if they do, and what the
// runtime must do.
// Invariant: the outbox removes r from the requests in flight before the claim
// gets the answer.
func (c *Client) Answer(
	now protocol.Time, a *Attempt, n *Name, r *protocol.Request, ans *protocol.Answer, v protocol.Verdict,
) (d lease.Doubt, do []Action) {
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
		d = lease.NoDoubt // the ticket is no longer the T0 of a join
	}
	if d != lease.NoDoubt && a.State.Phase() == lease.Joining && !a.State.Raised() &&
		c.Window().Far(a.State.Ticket(), c.Clock(a.State.Began())) {
		// Its T0 came from the clock of a node that other nodes now contradict.
		a.End(now, lease.Expired)
	}
	if r.Op == protocol.OpJoin && ans.Status == protocol.OK {
		// Nodes that are asked later may not know the claims that the first
		// nodes know, so met never goes back to false.
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

// foreignPoll is how often the claim at the head of a queue asks whether
// another Redlock client still holds the redlock key. A node publishes every
// other release, but not the release of that key. The other waiters do not ask.
const foreignPoll = 100 * time.Millisecond

// Push reports whether a push counts. The runtime carries out do first, and
// then gives the push to the claim if it counts. A push about a record always
// counts, because it is not evidence: it only makes the client read.
func (c *Client) Push(now protocol.Time, node int, m *protocol.Push) (counts bool, do []Action) {
	if m.Changed {
		return true, nil
	}
	why, do := c.judge(now, node, m.Incarnation, nodeset.Reading{Received: now, Micros: m.Clock, Push: true})
	return why == protocol.Counts, do
}

// judge decides whether a reply or a push counts.
// Invariant: the incarnation is checked before the clock.
//
// Note: Here is an incorrect order:
//
//	why = c.check(node, inc, r.Push)
//	why = c.read(node, r)
//	c.nodeActions(now)
func (c *Client) judge(
	now protocol.Time, node int, inc protocol.Incarnation, r nodeset.Reading,
) (why protocol.Why, do []Action) {
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

// check decides whether the incarnation of a reply or push counts. Called with
// c.mu held.
func (c *Client) check(node int, inc protocol.Incarnation, push bool) protocol.Why {
	// The set may have grown since the node was connected, and this client may
	// not use the new node yet.
	if node < c.incarnations.Len() &&
		(push && c.incarnations.CheckPush(node, inc) || !push && c.incarnations.Check(node, inc)) {
		return protocol.Counts
	}
	return protocol.OtherIncarnation
}

// Check judges, by the incarnation alone, an answer that belongs to no claim
// and no record.
func (c *Client) Check(now protocol.Time, node int, inc protocol.Incarnation) (
	why protocol.Why, do []Action,
) {
	if inc != 0 && c.votes[node].Load() == uint64(inc) {
		return protocol.Counts, nil
	}
	c.mu.Lock()
	why = c.check(node, inc, false)
	return why, c.unlock(now)
}

// Time judges the answer of a node that was asked for its time, as Reply judges
// the clock of any answer.
func (c *Client) Time(node int, r nodeset.Reading) (why protocol.Why, do []Action) {
	if c.within(node, r) {
		return protocol.Counts, nil
	}
	c.mu.Lock()
	why = c.read(node, r)
	return why, c.unlock(r.Received)
}

// Slept records that this process slept until the given time. The clock of the
// process counts the sleep.
func (c *Client) Slept(now, until protocol.Time) (do []Action) {
	c.mu.Lock()
	c.judgeClocks(func(j *nodeset.Clocks) { j.Slept(until) })
	return c.unlock(now)
}

// Connect records that a connection to a node begins, and how long its first
// round trip took.
func (c *Client) Connect(now protocol.Time, node int, trip time.Duration) (do []Action) {
	c.mu.Lock()
	if node < c.incarnations.Len() { // otherwise this client does not use the node yet
		c.incarnations.Connect(node)
		c.fanout.Begin(now, node, trip)
	}
	return c.unlock(now)
}

// Show records the incarnation of a node at the start of its connection.
func (c *Client) Show(now protocol.Time, node int, inc protocol.Incarnation) (do []Action) {
	c.mu.Lock()
	c.incarnations.Show(node, inc)
	return c.unlock(now)
}

// Up records that a connection to a node is ready for requests. Each claim asks
// the node again: the node may have lost claims or given votes in the meantime,
// and its pushes are lost.
func (c *Client) Up(now protocol.Time, node int) (do []Action) {
	c.mu.Lock()
	c.act(Action{Kind: ActAsk, Node: node})
	if node < c.incarnations.Len() { // otherwise this client does not use the node yet
		c.incarnations.Up(node)
	}
	if !c.closed {
		c.repair.Up(now, node)
	}
	return c.unlock(now)
}

// Subscribed records that the connection for the pushes of a node is ready.
// Each claim asks the node again, because pushes may have been lost.
func (c *Client) Subscribed(now protocol.Time, node int) (do []Action) {
	c.mu.Lock()
	c.act(Action{Kind: ActAsk, Node: node})
	return c.unlock(now)
}

// Down records that the connection to a node has ended.
func (c *Client) Down(now protocol.Time, node int) (do []Action) {
	c.mu.Lock()
	if node < c.incarnations.Len() { // otherwise the node entered the set and left before this client used it
		c.repair.Down(now, node)
		c.act(Action{Kind: ActGone, Node: node})
	}
	return c.unlock(now)
}

// Marked takes the answer to an ActMark: the incarnation that the node has now,
// unknown if ok is false. try is the Action's Try; an outdated answer changes
// nothing.
func (c *Client) Marked(
	now protocol.Time, node int, try uint32, inc protocol.Incarnation, ok bool,
) (do []Action) {
	c.mu.Lock()
	c.incarnations.Marked(node, try, inc, ok)
	return c.unlock(now)
}

// Repaired records that an attempt to repair a node has ended. It returns a
// report to log, or nil.
func (c *Client) Repaired(now protocol.Time, a *repair.Attempt) (r *repair.Report, do []Action) {
	c.mu.Lock()
	r = c.repair.Ended(now, a)
	return r, c.unlock(now)
}

// Spread records that the number of permits of a semaphore has been brought to
// all nodes.
func (c *Client) Spread(name string) {
	c.mu.Lock()
	c.repair.Spread(name)
	c.mu.Unlock()
}

// Tick handles whatever is due. With a ttl of 1 s or more, the bounds of a
// connected node's clock are never older than three eighths of the ttl.
// protocol.md, "Clocks", relies on half the ttl.
func (c *Client) Tick(now protocol.Time) (do []Action) {
	c.mu.Lock()
	c.alarm = protocol.Never // reset even if the runtime called Tick too early
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

// Close ends the repairs. Attempts in progress are still reported, and give up
// their turns.
func (c *Client) Close(now protocol.Time) (do []Action) {
	c.mu.Lock()
	c.closed = true
	c.repair.Close(now)
	return c.unlock(now)
}

// Regroup makes the client use the nodes of g. The caller tells the claims and
// the operations that are under way.
func (c *Client) Regroup(now protocol.Time, g protocol.Group) (do []Action) {
	c.mu.Lock()
	if had := c.Nodes; g.Nodes > had {
		c.incarnations.Grow(g.Nodes)
		c.repair.Grow(g.Nodes)
		c.fanout.Grow(g.Nodes)
		c.clocks.Grow(boundsOf(c.bounds[had:g.Nodes]))
		c.Nodes = g.Nodes
	}
	c.group.Store(&g)
	c.judgeClocks(func(j *nodeset.Clocks) { j.Regroup(g.Sets, g.Guard) })
	c.repair.RetryNow(now)
	return c.unlock(now)
}
