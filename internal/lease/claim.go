package lease

import (
	"sync"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// Claim is one attempt of one participant. Its methods take the time and an
// event. Afterwards Out holds what to send, Phase says what has become of the
// claim, and Wake says when it wants a Tick. It is not safe for concurrent use.
type Claim struct {
	State State
	Out   []protocol.Request

	beatAt protocol.Time // the next beat
	// When a try gives up because claims are ahead of it on a majority; 0: not
	// known yet. While holding: see Regroup.
	giveUpAt   protocol.Time
	countAt    protocol.Time // when a waiter that the counting rule blocks asks for the lists again
	countPause time.Duration // the pause before countAt; it doubles each time
}

func NewClaim(cfg Config) *Claim {
	if cfg.Sets == (protocol.Quorums{}) {
		cfg.Sets = protocol.Majority(int(cfg.Nodes))
	}
	return &Claim{State: State{Config: cfg, peers: make([]peer, cfg.Nodes), listDepth: firstDepth}}
}

// Deadline returns until when the claim is held if no more answers arrive (rule
// 5).
func (c *Claim) Deadline() protocol.Time { return c.State.deadline }

// expire is rule 5: at the deadline the hold is over, whatever else comes.
func (c *Claim) expire(now protocol.Time) {
	if c.State.phase == Holding && now >= c.State.deadline { //mutant:RuleFinal
		c.End(now, Lost)
	}
}

// End makes the attempt final and leaves every node, "also where the join's
// outcome is unknown". Requests that were not sent yet are dropped: a settle
// that follows the leave would store the claim again, and no client would ever
// remove it.
func (c *Claim) End(now protocol.Time, phase Phase) {
	c.State.phase, c.Out = phase, c.Out[:0]
	for i := range c.State.peers {
		if p := &c.State.peers[i]; !p.neverSent() { //mutant:RuleLeaveAll=p.held
			c.send(now, i, protocol.OpLeave)
		}
	}
}

// outs are spare arrays for Out. Most claims are held and have nothing to send,
// so they have no array.
var outs = sync.Pool{New: func() any { return new([outSize]protocol.Request) }}

// outSize is enough for the requests of one event to the usual number of nodes.
const outSize = 8

// Free gives back the array of a slice that was in Out. The caller must not use
// the slice any more.
func Free(out []protocol.Request) {
	if cap(out) >= outSize {
		outs.Put((*[outSize]protocol.Request)(out[:outSize]))
	}
}

// send appends a request to Out. It is the only function that does, so the
// claim knows of each request in flight.
func (c *Claim) send(now protocol.Time, node int, op protocol.Op) {
	p := &c.State.peers[node]
	if op == protocol.OpSettle || op == protocol.OpJoin && !p.neverSent() {
		p.distrustPushes()
	}
	p.pendingSince, p.askAt, p.hinted = now, protocol.Never, false
	// A holder whose views differ asks for the lists early: if a node goes
	// away, the other nodes must still admit the claim.
	list := op == protocol.OpBeat && c.State.Counting && (c.State.phase == Waiting && c.countPause > 0 ||
		c.State.phase == Holding && c.State.at(now).differ()) //mutant:RuleLists
	patient := (op == protocol.OpBeat || op == protocol.OpSettle) && !c.State.insists(now, node, list)
	t := c.State.ticket
	if list {
		t = c.State.listDepth.firstTicket(t)
	}
	if c.Out == nil {
		c.Out = outs.Get().(*[outSize]protocol.Request)[:0]
	}
	c.Out = append(c.Out, protocol.Request{
		Node: node, Op: op, Ticket: t, List: list, Patient: patient, Sent: now,
	})
}
