package lease

import (
	"sync"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// This file owns a claim: how it ends (rules 5 and 7), and each request that it
// sends.

// Claim is one attempt of one participant. Its methods take the time and an
// event; afterwards Out holds what is to be sent, Phase what became of it and
// Wake when it wants a Tick. It is not safe for concurrent use.
type Claim struct {
	State State
	Out   []protocol.Request

	beatAt     protocol.Time // the next beat
	giveUpAt   protocol.Time // a try that others are ahead of on a majority gives up then; 0: not known yet. Holding: see Regroup
	countAt    protocol.Time // the next question of a waiter that counting blocks
	countPause time.Duration
}

func NewClaim(cfg Config) *Claim {
	if cfg.Sets == (protocol.Quorums{}) {
		cfg.Sets = protocol.Majority(int(cfg.Nodes))
	}
	return &Claim{State: State{Config: cfg, peers: make([]peer, cfg.Nodes), lists: firstDepth}}
}

// Deadline returns until when the claim is held unless more is heard (rule 5).
func (c *Claim) Deadline() protocol.Time { return c.State.deadline }

// expire is rule 5: at the deadline the hold is over, whatever else comes.
func (c *Claim) expire(now protocol.Time) {
	if c.State.phase == Holding && now >= c.State.deadline { //mutant:RuleFinal
		c.End(now, Lost)
	}
}

// End makes the attempt final and leaves every node, "also where the join's
// outcome is unknown". What was to be sent before is dropped: a settle behind
// the leave would store the claim again, and no client would ever remove it.
func (c *Claim) End(now protocol.Time, phase Phase) {
	c.State.phase, c.Out = phase, c.Out[:0]
	for i := range c.State.peers {
		if p := &c.State.peers[i]; !p.neverSent() { //mutant:RuleLeaveAll=p.held
			c.send(now, i, protocol.OpLeave)
		}
	}
}

// outs are spare arrays for Out: a claim that has nothing to send, as those
// that are held have nearly always, has none.
var outs = sync.Pool{New: func() any { return new([outSize]protocol.Request) }}

// outSize is enough for one event, at as many nodes as there usually are.
const outSize = 8

// Free gives back the array of what was in Out. The caller must not use it any
// more.
func Free(out []protocol.Request) {
	if cap(out) >= outSize {
		outs.Put((*[outSize]protocol.Request)(out[:outSize]))
	}
}

// send appends a request to Out. It is the only place that does, so each
// request of a claim updates what the claim knows to be under way.
func (c *Claim) send(now protocol.Time, node int, op protocol.Op) {
	p := &c.State.peers[node]
	if op == protocol.OpSettle || op == protocol.OpJoin && !p.neverSent() {
		p.distrustPushes()
	}
	p.pendingSince, p.askAt, p.hinted = now, protocol.Never, false
	// A holder whose views differ learns the lists in time: when a node goes,
	// the rest must still admit it.
	list := op == protocol.OpBeat && c.State.Counting && (c.State.phase == Waiting && c.countPause > 0 ||
		c.State.phase == Holding && c.State.at(now).differ()) //mutant:RuleLists
	patient := (op == protocol.OpBeat || op == protocol.OpSettle) && !c.State.insists(now, node, list)
	t := c.State.ticket
	if list {
		t = c.State.lists.from(t)
	}
	if c.Out == nil {
		c.Out = outs.Get().(*[outSize]protocol.Request)[:0]
	}
	c.Out = append(c.Out, protocol.Request{Node: node, Op: op, Ticket: t, List: list, Patient: patient, Sent: now})
}
