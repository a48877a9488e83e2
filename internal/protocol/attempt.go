package protocol

import (
	"slices"
	"sync"
	"time"
)

// Phase is where an attempt stands.
type Phase uint8

// The phases. From Lost on they are final: "lost is final, nothing revives it".
const (
	Joining  Phase = iota // fewer than q nodes are known to hold exactly T
	Waiting               // settled at T, not admitted
	Holding               // admitted
	Lost                  // was admitted, and rule 3 no longer admits it
	Left                  // released, or cancelled
	Taken                 // a try that others were ahead of
	NoQuorum              // a try that fewer than q nodes answered
	Rejected              // so many nodes refuse for good that q cannot be reached
	Lapsed                // abandoned: start anew with a new id and a new T0
	TooHeavy              // a Resize has left fewer permits than it asks for
)

// Final reports whether nothing more will come of the attempt.
func (p Phase) Final() bool { return p >= Lost }

// Config is what one attempt is made with. Rules is not the last field: a last one without size
// takes a word, and that puts an attempt into the next size class.
type Config struct {
	Terms
	Rules       Rules
	Nodes       int
	NodeTimeout time.Duration // how long an answer is waited for before the node counts as silent
	Drift       time.Duration // how much earlier than the node the client takes a lease to end
	Window      Window        // how far tickets may be from the nodes' clocks
	Try         bool          // do not wait: Taken instead
}

// peer is what the claim knows of one node. A process may hold a great many
// claims, each with a peer for every node: see TestSizes.
type peer struct {
	tkt   Ticket      // held: at this ticket ...
	inc   Incarnation // ... in this incarnation
	taken Time        // s of the newest acknowledgement; older ones are ignored
	asked Time        // s of the request that is out; 0: none
	next  Time        // when it is asked again; 0 and Never: not by itself
	more  *more       // nil: nothing of that

	held     bool  // the node said that it holds the claim
	vote     bool  // its view votes for the claim
	waiters  bool  // claims without a vote are queued there
	hinted   bool  // next is when asking again may bring the vote; else it is a second try
	behind   bool  // it has not answered the settling round
	again    bool  // something may have been missed while a request was out: ask again after the answer
	unsure   bool  // it may have taken its vote back: only answers say whether it votes, see doubt
	refused  bool  // for good: another capacity, a wrong type, a wrong password
	failures uint8 // in a row, as far as that can count
}

// ask has the node asked now, or after the answer that is still to come.
func (p *peer) ask(now Time) {
	if p.asked != 0 {
		p.again = true
	} else {
		p.next, p.hinted = now, false
	}
}

// untouched: nothing has been sent there yet, see Start.
func (p *peer) untouched() bool {
	return p.asked == 0 && p.taken == 0 && p.failures == 0 && !p.held && !p.refused
}

// more is what a claim knows of a node beside that. Claims that are not counted
// hardly ever do.
type more struct {
	content
	was     content // a holder's: when this last admitted the claim
	limit   uint64  // how many permits there are since
	limitAt Ticket  // the Resize that the node knows of; 0: none
	heavy   bool    // it has not confirmed the weight of Shrink yet
	barred  bool    // another client's key keeps everybody out there
	until   Time    // when the lease ends, if not as its ttl tells: the node is recovering and has forgotten it, or clocks have parted; 0: as that
	ripe    Time    // from then on a vote counts that the node gave before: see Clocks; 0: at once
	early   Push    // a push that overtook the answer it belongs to
}

// content is what a node told of the claims before this one, where they count.
type content struct {
	told        bool
	sum, digest uint64
	listed      bool
	lower       []Lower
	from        Ticket // where the list begins,
	base        totals // and what there is before
}

// totals are what is known of claims that are not listed.
type totals struct{ sum, digest uint64 }

// nothing is never written to.
var nothing more

// heard returns what is to be read only.
func (p *peer) heard() *more {
	if p.more == nil {
		return &nothing
	}
	return p.more
}

// own returns what may be written to.
func (p *peer) own() *more {
	if p.more == nil {
		p.more = new(more)
	}
	return p.more
}

// Claim is one attempt of one participant. Its methods take the time and an
// event; afterwards Out holds what is to be sent, Phase what became of it and
// Wake when it wants a Tick. It is not safe for concurrent use.
type Claim struct {
	Config
	Out []Request

	t        Ticket // T
	began    Time   // of the attempt, or of raising T
	beat     Time   // the next beat
	yield    Time   // a try that others are ahead of on a majority gives up then; 0: not known yet
	ask      Time   // the next question of a waiter that counting blocks
	pace     time.Duration
	deadline Time   // Holding: rule 5
	room     uint64 // Holding: the capacity it was admitted under
	shrunk   Time   // s of the first request with the weight of Shrink
	peers    []peer

	phase  Phase
	mute   bool  // renew no more
	first  bool  // some node has voted for the attempt
	raised bool  // T is not the T0 of the join any more
	window uint8 // how far back the lists go that are asked for: see since
	chase  int32 // settling rounds that did not settle the claim
}

// outs are spare arrays for Out: a claim that has nothing to send, as those that
// are held have nearly always, has none.
var outs = sync.Pool{New: func() any { return new([outSize]Request) }}

// outSize is enough for what one event makes a claim send to as many nodes as there usually are.
const outSize = 8

// Sent empties Out: what was in it is on its way. Nobody may have it any more.
func (c *Claim) Sent() {
	if cap(c.Out) >= outSize {
		outs.Put((*[outSize]Request)(c.Out[:outSize]))
	}
	c.Out = nil
}

// NewClaim returns an attempt that has not sent anything yet.
func NewClaim(cfg Config) *Claim {
	return &Claim{Config: cfg, peers: make([]peer, cfg.Nodes), window: firstWindow}
}

// Quorum returns q = N/2 + 1.
func (c *Claim) Quorum() int { return c.Nodes/2 + 1 }

// Phase returns where the attempt stands.
func (c *Claim) Phase() Phase { return c.phase }

// Ticket returns T; final once the claim has been admitted.
func (c *Claim) Ticket() Ticket { return c.t }

// Deadline returns until when the claim is held unless more is heard (rule 5).
func (c *Claim) Deadline() Time { return c.deadline }

// Wake returns when the claim wants a Tick. A holder's deadline is included.
func (c *Claim) Wake() Time {
	if c.phase.Final() {
		return Never
	}
	w := c.beat
	switch c.phase {
	case Joining:
		if c.Rules.on(RuleAbandon) {
			w = min(w, c.began.Add(c.TTL))
		}
	case Waiting:
		w = min(w, c.hinted(), c.ask)
		if c.yield > overdue {
			w = min(w, c.yield)
		}
		if l := c.lapse(); l > 0 && c.Rules.on(RuleLease) {
			w = min(w, l)
		}
	case Holding:
		if c.mute {
			return c.deadline
		}
		if c.Rules.on(RuleFinal) {
			w = min(w, c.deadline)
		}
	}
	for i := range c.peers {
		p := &c.peers[i]
		if p.asked != 0 {
			w = min(w, p.asked.Add(c.NodeTimeout))
		} else if p.next != 0 && !p.hinted {
			w = min(w, p.next)
		}
	}
	return w
}

// next is when to beat again. It falls on one of a few moments, and what falls
// on the same goes out together: to renew one of many claims costs less then.
func (c *Claim) next(now Time) Time {
	at := now.Add(c.interval())
	if step := Time(c.TTL / 256); step >= Time(time.Millisecond) {
		return at / step * step
	}
	// Nothing to be gained. And the exhaustive search, with a ttl of a few units,
	// takes states for one that differ in nothing but when they are.
	return at
}

// interval is ttl/3, less up to a tenth so that claims do not all beat in step.
func (c *Claim) interval() time.Duration {
	third := c.TTL / 3
	return third - third*time.Duration(c.ID[1])/2560
}

// hinted is when enough nodes may have come round to make q votes.
func (c *Claim) hinted() Time {
	if !c.Rules.on(RuleHint) {
		return Never
	}
	need := c.Quorum()
	var buf [9]Time
	hints := buf[:0]
	for i := range c.peers {
		switch p := &c.peers[i]; {
		case p.held && p.vote:
			need--
		case p.held && p.asked == 0 && p.hinted:
			hints = append(hints, p.next)
		}
	}
	if need <= 0 || len(hints) < need {
		return Never
	}
	slices.Sort(hints)
	return hints[need-1]
}

// lapse is when the waiter's leases will have ended on too many nodes.
func (c *Claim) lapse() Time {
	return c.nth(func(p *peer) bool { return p.held })
}
