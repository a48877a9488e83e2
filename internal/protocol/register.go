package protocol

import (
	"slices"
	"time"
)

// This file owns one operation on a record: it asks the nodes, and asks those again that
// do not answer. What the answers decide is in attest.go.

// Outcome is what has become of an Inquiry.
type Outcome uint8

// The outcomes.
const (
	Asking    Outcome = iota // not decided yet
	Settled                  // a majority has it so
	Unsettled                // a read that found what a later run will not let a majority have
	Outrun                   // an open or a put that a later run has overtaken
	Refused                  // so many nodes refuse for good that q cannot be reached
)

// Inquiry is one operation on a record: it asks all nodes, and those that do
// not answer again, until a majority decides. As with Claim, its methods take
// the time and an event, Out is what is to be sent then, and Wake is when it
// wants a Tick.
type Inquiry struct {
	Op          Op            // OpRead, OpOpen or OpPut
	First       bool          // OpPut: of a run that has not been opened
	Over        bool          // OpPut: its claim has been lost, so no node will vote for it any more
	Fresh       time.Duration // how long an answer counts: no node that forgets after it is whole again so soon
	Stored      Stored
	Nodes       int
	NodeTimeout time.Duration
	Patience    time.Duration // the longest pause before a node is asked again
	Alive       bool          // OpRead: Left is wanted, so a node that is only slow is waited for if it matters
	All         bool          // OpRead: every node that answers shall have it in the end
	Repair      int           // OpRead: the number of a node that must have it in the end, counted from 1; 0: none
	Rules       Rules
	Out         []Request

	outcome Outcome
	newest  Stored
	promise Version // the newest that any node has shown
	gone    Time    // since when the claim of an open or a put is known to have ended; 0: it is not
	blocked Time    // since when it cannot be taken unless nodes come to vote for its claim; 0: it can
	since   Time    // what others are asked from here on counts; 0: not yet. See write and read
	peers   []informant
}

// informant is what is known of one node.
type informant struct {
	entry    Entry
	told     bool // entry is its answer
	taken    bool // it has taken the open or put, or has what is being repaired
	overrun  bool // it has refused that for a later run
	missing  bool // it does not vote for the claim
	at       Time // s of its newest answer
	repair   bool // it is to be given the newest
	tried    bool // which it was since it was read last
	refused  bool // it refuses for good
	asked    Time // s of the request that is out; 0: none
	retry    Time // when to ask again; 0: not
	failures int
}

// Quorum returns q.
func (q *Inquiry) Quorum() int { return q.Nodes/2 + 1 }

// Outcome returns what has become of it.
func (q *Inquiry) Outcome() Outcome { return q.outcome }

// Newest returns the newest that any node has shown.
func (q *Inquiry) Newest() Stored { return q.newest }

// Left returns how much is left of the lease of the claim that has recorded the
// newest, as a majority sees it, and whether that is certain: while some nodes
// have not answered, a claim that too few are known to hold may be held all the same.
func (q *Inquiry) Left() (left time.Duration, certain bool) {
	var lefts []time.Duration
	dead := 0
	for i := range q.peers {
		p := &q.peers[i]
		switch {
		case !p.told:
		case p.entry.Version.Run(q.newest.Version) == 0 && p.entry.Left > 0:
			lefts = append(lefts, p.entry.Left)
		default:
			dead++
		}
	}
	switch {
	case len(lefts) >= q.Quorum():
		return nthLongest(lefts, q.Quorum()), true
	case dead > q.Nodes-q.Quorum():
		return 0, true
	case len(lefts) == 0:
		return 0, false
	}
	return slices.Min(lefts), false
}

// Adopt returns what an open has found and fewer than a majority are known to
// have: it is to be put under the new run's version before any caller gets it.
func (q *Inquiry) Adopt() (Stored, bool) {
	have := 0
	for i := range q.peers {
		if p := &q.peers[i]; p.told && p.entry.Version == q.newest.Version {
			have++
		}
	}
	s := q.newest
	s.Version = Version{Ticket: q.Stored.Ticket, ID: q.Stored.ID}
	return s, q.newest.Version != Version{} && have < q.Quorum() && q.Rules.on(RuleAdopt)
}

// Inquire starts an operation on a record. timeout and ttl are those of its name.
func (c *Client) Inquire(now Time, q *Inquiry, timeout, ttl time.Duration, rules Rules) {
	q.Nodes, q.NodeTimeout, q.Patience, q.Rules = c.Nodes, c.fanout.QuorumTimeout(0, timeout, ttl), ttl/3, rules
	q.Fresh = c.Guard - c.Guard/50 // our clock and the node's may run at different speeds
	q.Start(now)
}

// Follow says whether the claim of an open or a put is held, before its requests are sent.
// It reports whether the operation goes on. A run does not begin without its claim. A put
// goes on for LatePut at most: nodes keep a promise for Remember, and a put that comes
// after a node has dropped the promise of a later run would record over that run.
func (q *Inquiry) Follow(now Time, held bool) (goes bool) {
	if held {
		return true
	}
	if q.gone == 0 {
		q.gone = now
	}
	if q.Op == OpOpen && q.Rules.on(RuleOpenHeld) || now.Sub(q.gone) > LatePut {
		return false
	}
	if !q.Over {
		q.Over = true
		q.Tick(now)
	}
	return true
}

// Reply takes a node's answer to r, which the Client has judged.
func (q *Inquiry) Reply(now Time, r Request, a Answer, v Verdict) {
	if !v.Counts() {
		q.Fail(now, r, v.Why == Duplicate)
		return
	}
	q.Answer(now, r, a)
}

// Start asks all nodes; first only the one that is to be repaired.
func (q *Inquiry) Start(now Time) {
	q.peers = make([]informant, q.Nodes)
	for i := range q.peers {
		if q.Repair == 0 || i == q.Repair-1 || !q.Rules.on(RuleAfter) {
			q.ask(now, i)
		}
	}
}

// ask sends a node what it has not done yet.
func (q *Inquiry) ask(now Time, i int) {
	p := &q.peers[i]
	r := Request{Node: i, Op: q.Op, Sent: now}
	switch {
	case p.repair:
		newest := q.newest // which may be another one by the time it is encoded
		promise := q.promise
		r.Op, r.Stored, r.Promise = OpRepair, &newest, &promise
	case q.Op != OpRead:
		r.Stored = &q.Stored
	}
	p.asked, p.retry, p.repair = now, 0, false
	q.Out = append(q.Out, r)
}

// Answer takes a node's answer to r.
func (q *Inquiry) Answer(now Time, r Request, a Answer) {
	p := &q.peers[r.Node]
	if p.asked == r.Sent {
		p.asked = 0
	}
	if q.outcome != Asking {
		return
	}
	p.refused, p.missing = false, a.Status == Missing
	// The newest answer decides: a node that took this once, and does not now, has
	// lost its memory since, or a later run has begun there.
	p.taken = a.Status == OK && r.Op == q.Op && q.Op != OpRead
	if a.Record != nil {
		p.told, p.entry, p.at = true, *a.Record, r.Sent
		if p.entry.Version.Compare(q.newest.Version) > 0 {
			q.newest = p.entry.Stored
		}
		if p.entry.Promise.Run(q.promise) > 0 {
			q.promise = p.entry.Promise
		}
	}
	switch a.Status {
	case OK:
		if q.Op == OpPut || p.entry.Whole {
			p.failures = 0
			break
		}
		// A client is repairing it. Once caught up it can attest.
		p.tried = r.Op == OpRepair
		q.later(now, p, 0)
	case Overtaken:
		if p.overrun = q.Op != OpRead; !p.overrun {
			q.later(now, p, 0) // it has promised more since it was asked
		}
	case Recovering: // it knows nothing, and says so
		*p = informant{}
		q.later(now, p, a.Wait)
	default:
		q.later(now, p, 0)
	}
	q.advance(now)
}

// Fail takes a request that will not be answered, for good or for now.
func (q *Inquiry) Fail(now Time, r Request, forGood bool) {
	p := &q.peers[r.Node]
	if q.outcome != Asking || p.asked != r.Sent {
		return
	}
	p.asked, p.refused = 0, forGood
	q.later(now, p, 0)
	q.advance(now)
}

// Up says that a node's connection has come back.
func (q *Inquiry) Up(now Time, node int) {
	if p := &q.peers[node]; q.outcome == Asking && p.asked == 0 && p.retry != 0 {
		p.retry, p.refused = now, false
		q.advance(now)
	}
}

// Early says that answers are older than this process's clock tells: it stood still.
func (q *Inquiry) Early(now Time, by time.Duration) {
	for i := range q.peers {
		q.peers[i].at = q.peers[i].at.Add(-by)
	}
	q.Tick(now)
}

// Tick lets time pass.
func (q *Inquiry) Tick(now Time) {
	if q.outcome == Asking {
		q.advance(now)
	}
}

// Wake returns when a Tick is wanted.
func (q *Inquiry) Wake() Time {
	w := Never
	if q.outcome != Asking {
		return w
	}
	if q.blocked != 0 {
		w = q.blocked.Add(q.Patience)
	}
	for i := range q.peers {
		p := &q.peers[i]
		switch {
		case p.asked != 0:
			w = min(w, p.asked.Add(q.NodeTimeout))
		case p.retry != 0:
			w = min(w, p.retry)
		}
		if p.told && q.Rules.on(RuleFresh) {
			w = min(w, p.at.Add(q.Fresh))
		}
	}
	return w
}

func (q *Inquiry) later(now Time, p *informant, wait time.Duration) {
	p.failures++
	pause := max(wait, q.NodeTimeout<<min(p.failures, 8)/8)
	p.retry = now.Add(max(min(pause, q.Patience), time.Millisecond))
}

func (q *Inquiry) advance(now Time) {
	refusals := 0
	for i := range q.peers {
		p := &q.peers[i]
		if p.asked != 0 && now >= p.asked.Add(q.NodeTimeout) {
			p.asked = 0
			q.later(now, p, 0)
		}
		if p.told && now >= p.at.Add(q.Fresh) && q.Rules.on(RuleFresh) {
			p.told, p.taken = false, false // it may have forgotten since, and have been repaired with what it knew then
			if p.asked == 0 {
				p.retry = now
			}
		}
		if p.refused {
			refusals++
		}
	}
	if q.Op == OpRead {
		q.read(now)
	} else {
		q.write(now)
	}
	if q.outcome == Asking && q.Nodes-refusals < q.Quorum() {
		q.outcome = Refused
	}
	if q.outcome != Asking {
		return
	}
	for i := range q.peers {
		if p := &q.peers[i]; p.asked == 0 && p.retry != 0 && now >= p.retry {
			q.ask(now, i)
		}
	}
}
