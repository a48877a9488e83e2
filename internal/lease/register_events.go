package lease

import (
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// This file owns what happens to an operation on a record: it asks the nodes,
// and asks those again that do not answer. What the answers decide is in
// attest.go.

// Follow says whether the claim of an open or a put is held, before its
// requests are sent. It reports whether the operation goes on. A run does not
// begin without its claim. A put goes on for LatePut at most: nodes keep a
// promise for Remember, and a put that comes after a node has dropped the
// promise of a later run would record over that run.
func (q *RegisterOp) Follow(now protocol.Time, held bool) (goes bool) {
	if held {
		return true
	}
	if q.gone == 0 {
		q.gone = now
	}
	// An open that is answered after its claim has ended would begin a run
	// beside that of the next holder. A put may follow: it can only record what
	// was done while the claim was held, and a later run's promise refuses it.
	if now.Sub(q.gone) > protocol.LatePut ||
		q.Op == protocol.OpOpen { //mutant:RuleOpenHeld
		return false
	}
	if !q.Over {
		q.Over = true
		q.Tick(now)
	}
	return true
}

// Reply takes a node's answer to r, which the Client has judged.
func (q *RegisterOp) Reply(now protocol.Time, r protocol.Request, a protocol.Answer, v protocol.Verdict) {
	if !v.Counts() {
		q.Fail(now, r, false)
		return
	}
	q.Answer(now, r, a)
}

// Start asks all nodes; first only the one that is to be repaired. The others
// are asked when that one has answered, since what counts is what they know
// after its guard time is over.
func (q *RegisterOp) Start(now protocol.Time) {
	if q.Sets == (protocol.Quorums{}) {
		q.Sets = protocol.Majority(q.Nodes)
	}
	q.peers = make([]registerPeer, q.Nodes)
	for i := range q.peers {
		if q.Repair == 0 || i == q.Repair-1 { //mutant:RuleAfter=true
			q.ask(now, i)
		}
	}
}

// ask sends a node what it has not done yet. Each request is repeated until it
// is answered: an open, a put and a repair are idempotent by their version.
func (q *RegisterOp) ask(now protocol.Time, i int) {
	p := &q.peers[i]
	if q.Absent&(1<<i) != 0 {
		p.askAt = 0
		return
	}
	// A node that is repaired gets the newest value and the newest promise that
	// are known, in one request. The promise matters as much as the value:
	// without it the node would let a superseded run record again.
	r := protocol.Request{Node: i, Op: q.Op, Sent: now}
	switch {
	case p.repair:
		newest := q.newest // which may be another one by the time it is encoded
		promise := q.promise
		r.Op, r.Stored, r.Promise = protocol.OpRepair, &newest, &promise
	case q.Op != protocol.OpRead:
		r.Stored = &q.Stored
	}
	p.pendingSince, p.askAt, p.repair = now, 0, false
	q.Out = append(q.Out, r)
}

func (q *RegisterOp) Answer(now protocol.Time, r protocol.Request, a protocol.Answer) {
	p := &q.peers[r.Node]
	if p.from != 0 && r.Sent <= p.from {
		q.Fail(now, r, false)
		return
	}
	// Only the answer to the request that is out ends the wait. One to an older
	// request still tells what the node has: it is used as well.
	if p.pendingSince == r.Sent {
		p.pendingSince = 0
	}
	if q.outcome != Asking {
		return
	}
	p.refused, p.missing = false, a.Status == protocol.Missing
	// The newest answer decides: a node that took this once, and does not now,
	// has lost its data since, or a later run has begun there.
	p.taken = a.Status == protocol.OK && r.Op == q.Op && q.Op != protocol.OpRead
	if a.Record != nil {
		p.answered, p.entry, p.answerSent = true, *a.Record, r.Sent
		q.collect(p)
	}
	switch a.Status {
	case protocol.OK:
		if q.Op == protocol.OpPut || p.entry.CaughtUp {
			p.failures = 0
			break
		}
		// A client is repairing it. Once caught up it can attest.
		p.repairTried = r.Op == protocol.OpRepair
		q.retryLater(now, p, 0)
	case protocol.StatusSuperseded:
		if p.superseded = q.Op != protocol.OpRead; !p.superseded {
			q.retryLater(now, p, 0) // it has promised more since it was asked
		}
	// All that the node said before is void: it may have taken the put and
	// forgotten it. It is asked again, as it may make the majority.
	case protocol.Recovering: // it knows nothing, and says so
		*p = registerPeer{from: p.from}
		q.retryLater(now, p, a.Wait)
	default:
		q.retryLater(now, p, 0)
	}
	q.advance(now)
}

func (q *RegisterOp) collect(p *registerPeer) {
	if p.entry.Version.Compare(q.newest.Version) > 0 {
		q.newest = p.entry.Stored
	}
	if p.entry.Promise.Run(q.promise) > 0 {
		q.promise = p.entry.Promise
	}
}

// Fail takes a request that will not be answered, for good or for now.
func (q *RegisterOp) Fail(now protocol.Time, r protocol.Request, forGood bool) {
	p := &q.peers[r.Node]
	if q.outcome != Asking || p.pendingSince != r.Sent {
		return
	}
	p.pendingSince, p.refused = 0, forGood
	q.retryLater(now, p, 0)
	q.advance(now)
}

// Up says that a node's connection has come back. The operation may not count
// on the node yet: see Regroup.
func (q *RegisterOp) Up(now protocol.Time, node int) {
	if node >= len(q.peers) {
		return
	}
	if p := &q.peers[node]; q.outcome == Asking && p.pendingSince == 0 && p.askAt != 0 {
		p.askAt, p.refused = now, false
		q.advance(now)
	}
}

// Regroup has the operation count on other nodes. What nodes have answered
// stays.
func (q *RegisterOp) Regroup(now protocol.Time, g protocol.Group) {
	if q.Succession { //mutant:RuleSetSuccessor
		q.Supersede() // its register was that of the configuration of before
		return
	}
	q.Sets, q.Absent = g.Sets, g.Absent
	if g.Window > 0 {
		q.Fresh = min(q.Fresh, g.Fresh())
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

// Supersede ends an operation whose register is not asked any more.
func (q *RegisterOp) Supersede() {
	if q.outcome == Asking {
		q.outcome = Superseded
	}
}

// forgetOthers is that of a claim: what these numbers said is as if they had
// not been asked.
func (q *RegisterOp) forgetOthers(now protocol.Time, others uint32) {
	if others == 0 || q.outcome != Asking { //mutant:RuleSetNumber=true
		return
	}
	q.newest, q.promise = protocol.Stored{}, protocol.Version{}
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

// Early says that answers are older than this process's clock tells: it stood
// still.
func (q *RegisterOp) Early(now protocol.Time, by time.Duration) {
	for i := range q.peers {
		q.peers[i].answerSent = q.peers[i].answerSent.Add(-by)
	}
	q.Tick(now)
}

func (q *RegisterOp) Tick(now protocol.Time) {
	if q.outcome == Asking {
		q.advance(now)
	}
}

func (q *RegisterOp) Wake() protocol.Time {
	w := protocol.Never
	if q.outcome != Asking {
		return w
	}
	// Nothing more is heard of a claim that is dropped at its nodes. So the
	// wait for their votes has a bound of its own.
	if q.blocked != 0 {
		w = q.blocked.Add(q.MaxPause)
	}
	for i := range q.peers {
		p := &q.peers[i]
		switch {
		case p.pendingSince != 0:
			w = min(w, p.pendingSince.Add(q.NodeTimeout))
		case p.askAt != 0:
			w = min(w, p.askAt)
		}
		// Time alone makes an answer old. Without this moment an operation that
		// waits for a slow node would settle on answers of long ago.
		if p.answered { //mutant:RuleFresh
			w = min(w, p.answerSent.Add(q.Fresh))
		}
	}
	return w
}

// retryLater has a node asked again after a pause that doubles with each
// failure, up to MaxPause. An operation has no end of its own: its caller's
// context, or the loss of its claim, ends it.
func (q *RegisterOp) retryLater(now protocol.Time, p *registerPeer, wait time.Duration) {
	p.failures++
	pause := max(wait, q.NodeTimeout<<min(p.failures, 8)/8)
	p.askAt = now.Add(max(min(pause, q.MaxPause), time.Millisecond))
}

// advance lets answers that are too old expire, decides, and asks again the
// nodes that have not answered.
// Invariant: an answer that is older than Fresh counts for nothing (RuleFresh).
func (q *RegisterOp) advance(now protocol.Time) {
	refusals := uint32(0)
	for i := range q.peers {
		p := &q.peers[i]
		if p.pendingSince != 0 && now >= p.pendingSince.Add(q.NodeTimeout) {
			p.pendingSince = 0
			q.retryLater(now, p, 0)
		}
		if p.answered && now >= p.answerSent.Add(q.Fresh) { //mutant:RuleFresh
			p.answered, p.taken = false, false // it may have forgotten since, and have been repaired with what it knew then
			if p.pendingSince == 0 {
				p.askAt = now
			}
		}
		if p.refused {
			refusals |= 1 << i
		}
	}
	// What the answers decide comes before what is asked next: an operation
	// that is decided sends nothing more, and leaves no request behind.
	if q.Op == protocol.OpRead {
		q.read(now)
	} else {
		q.write(now)
	}
	if q.outcome == Asking && q.Sets.Blocked(refusals) {
		q.outcome = Refused
	}
	if q.outcome != Asking {
		return
	}
	for i := range q.peers {
		if p := &q.peers[i]; p.pendingSince == 0 && p.askAt != 0 && now >= p.askAt {
			q.ask(now, i)
		}
	}
}
