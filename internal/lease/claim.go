package lease

import (
	"sync"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// This file owns what a claim is: its phases, its requests, and its end (rule
// 7). What an event tells is taken in answer.go, and advance.go draws the
// conclusions.

// Phase is where an attempt stands.
//
//	         q nodes have exactly T         rule 3 admits it
//	Joining ------------------------> Waiting ----------------> Holding
//	   ^                                 |                         |
//	   `---- T is raised (rule 4) -------'                         | the deadline
//	   |                                 |                         v
//	   `--> Expired, NoQuorum, Rejected  `--> Busy, Expired,      Lost
//	                                          TooHeavy
//
// Leave takes a claim from each of the first three to Left.
type Phase uint8

// The phases. From Lost on they are final: "lost is final, nothing revives it".
const (
	Joining  Phase = iota // fewer than q nodes are known to hold exactly T
	Waiting               // settled at T, not admitted
	Holding               // admitted
	Lost                  // was admitted, and rule 3 no longer admits it
	Left                  // released, or cancelled
	Busy                  // a try that others were ahead of
	NoQuorum              // a try that fewer than q nodes answered
	Rejected              // so many nodes refuse for good that q cannot be reached
	Expired               // abandoned: start again with a new id and a new T0
	TooHeavy              // a Resize has left fewer permits than it asks for
)

func (p Phase) Final() bool { return p >= Lost }

// Config is what one attempt is made with. Rules is not the last field: a last
// one without size takes a word, and that puts an attempt into the next size
// class.
type Config struct {
	protocol.Terms
	Rules       protocol.Rules
	Sets        protocol.Quorums // the zero value: a majority of Nodes
	NodeTimeout time.Duration    // how long an answer is waited for before the node counts as silent
	Drift       time.Duration    // how much earlier than the node the client takes a lease to end
	Window      protocol.Window  // how far tickets may be from the nodes' clocks
	Try         bool             // do not wait: Busy instead
	Nodes       uint8            // that are known; those without a vote, too
	Succession  bool             // of the register of SuccessorName
	Absent      uint32           // of these, nodes that are asked nothing, a bit for each
}

// Drift returns how much earlier than a node a client takes a lease to end: 1%
// of the ttl for clocks that run at different speeds, 2% for jumps of the
// node's clock that other clients cannot notice, 2 ms for the node's
// resolution.
func Drift(ttl time.Duration) time.Duration { return 3*ttl/100 + 2*time.Millisecond }

// interval is ttl/3, less up to a tenth so that claims do not all beat in step.
func (c *Claim) interval() time.Duration {
	third := c.TTL / 3
	return third - third*time.Duration(c.ID[1])/2560
}

// Claim is one attempt of one participant. Its methods take the time and an
// event; afterwards Out holds what is to be sent, Phase what became of it and
// Wake when it wants a Tick. It is not safe for concurrent use.
type Claim struct {
	Config
	Out []protocol.Request

	ticket           protocol.Ticket // T
	began            protocol.Time   // of the attempt, or of raising T
	beatAt           protocol.Time   // the next beat
	giveUpAt         protocol.Time   // a try that others are ahead of on a majority gives up then; 0: not known yet. Holding: see Regroup
	countAt          protocol.Time   // the next question of a waiter that counting blocks
	countPause       time.Duration
	deadline         protocol.Time // Holding: rule 5
	admittedCapacity uint64        // Holding: the capacity it was admitted under
	shrunkAt         protocol.Time // s of the first request with the weight of Shrink
	peers            []peer

	phase        Phase
	noRenewal    bool  // renew no more
	evicted      bool  // an operator has ended the hold
	votedOnce    bool  // some node has voted for the attempt
	raised       bool  // T is not the T0 of the join any more
	listDepth    uint8 // how far back the lists go that are asked for: see listFrom
	settleRounds int32 // settling rounds that did not settle the claim
}

func NewClaim(cfg Config) *Claim {
	if cfg.Sets == (protocol.Quorums{}) {
		cfg.Sets = protocol.Majority(int(cfg.Nodes))
	}
	return &Claim{Config: cfg, peers: make([]peer, cfg.Nodes), listDepth: firstDepth}
}

// Quorum returns how many nodes are needed, for messages.
func (c *Claim) Quorum() int { return c.Sets.Need() }

func (c *Claim) Phase() Phase { return c.phase }

// Ticket returns T; final once the claim has been admitted.
func (c *Claim) Ticket() protocol.Ticket { return c.ticket }

// Evicted reports whether an operator has ended the hold. Its phase is Lost.
func (c *Claim) Evicted() bool { return c.evicted }

// Deadline returns until when the claim is held unless more is heard (rule 5).
func (c *Claim) Deadline() protocol.Time { return c.deadline }

// Waiters reports whether another claim is known to wait behind the claim. What
// a node said that does not answer any more is forgotten: no other answer says
// that the claim has gone.
func (c *Claim) Waiters() bool {
	for i := range c.peers {
		if p := &c.peers[i]; p.waiters && p.failures < 2 && c.Absent&(1<<i) == 0 {
			return true
		}
	}
	return false
}

// Asks reports whether the claim asks a node: it is a member of the
// configuration that the claim counts on.
func (c *Claim) Asks(node int) bool { return node < len(c.peers) && c.Absent&(1<<node) == 0 }

func (c *Claim) Untouched(node int) bool { return c.peers[node].neverSent() }

// Postpone says that there is no room for any of the joins at their nodes yet,
// so the attempt has not begun. It is not abandoned before it has (rule 2): it
// would start again at the end of the queue for room.
func (c *Claim) Postpone() {
	if c.phase == Joining {
		c.began = protocol.Never.Add(-c.TTL)
	}
}

func (c *Claim) Postponed() bool { return c.began == protocol.Never.Add(-c.TTL) }

// Begin begins a postponed attempt, with a ticket of now: T0 must not be older
// than the attempt (rule 2).
func (c *Claim) Begin(now protocol.Time, t0 protocol.Ticket) { c.ticket, c.began = t0, now }

// Propose gives the claim another T0. Nothing has been sent yet.
func (c *Claim) Propose(t0 protocol.Ticket) { c.ticket = t0 }

func (c *Claim) Began() protocol.Time { return c.began }

// Raised reports whether T is not the T0 of the join any more.
func (c *Claim) Raised() bool { return c.raised }

// Depart says that r, which has waited at this client for room at its node, is
// sent now. It returns r with a new s: "s is before the request left", and a
// lease that counted from before the wait would be the shorter for it.
func (c *Claim) Depart(now protocol.Time, r protocol.Request) protocol.Request {
	p := &c.peers[r.Node]
	p.pendingSince, p.askAt, p.hinted = now, protocol.Never, false
	if r.Sent = now; r.Op == protocol.OpJoin {
		r.Ticket = c.ticket
	}
	return r
}

// Leave withdraws the claim everywhere (rule 7).
func (c *Claim) Leave(now protocol.Time) {
	if c.expire(now); !c.phase.Final() {
		c.End(now, Left)
	}
}

// expire is rule 5: at the deadline the hold is over, whatever else comes.
func (c *Claim) expire(now protocol.Time) {
	if c.phase == Holding && now >= c.deadline {
		if !c.Rules.On(protocol.RuleFinal) {
			return
		}
		c.End(now, Lost)
	}
}

// End makes the attempt final and leaves every node, "also where the join's
// outcome is unknown". What was to be sent before is dropped: a settle behind
// the leave would store the claim again, and no client would ever remove it. A
// request that has been sent already cannot come later than the leave, since
// the requests of a claim keep their order to each node.
func (c *Claim) End(now protocol.Time, phase Phase) {
	c.phase, c.Out = phase, c.Out[:0]
	for i := range c.peers {
		if p := &c.peers[i]; p.held || c.Rules.On(protocol.RuleLeaveAll) && !p.neverSent() {
			c.send(now, i, protocol.OpLeave)
		}
	}
}

// outs are spare arrays for Out: a claim that has nothing to send, as those
// that are held have nearly always, has none.
var outs = sync.Pool{New: func() any { return new([outSize]protocol.Request) }}

// outSize is enough for one event, at as many nodes as there usually are.
const outSize = 8

// Sent empties Out. The caller must not use the old Out any more.
func (c *Claim) Sent() {
	if cap(c.Out) >= outSize {
		outs.Put((*[outSize]protocol.Request)(c.Out[:outSize]))
	}
	c.Out = nil
}

// send appends a request to Out. It is the only place that does, so each
// request of a claim updates what the claim knows to be under way.
func (c *Claim) send(now protocol.Time, node int, op protocol.Op) {
	p := &c.peers[node]
	if op == protocol.OpSettle || op == protocol.OpJoin && !p.neverSent() {
		c.distrustPushes(p)
	}
	p.pendingSince, p.askAt, p.hinted = now, protocol.Never, false
	// A holder whose views differ learns the lists in time: when a node goes,
	// the rest must still admit it.
	list := op == protocol.OpBeat && c.Counting && (c.phase == Waiting && c.countPause > 0 || c.phase == Holding && c.differ(now) && c.Rules.On(protocol.RuleLists))
	t := c.ticket
	if list {
		t = c.listFrom()
	}
	if c.Out == nil {
		c.Out = outs.Get().(*[outSize]protocol.Request)[:0]
	}
	c.Out = append(c.Out, protocol.Request{Node: node, Op: op, Ticket: t, List: list, Sent: now})
}

// distrustPushes: a node may have taken its vote back, within one incarnation
// and at one ticket. Then only answers say whether it votes. A push is a reason
// to ask. A node that stores the claim once, and keeps it, keeps its vote. It
// takes the vote back in two cases only. (a) The lease ends, another client
// takes the redlock key, and a settle stores the claim again at the same
// ticket. That takes a second request that may store the claim at this ticket.
// (b) The redlock key is another client's though the lease has not ended. The
// answer to the claim's next request says so.
func (c *Claim) distrustPushes(p *peer) { p.pushUnsure = c.Rules.On(protocol.RulePushOnce) }
