package process

import (
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
)

// This file owns what claims and operations on records begin with in their
// process: which nodes they ask and wait for, for how long, and their tickets.

// basis is what all of them rest on.
type basis struct {
	times

	fanout *lease.Fanout
	group  atomic.Pointer[protocol.Group]
}

func (s *basis) Fanout() *lease.Fanout { return s.fanout }

// Window returns how far tickets may be from clocks.
func (s *basis) Window() protocol.Window { return s.group.Load().Window }

// Group returns which nodes the client asks now.
func (s *basis) Group() protocol.Group { return *s.group.Load() }

// Recovers says whether a node is within its guard time, by an answer or as its
// connection begins. It reports whether that is so, or was until now.
func (s *basis) Recovers(node int, recovers bool) (guarding bool) {
	if guarding = recovers || s.fanout.Recovering(node); guarding {
		s.fanout.Recovers(node, recovers)
	}
	return guarding
}

// Begin describes an attempt that is about to start.
type Begin struct {
	protocol.Terms
	Name        string
	Try         bool
	ShortHold   bool // such locks are given back at once
	NoRenewal   bool
	NodeTimeout time.Duration
	Drift       time.Duration
	Unhealthy   uint32 // nodes that cannot be reached or do not answer, a bit for each: see Client.See
	Busy        int    // how many nodes have much to do for this client: see Client.See
	Succession  bool   // of the register that decides which configuration follows: see SuccessorName
	Rules       protocol.Rules
	Defer       *Deferral // nil: Fanout decides
}

// Link is how the connection to a node stands.
type Link struct {
	Up      bool
	Waiting time.Duration // for how long the oldest request has been unanswered; 0: there is none
	Busy    bool          // more is unanswered than one caller has, in the usual case
}

// See takes how the connection to a node stands as the attempt starts. TTL and
// NodeTimeout are set before. An answer can be expected soon if the node is
// connected and no request has been unanswered for longer than the node may
// take.
func (s *basis) See(b *Begin, node int, l Link) {
	if !l.Up || l.Waiting >= s.fanout.NodeTimeout(node, b.NodeTimeout, b.TTL) {
		b.Unhealthy |= 1 << node
	}
	if l.Busy {
		b.Busy++
	}
}

// Deferral says which nodes are asked later, a bit for each, and when.
type Deferral struct {
	Nodes uint32
	After time.Duration
}

// Start makes an attempt and has it ask for its places. Nodes that are
// unhealthy are asked and not waited for.
func (s *basis) Start(now protocol.Time, a *Attempt, n *Name, b *Begin) (d Deferral) {
	g := s.group.Load()
	sets, absent := g.Of(b.Succession)
	a.Claim = *lease.NewClaim(lease.Config{
		Terms: b.Terms, Nodes: uint8(g.Nodes), Sets: sets, Absent: absent, Succession: b.Succession, Drift: b.Drift, Try: b.Try, Window: s.Window(), Rules: b.Rules,
		NodeTimeout: s.fanout.QuorumTimeout(b.Unhealthy|absent, b.NodeTimeout, b.TTL),
	})
	a.outbox.rules = b.Rules
	if g.Past(b.Succession, b.Name, b.Rules) {
		a.End(now, lease.Lost)
		return d
	}
	if b.NoRenewal {
		a.StopRenewal()
	}
	if b.Defer != nil {
		d = *b.Defer
	} else if !b.Succession {
		d.Nodes, d.After = s.fanout.Defer(lease.Start{
			Name: b.Name, ID: b.ID, ShortHold: b.ShortHold, Contended: n.Contended(), Renewed: !b.NoRenewal,
			Unhealthy: b.Unhealthy, Busy: b.Busy, Timeout: b.NodeTimeout, Group: *g,
		})
	}
	a.Claim.Start(now, s.propose(now, a, n), d.Nodes, d.After)
	for i := range g.Nodes {
		if b.Unhealthy&(1<<i) != 0 {
			a.Suspect(now, i)
		}
	}
	return d
}

// propose returns T0 for an attempt that begins now.
func (s *basis) propose(now protocol.Time, a *Attempt, n *Name) protocol.Ticket {
	return n.tickets.Propose(a.ID, s.Clock(now), s.Window(), a.Rules)
}

// Offer is Attempt.Offer, and gives a join its T0: of when it is first sent.
func (s *basis) Offer(a *Attempt, n *Name, r *protocol.Request, behind func(protocol.Class) bool) protocol.Sending {
	if r.Op == protocol.OpJoin {
		if a.sent == 0 && r.Sent != a.Began() && !a.Postponed() {
			a.Begin(a.Began(), s.propose(r.Sent, a, n))
		}
		r.Ticket = a.Ticket()
	}
	return a.Offer(r, behind)
}

// Depart makes r, whose turn has come, what it is to be now. Without ok it is
// not sent: it was withdrawn, or it is a leave that comes too late, as the
// lease has ended by itself.
func (s *basis) Depart(now protocol.Time, a *Attempt, n *Name, r *protocol.Request) (ok bool) {
	switch {
	case r.Withdrawn:
		return false
	case r.Op == protocol.OpLeave && now.Sub(r.Sent) >= a.TTL:
		a.unsent[r.Node] = nil
		a.left(r.Node, false)
		return false
	case r.Op == protocol.OpLeave:
		return true
	}
	if a.Postponed() {
		a.Claim.Begin(now, s.propose(now, a, n))
	}
	if a.Rules.On(protocol.RuleDepart) {
		*r = a.Claim.Depart(now, *r)
	}
	return true
}

// FarTicket reports whether a node's answer to a claim does not count because
// of clocks: old, since the node has given the claim a ticket that it may have
// forgotten others above, or as the node refuses a ticket that is too far ahead
// of its clock.
func (s *basis) FarTicket(a *Attempt, r *protocol.Request, ans *protocol.Answer) (far, old bool) {
	old = ans.Status == protocol.OK && r.Op == protocol.OpJoin && a.Phase() < lease.Holding && s.Window().Old(ans.Ticket, ans.Clock)
	return old || ans.Status == protocol.Ahead, old
}

// StartRegisterOp begins an operation on the record of a name. timeout and ttl
// are those of the name.
func (s *basis) StartRegisterOp(now protocol.Time, q *lease.RegisterOp, name string, timeout, ttl time.Duration, rules protocol.Rules) {
	g := s.group.Load()
	q.Sets, q.Absent = g.Of(q.Succession)
	q.Nodes, q.NodeTimeout, q.MaxPause, q.Rules = g.Nodes, s.fanout.QuorumTimeout(0, timeout, ttl), ttl/3, rules
	// A node that loses its data is not caught up before its guard time is
	// over. So what it said less than a guard time ago it still has, or it says
	// that it is recovering.
	q.Fresh = g.Fresh()
	if g.Past(q.Succession, name, rules) {
		q.Supersede()
		return
	}
	q.Start(now)
}
