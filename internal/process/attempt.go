package process

import (
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
)

// This file owns one attempt of a process: its claim, what becomes of the
// requests that the claim wants sent, and what the process takes from the
// replies.

// Attempt is one claim and all that goes with it in its process. It is not safe
// for concurrent use: a lock of the runtime guards it, and many Attempts may be
// used at a time. A [Client] may be called while that lock is held.
//
// After each event Out holds what the claim wants sent. The runtime gives each
// of these requests to Offer, in order, and calls Sent. Then News says what has
// become of the attempt, and Wake when it wants a Tick.
type Attempt struct {
	lease.Claim
	outbox
	ended           uint8       // leaves that have been answered or given up
	phase           lease.Phase // as News has seen it
	fresh           bool        // what is to be sent now must not be merged with what is under way
	met             bool        // a node knows of others at the name
	taken           bool        // a caller has the hold
	waitersReported bool        // and knows of claims that wait behind it
}

// Name is what all claims of one process at one name share. It is safe for
// concurrent use. Nothing rests on it but how soon claims settle, and how many
// nodes are asked.
type Name struct {
	Name     string
	Counting bool // a semaphore's

	contended atomic.Bool
	tickets   lease.TicketClock
}

// Contended reports whether other claims were met at the name of late.
func (n *Name) Contended() bool { return n.contended.Load() }

// Meet says that other claims were met at the name, or that none were. The word
// is one for requests of many names, so it is written only when it changes.
func (n *Name) Meet(others bool) {
	if n.contended.Load() != others {
		n.contended.Store(others)
	}
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
func (c *Client) See(b *Begin, node int, l Link) {
	if !l.Up || l.Waiting >= c.fanout.NodeTimeout(node, b.NodeTimeout, b.TTL) {
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
func (c *Client) Start(now protocol.Time, a *Attempt, n *Name, b *Begin) (d Deferral) {
	g := c.group.Load()
	sets, absent := g.Of(b.Succession)
	a.Claim = *lease.NewClaim(lease.Config{
		Terms: b.Terms, Nodes: uint8(g.Nodes), Sets: sets, Absent: absent, Succession: b.Succession, Drift: b.Drift, Try: b.Try, Window: c.Window(), Rules: b.Rules,
		NodeTimeout: c.fanout.QuorumTimeout(b.Unhealthy|absent, b.NodeTimeout, b.TTL),
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
		d.Nodes, d.After = c.fanout.Defer(lease.Start{
			Name: b.Name, ID: b.ID, ShortHold: b.ShortHold, Contended: n.Contended(), Renewed: !b.NoRenewal,
			Unhealthy: b.Unhealthy, Busy: b.Busy, Timeout: b.NodeTimeout, Group: *g,
		})
	}
	a.Claim.Start(now, c.propose(now, a, n), d.Nodes, d.After)
	for i := range g.Nodes {
		if b.Unhealthy&(1<<i) != 0 {
			a.Suspect(now, i)
		}
	}
	return d
}

// propose returns T0 for an attempt that begins now.
func (c *Client) propose(now protocol.Time, a *Attempt, n *Name) protocol.Ticket {
	return n.tickets.Propose(a.ID, c.Clock(now), c.Window(), a.Rules)
}

// Offer is Attempt.Offer, and gives a join its T0: of when it is first sent.
func (c *Client) Offer(a *Attempt, n *Name, r *protocol.Request, behind func(protocol.Class) bool) protocol.Sending {
	if r.Op == protocol.OpJoin {
		if a.sent == 0 && r.Sent != a.Began() && !a.Postponed() {
			a.Begin(a.Began(), c.propose(r.Sent, a, n))
		}
		r.Ticket = a.Ticket()
	}
	return a.Offer(r, behind)
}

// Answer takes a node's answer to r, which Reply has judged.
// Invariant: what is under way is known before the claim gets the answer.
func (c *Client) Answer(now protocol.Time, a *Attempt, n *Name, r *protocol.Request, ans *protocol.Answer, v protocol.Verdict) (do []Action) {
	if !v.Counts() {
		c.Fail(now, a, r, false)
		return nil
	}
	first := a.Rules.On(protocol.RuleLanded)
	if first {
		a.landed(r)
	}
	c.fanout.Answered(now, r.Node, now.Sub(r.Sent), c.NodeTimeout)
	if r.Op == protocol.OpLeave {
		a.left(r.Node, true)
		return nil
	}
	if ans.Foreign && (ans.Wait == 0 || ans.Wait > foreignPoll) && a.Rules.On(protocol.RuleForeign) {
		ans.Wait = foreignPoll
	}
	far, _ := c.FarTicket(a, r, ans)
	a.Claim.Answer(now, *r, *ans)
	if far && a.Phase() == lease.Joining && !a.Raised() && c.Window().Far(a.Ticket(), c.Clock(a.Began())) {
		// Its T0 is from the clock of a node that others contradict by now.
		a.End(now, lease.Expired)
	}
	if !first {
		a.landed(r)
	}
	if r.Op == protocol.OpJoin && ans.Status == protocol.OK {
		// Nodes that are asked later may not know the claims that the first
		// nodes know.
		a.met = a.met || !ans.Vote || !ans.HasTotals || ans.Sum > 0
		n.Meet(a.met)
	}
	if a.Claim.MissedResize(ans) {
		do = append(do, c.MissedResize(now, n.Name)...)
	}
	return do
}

// foreignPoll is how often the head of a queue asks whether another Redlock
// client still holds the redlock key. A node publishes every other release, but
// not that one. The other waiters do not ask.
const foreignPoll = 100 * time.Millisecond

// Fail takes a request that will not be answered, for good or for now.
func (c *Client) Fail(now protocol.Time, a *Attempt, r *protocol.Request, forGood bool) {
	a.landed(r)
	if r.Op == protocol.OpLeave {
		a.left(r.Node, false)
		return
	}
	a.Claim.Fail(now, *r, forGood)
}

// Reload reports whether a request is to be sent once more that its node could
// not carry out, because it did not know the script. Not after the claim's own
// leave: the claim would stay at the node for a lease.
func (a *Attempt) Reload(r *protocol.Request) bool {
	return r.Op == protocol.OpLeave || !a.Phase().Final()
}

// Up says that a node may have pushed what did not arrive, or has lost the
// claim. It is asked, unless a request waits that is about to ask it.
// Invariant: it is asked although the same request may be under way. The answer
// to that one may be from before the push that was lost.
func (a *Attempt) Up(now protocol.Time, node int) {
	if a.waits(node) == nil {
		a.fresh = a.Rules.On(protocol.RuleAskAgain)
		a.Claim.Up(now, node)
	}
}

// Renew asks every node for a new lease now, also where one has been asked for.
func (a *Attempt) Renew(now protocol.Time) {
	a.fresh = true
	a.Claim.Renew(now)
}

// Take has a caller take the hold, if there is one: the admission may have
// ended before the caller came to run.
func (a *Attempt) Take(now protocol.Time) lease.Phase {
	a.Tick(now)
	a.taken = a.Phase() == lease.Holding
	return a.Phase()
}

// Free returns the nodes that are known to be free of the claim after its end,
// a bit for each, and whether each node has confirmed that or has had its time.
func (a *Attempt) Free() (nodes uint32, all bool) { return a.free, a.ended >= a.Nodes }

func (a *Attempt) left(node int, confirmed bool) {
	if a.ended++; confirmed {
		a.free |= 1 << node
	}
}

// News is what has become of an attempt since News was called last.
type News struct {
	Was, Phase lease.Phase
	Taken      bool // a caller has the hold, and is to learn what follows
	Waiting    bool // a claim has begun to wait behind the hold of that caller
	Calm       bool // none waits there any more
}

func (n *News) Changed() bool { return n.Was != n.Phase }

func (n *News) Lost() bool { return n.Taken && n.Was == lease.Holding && n.Phase == lease.Lost }

// Over reports whether the attempt has ended just now.
func (n *News) Over() bool { return n.Phase.Final() && !n.Was.Final() }

// News says what has become of the attempt. At its end a node that was never
// asked is free of the claim.
func (a *Attempt) News(n *Name) News {
	news := News{Was: a.phase, Phase: a.Phase(), Taken: a.taken}
	a.phase = news.Phase
	switch {
	case news.Over():
		for i := range int(a.Nodes) {
			if a.Untouched(i) {
				a.left(i, true)
			}
		}
	case !news.Phase.Final() && a.taken:
		if waiters := a.Waiters(); waiters != a.waitersReported {
			if a.waitersReported = waiters; waiters {
				news.Waiting = true
				n.Meet(true)
			}
			news.Calm = !waiters
		}
	}
	return news
}

// FarTicket reports whether a node's answer to a claim does not count because
// of clocks: old, since the node has given the claim a ticket that it may have
// forgotten others above, or as the node refuses a ticket that is too far ahead
// of its clock.
func (c *Client) FarTicket(a *Attempt, r *protocol.Request, ans *protocol.Answer) (far, old bool) {
	old = ans.Status == protocol.OK && r.Op == protocol.OpJoin && a.Phase() < lease.Holding && c.Window().Old(ans.Ticket, ans.Clock)
	return old || ans.Status == protocol.Ahead, old
}
