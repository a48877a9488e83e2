package process

import (
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
)

// Config returns the part of the configuration of a new attempt that its client
// decides: which nodes it asks, and which of these make a quorum. The caller
// adds what the claim asks for: its Terms, NodeTimeout, Drift, and how it is
// used.
func (c *Client) Config(succession bool) lease.Config {
	g := c.group.Load()
	sets, absent := g.Of(succession)
	return lease.Config{Nodes: uint8(g.Nodes), Sets: sets, Absent: absent, Window: g.Window,
		Succession: succession}
}

// Start starts attempt a, which then asks the nodes. Unhealthy nodes are asked
// too, but not waited for.
func (c *Client) Start(
	now protocol.Time, a *Attempt, n *Name, cfg lease.Config, l lease.Links, d lease.Deferral,
) {
	cfg.NodeTimeout = c.fanout.QuorumTimeout(cfg.Sets, l.Unhealthy, cfg.NodeTimeout, cfg.TTL)
	a.Claim = *lease.NewClaim(cfg)
	if c.group.Load().Past(cfg.Succession, n.Name) {
		a.End(now, lease.Lost)
		return
	}
	a.Claim.Start(now, c.propose(now, a, n), d.Nodes, d.After)
	for i := range int(cfg.Nodes) {
		if l.Unhealthy&(1<<i) != 0 {
			a.MarkSlow(now, i)
		}
	}
}

// propose returns the ticket T0 of an attempt that begins now.
func (c *Client) propose(now protocol.Time, a *Attempt, n *Name) protocol.Ticket {
	return n.tickets.Propose(a.State.ID, c.Clock(now), c.Window())
}

// Step is Attempt.Step. If nothing could be sent when the attempt began, it
// also proposes a new T0, so that T0 is the time at which the first join is
// sent.
func (c *Client) Step(now protocol.Time, a *Attempt, n *Name) (send []protocol.Request, news News) {
	joins := a.outbox.sent == 0 && len(a.Out) > 0 && a.Out[0].Op == protocol.OpJoin
	if joins && now != a.State.Began() && !a.State.NotStarted() {
		a.State.Begin(a.State.Began(), c.propose(now, a, n))
	}
	return a.Step(n)
}

// Sending prepares a request that has waited for room at its node, when its turn
// has come. A request that finds room at once does not pass through here: it is
// sent as Step returned it. Sending returns false if r must not be sent any
// more: it was withdrawn, or it is a leave and the lease has already ended.
//
// Otherwise r is brought up to date, because its lease counts from when it
// leaves, not from when it began to wait. If nothing of the attempt has been sent
// yet, the attempt begins now and gets a new T0. A leave is sent as it is.
func (c *Client) Sending(now protocol.Time, a *Attempt, n *Name, r *protocol.Request) (ok bool) {
	switch {
	case r.Withdrawn:
		return false
	case r.Op == protocol.OpLeave && now.Sub(r.Sent) >= a.State.TTL:
		a.outbox.unsent[r.Node] = nil
		a.outbox.left(r.Node, false)
		return false
	case r.Op == protocol.OpLeave:
		return true
	}
	if a.State.NotStarted() {
		a.Claim.State.Begin(now, c.propose(now, a, n))
	}
	*r = a.Claim.Sending(now, *r) //mutant:RuleDepart
	return true
}

// StartRegisterOp begins an operation on the record of a name. timeout and ttl
// are the settings of the name.
func (c *Client) StartRegisterOp(
	now protocol.Time, q *lease.RegisterOp, name string, timeout, ttl time.Duration,
) {
	g := c.group.Load()
	q.Sets, q.Absent = g.Of(q.Succession)
	q.Nodes, q.NodeTimeout, q.MaxPause = g.Nodes, c.fanout.QuorumTimeout(q.Sets, 0, timeout, ttl), ttl/3
	q.Fresh = g.Fresh()
	if g.Past(q.Succession, name) {
		q.Supersede()
		return
	}
	q.Start(now)
}
