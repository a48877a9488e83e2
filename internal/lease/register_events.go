package lease

import (
	"time"

	"github.com/quorate/quorate/internal/invariant"
	"github.com/quorate/quorate/internal/protocol"
)

// The events of an operation on a record: it asks the nodes, and asks again
// those that do not answer. attest.go decides based on the answers.

// Follow is told whether the claim of an open or a put is held, before the
// requests are sent. It reports whether the operation continues. An open ends
// with its claim: a run does not begin without one. A put continues for LatePut
// at most. Nodes keep a promise for Remember, and a put that came after a node
// had dropped the promise of a later run would overwrite that run.
func (q *RegisterOp) Follow(now protocol.Time, held bool) (goes bool) {
	if held {
		return true
	}
	if q.gone == 0 {
		q.gone = now
	}
	// An open that is answered after its claim has ended would begin a run at
	// the same time as the next holder. A put may continue: it can only record
	// what was done while the claim was held, and the promise of a later run
	// refuses it.
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

// Reply passes on the answer of a node to r, which the Client has judged.
func (q *RegisterOp) Reply(now protocol.Time, r protocol.Request, a protocol.Answer, v protocol.Verdict) {
	if !v.Counts() {
		q.Fail(now, r, false)
		return
	}
	q.Answer(now, r, a)
}

// Start asks all nodes.
func (q *RegisterOp) Start(now protocol.Time) {
	if q.Sets == (protocol.Quorums{}) {
		q.Sets = protocol.Majority(q.Nodes)
	}
	q.peers = make([]registerPeer, q.Nodes)
	for i := range q.peers {
		q.ask(now, i)
	}
}

// ask sends a node the operation, or the repair that it needs. Each request is
// repeated until it is answered: an open, a put and a repair are idempotent by
// their version.
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
		newest := q.newest // a copy, because q.newest may change before the request is encoded
		promise := q.promise
		r.Op, r.Stored, r.Promise = protocol.OpRepair, &newest, &promise
	case q.Op != protocol.OpRead:
		r.Stored = &q.Stored
	}
	p.pendingSince, p.askAt, p.repair = now, 0, false
	q.Out = append(q.Out, r)
}

// Answer takes in the answer of a node to r.
func (q *RegisterOp) Answer(now protocol.Time, r protocol.Request, a protocol.Answer) {
	p := &q.peers[r.Node]
	if p.from != 0 && r.Sent <= p.from {
		q.Fail(now, r, false)
		return
	}
	// Only the answer to the unanswered request ends the wait. An answer to an
	// older request still shows what the node has, so it is used as well.
	if p.pendingSince == r.Sent {
		p.pendingSince = 0
	}
	if q.outcome != Asking {
		return
	}
	p.refused, p.missing = false, a.Status == protocol.Missing
	// The newest answer decides. If a node took this before and does not any
	// more, it has lost its data since, or a later run has begun there.
	p.taken = a.Status == protocol.OK && r.Op == q.Op && q.Op != protocol.OpRead
	if a.Record != nil {
		p.answered, p.entry, p.answerSent = true, *a.Record, r.Sent
		q.collect(p)
	}
	// Once the claim is lost, what a node takes that is not caught up does not
	// count, as in sure. The repair of that node decides the record by a run,
	// and after that the node refuses.
	unsure := false
	if q.Over && p.taken && !p.entry.CaughtUp { //mutant:RuleLateTake
		p.taken, unsure = false, true
	}
	switch a.Status {
	case protocol.OK:
		if q.Op == protocol.OpPut && !unsure || p.entry.CaughtUp {
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
	// Everything that the node said before is void: it may have taken the put
	// and forgotten it. It is asked again, because its vote may complete the
	// majority.
	case protocol.Recovering: // the node has no data, and says so
		*p = registerPeer{from: p.from}
		q.retryLater(now, p, a.Wait)
	default:
		q.retryLater(now, p, 0)
	}
	q.advance(now)
}

// collect takes the value and the promise of an answer if they are the newest
// so far.
func (q *RegisterOp) collect(p *registerPeer) {
	if p.entry.Version.Compare(q.newest.Version) > 0 {
		q.newest = p.entry.Stored
	}
	if p.entry.Promise.Run(q.promise) > 0 {
		q.promise = p.entry.Promise
	}
}

// Fail records that r will not be answered. permanent says that the node
// refuses permanently.
func (q *RegisterOp) Fail(now protocol.Time, r protocol.Request, permanent bool) {
	p := &q.peers[r.Node]
	if q.outcome != Asking || p.pendingSince != r.Sent {
		return
	}
	p.pendingSince, p.refused = 0, permanent
	q.retryLater(now, p, 0)
	q.advance(now)
}

// Up records that the connection to a node is back. The operation may not use
// the node yet: see Regroup.
func (q *RegisterOp) Up(now protocol.Time, node int) {
	if node >= len(q.peers) {
		return
	}
	if p := &q.peers[node]; q.outcome == Asking && p.pendingSince == 0 && p.askAt != 0 {
		p.askAt, p.refused = now, false
		q.advance(now)
	}
}

// Regroup makes the operation use the nodes of g. The answers of nodes that
// stay are kept.
func (q *RegisterOp) Regroup(now protocol.Time, g protocol.Group) {
	if q.Succession { //mutant:RuleSetSuccessor
		q.Supersede() // its register belonged to the previous configuration
		return
	}
	q.Sets, q.Absent = g.Sets, g.Absent
	if g.Window > 0 {
		q.Fresh = min(q.Fresh, g.Fresh())
	}
	for q.Nodes = max(q.Nodes, g.Nodes); len(q.peers) < q.Nodes; {
		q.peers = append(q.peers, registerPeer{})
	}
	q.forgetReassigned(now, g.Reassigned)
	for i := range q.peers {
		p := &q.peers[i]
		if q.outcome == Asking && !p.answered && p.pendingSince == 0 && p.askAt == 0 {
			p.askAt = now
		}
	}
	q.Tick(now)
}

// Supersede ends an operation whose register is no longer used.
func (q *RegisterOp) Supersede() {
	if q.outcome == Asking {
		q.outcome = Superseded
	}
}

// forgetReassigned is like State.forgetReassigned: what was said under these
// numbers is dropped, as if those nodes had not been asked.
func (q *RegisterOp) forgetReassigned(now protocol.Time, reassigned uint32) {
	if reassigned == 0 || q.outcome != Asking { //mutant:RuleSetNumber=true
		return
	}
	q.newest, q.promise = protocol.Stored{}, protocol.Version{}
	for i := range q.peers {
		p := &q.peers[i]
		if reassigned&(1<<i) == 0 {
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

// AgeAnswers records that answers are older than the clock of this process
// shows, because that clock stood still.
func (q *RegisterOp) AgeAnswers(now protocol.Time, by time.Duration) {
	for i := range q.peers {
		q.peers[i].answerSent = q.peers[i].answerSent.Add(-by)
	}
	q.Tick(now)
}

// Tick records that time has passed: answers may be overdue or too old.
func (q *RegisterOp) Tick(now protocol.Time) {
	if q.outcome == Asking {
		q.advance(now)
	}
}

// Wake returns when the operation wants a Tick.
func (q *RegisterOp) Wake() protocol.Time {
	w := protocol.Never
	if q.outcome != Asking {
		return w
	}
	// If the nodes have dropped a claim, nothing more is heard of it. So the
	// wait for their votes has its own bound.
	if q.stuckSince != 0 {
		w = q.stuckSince.Add(q.MaxPause)
	}
	for i := range q.peers {
		p := &q.peers[i]
		switch {
		case p.pendingSince != 0:
			w = min(w, p.pendingSince.Add(q.NodeTimeout))
		case p.askAt != 0:
			w = min(w, p.askAt)
		}
		// An answer becomes too old with time alone. Without this moment an
		// operation that waits for a slow node would settle on answers from
		// long ago.
		if p.answered { //mutant:RuleFresh
			w = min(w, p.answerSent.Add(q.Fresh))
		}
	}
	return w
}

// retryLater schedules the next request to a node. The pause doubles with each
// failure, up to MaxPause. An operation has no time limit of its own: the
// context of its caller, or the loss of its claim, ends it.
func (q *RegisterOp) retryLater(now protocol.Time, p *registerPeer, wait time.Duration) {
	p.failures++
	pause := max(wait, q.NodeTimeout<<min(p.failures, 8)/8)
	p.askAt = now.Add(max(min(pause, q.MaxPause), time.Millisecond))
}

// advance drops answers that are too old, decides, and repeats requests that
// have not been answered.
// Invariant: an answer that is older than Fresh is not used (RuleFresh).
func (q *RegisterOp) advance(now protocol.Time) {
	if invariant.On {
		defer q.check(now, len(q.Out))
	}
	refusals := uint32(0)
	for i := range q.peers {
		p := &q.peers[i]
		if p.pendingSince != 0 && now >= p.pendingSince.Add(q.NodeTimeout) {
			p.pendingSince = 0
			q.retryLater(now, p, 0)
		}
		if p.answered && now >= p.answerSent.Add(q.Fresh) { //mutant:RuleFresh
			// The node may have lost its data since, and may already have been
			// repaired without what it reported then.
			p.answered, p.taken = false, false
			if p.pendingSince == 0 {
				p.askAt = now
			}
		}
		if p.refused {
			refusals |= 1 << i
		}
	}
	// The decision comes before the next requests: an operation that is decided
	// sends nothing more, and leaves no request behind.
	if q.Op == protocol.OpRead {
		q.judgeRead(now)
	} else {
		q.judgeWrite(now)
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
