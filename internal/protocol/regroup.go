package protocol

import (
	"strings"
	"time"
)

// This file owns what becomes of claims and operations when another
// configuration begins to count.

// Group is which nodes a client asks, and which of them make a quorum.
type Group struct {
	Nodes int // numbers up to here may be members
	Sets  Quorums
	// Deciders make a quorum of what follows the configuration: the nodes that
	// stay or leave. The name of that register is Successor, empty if the
	// client knows no set.
	Deciders  Quorums
	Successor string
	Absent    uint32 // nodes that are asked nothing, a bit for each
	// Others are the numbers that stand for another member than when the client
	// heard of a group last.
	Others     uint32
	Window     Window        // how far tickets may be from clocks: the guard time that leases fit
	Guard      time.Duration // the longest that counts; 0: that of the Client
	LongestTTL time.Duration // of a claim; 0: any
	TakeBack   Window        // holders ask nodes to take them back, see takeback.go: the guard time of the set; 0: they do not
	// RestartJoining: attempts that are not settled start again, as claims of
	// before may have been admitted by nodes that are not asked any more.
	RestartJoining bool
}

// Regroup has the claim count on other nodes. It keeps its ticket.
//
// Invariant: views stay, since each tells of the queue of its node, whatever
// the node's clients count on. A holder keeps the deadline that it had: no
// claim is admitted by the new nodes alone until it has passed, see Exchange.
// Without that a claim is lost that was admitted just before the new nodes
// began to count.
//
// Invariant: a waiter goes on once it is settled at a quorum of the new nodes,
// too. They insert it at its ticket.
//
// Invariant: an attempt that is not settled starts again when the new set
// counts alone. It may have begun before a claim of the set of before, of which
// the new nodes know nothing, and it may have a lower ticket.
func (c *Claim) Regroup(now Time, g Group) {
	if c.expire(now); c.phase.Final() {
		return
	}
	if c.Succession { // its register was that of the configuration of before
		c.end(now, Lost)
		return
	}
	if g.LongestTTL > 0 && c.TTL > g.LongestTTL && c.Rules.on(RuleSetTTL) {
		c.end(now, Lost) // the set's guard time gets shorter, and will not cover its leases
		return
	}
	c.Sets, c.Absent, c.TakeBack, c.BackGuard = g.Sets, g.Absent, g.TakeBack > 0, max(c.BackGuard, g.TakeBack)
	for c.Nodes = uint8(max(int(c.Nodes), g.Nodes)); len(c.peers) < int(c.Nodes); {
		c.peers = append(c.peers, peer{})
	}
	c.forgetOthers(now, g.Others)
	if g.RestartJoining && c.phase == Joining && !c.Postponed() && c.Rules.on(RuleNarrow) {
		c.end(now, Expired)
		return
	}
	if c.phase == Holding && c.Rules.on(RuleKeepDeadline) {
		c.giveUpAt = c.deadline
	}
	if c.phase != Joining {
		c.raised = true // what is asked for from here on is this ticket
		for i := range c.peers {
			if p := &c.peers[i]; (!p.held || c.misplaced(p)) && !p.refused && g.Absent&(1<<i) == 0 {
				p.ask(now)
			}
		}
	}
	if c.phase == Waiting && !c.Sets.Met(c.exact(now)) && c.Rules.on(RuleSettleNext) {
		c.phase, c.began = Joining, now
	}
	c.advance(now)
}

// forgetOthers has what was said under a number end when the number stands for
// another member.
//
// Invariant: what a claim knows of a number was said by the member that the
// number stands for. Without that a vote of A counts as that of D: a client
// sleeps through so many changes that A's number was given to D
// (RuleSetNumber).
func (c *Claim) forgetOthers(now Time, others uint32) {
	if !c.Rules.on(RuleSetNumber) {
		return
	}
	for i := range c.peers {
		if p := &c.peers[i]; others&(1<<i) != 0 { // what it has still to answer is from before, too
			*p = peer{behind: p.behind, ackSent: now, pendingSince: p.pendingSince, askAt: now}
		}
	}
}

// Regroup has the operation count on other nodes. What nodes have answered
// stays.
func (q *RegisterOp) Regroup(now Time, g Group) {
	if q.Succession && q.outcome == Asking { // its register was that of the configuration of before
		q.outcome = Superseded
		return
	}
	q.Sets, q.Absent = g.Sets, g.Absent
	if g.Window > 0 {
		q.Fresh = min(q.Fresh, g.fresh())
	}
	for q.Nodes = max(q.Nodes, g.Nodes); len(q.peers) < q.Nodes; {
		q.peers = append(q.peers, registerPeer{})
	}
	q.forgetOthers(now, g.Others)
	for i := range q.peers {
		if p := &q.peers[i]; q.outcome == Asking && q.Repair == 0 && !p.answered && p.pendingSince == 0 && p.askAt == 0 {
			p.askAt = now
		}
	}
	q.Tick(now)
}

// forgetOthers is that of a claim: what these numbers said is as if they had
// not been asked.
func (q *RegisterOp) forgetOthers(now Time, others uint32) {
	if others == 0 || q.outcome != Asking || !q.Rules.on(RuleSetNumber) {
		return
	}
	q.newest, q.promise = Stored{}, Version{}
	for i := range q.peers {
		p := &q.peers[i]
		if others&(1<<i) == 0 {
			q.collect(p)
			continue
		}
		asked := p.answered || p.pendingSince != 0 || p.askAt != 0
		*p = registerPeer{from: now, pendingSince: p.pendingSince}
		if asked {
			p.askAt = now.Add(1)
		}
	}
}

// fresh returns how long an answer about a record counts: less than a guard
// time, as our clock and the node's may run at different speeds.
func (g *Group) fresh() time.Duration {
	guard := time.Duration(g.Window) * time.Millisecond
	return guard - guard/50
}

// of returns the group for a claim or an operation.
func (g *Group) of(succession bool) (sets Quorums, absent uint32) {
	if succession {
		return g.Deciders, ^g.Deciders.All()
	}
	return g.Sets, g.Absent
}

// SuccessorName returns the name of the register that decides which
// configuration follows the one with this stamp. Its claims and its operations
// have Succession set.
//
// Invariant: the register counts the nodes that stay or leave, in every stage.
// So an exchange is given up though its new nodes cannot be reached, and two
// operators find there what was decided first.
func SuccessorName(s Stamp) string { return successors + string(s) }

const successors = "quorate set "

// IsSuccessor reports whether a name is that of such a register.
func IsSuccessor(name string) bool { return strings.HasPrefix(name, successors) }

// Brings reports whether a node that lost its data has to get a name, and
// whether as the register that decides which configuration follows.
//
// Invariant: what follows a configuration is repaired at the nodes that decide
// it, and is read from these alone. Such a register of another configuration is
// left out: a node serves one configuration only, so no client asks for that
// register any more. Without the rule the register of the last configuration
// keeps a node from being caught up that entered since: those that entered
// never had what it has, and no run decides it again.
func (g *Group) Brings(node int, name string) (brings, succession bool) {
	if g.Successor == "" || !IsSuccessor(name) {
		return true, false
	}
	bare, _, _ := strings.Cut(name, "}") // nodes list it with what follows the name in its keys
	return bare == g.Successor && g.Deciders.All()&(1<<node) != 0, true
}

// Group returns which nodes the client asks now.
func (c *Client) Group() Group { return *c.group.Load() }

// Regroup has the client count on other nodes. The claims and the operations
// under way are for the caller to tell.
func (c *Client) Regroup(now Time, g Group) (do []Action) {
	c.mu.Lock()
	c.grow(g.Nodes)
	c.group.Store(&g)
	c.repair.Group = g
	c.judgeClocks(func(j *Clocks) { j.Regroup(g.Sets, g.Guard) })
	if !c.closed {
		c.repair.Hurry(now)
	}
	return c.unlock(now)
}
