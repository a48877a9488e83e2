package process

import (
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/invariant"
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
)

// Attempt is one claim and everything that belongs to it in its process: the
// requests that the claim wants sent, and what the process learns from the
// replies. A lock of the runtime guards it. A [Client] may be called while that
// lock is held.
//
// Each event ends with a Step, which returns what to send and what has changed.
// Wake returns when the attempt needs a Tick.
type Attempt struct {
	lease.Claim
	outbox          outbox
	phase           lease.Phase // as of the last Step
	met             bool        // a node knows of other claims at the name
	taken           bool        // a caller has the hold
	waitersReported bool        // that caller knows that claims wait behind it
}

// Name is what all claims of one process at one name share. It is safe for
// concurrent use. It affects only how soon claims settle and how many nodes are
// asked, never safety.
type Name struct {
	Name     string
	Counting bool // a semaphore's

	contended atomic.Bool
	tickets   lease.TicketClock
}

// Contended reports whether other claims have recently been met at the name.
func (n *Name) Contended() bool { return n.contended.Load() }

// Meet records whether other claims were met at the name. contended is written
// only if it changes, because the requests of many goroutines share it.
func (n *Name) Meet(others bool) {
	if n.contended.Load() != others {
		n.contended.Store(others)
	}
}

// Step ends an event. It returns the requests to send, in order. The runtime
// enqueues each request at its node and calls Sent or MarkWaiting for it, and
// then gives the slice to [lease.Free]. It leaves out requests that turn out
// not to be needed: see outbox.
func (a *Attempt) Step(n *Name) (send []protocol.Request, news News) {
	send = a.Out[:0]
	for i := range a.Out {
		r := &a.Out[i]
		r.Class = ClassOf(a.State.Phase(), r.Op) //mutant:RuleUrgent=protocol.Waits
		if r.Op == protocol.OpJoin {
			r.Ticket = a.State.Ticket()
		}
		if a.outbox.goes(r) {
			send = append(send, *r)
		}
	}
	a.Out, a.outbox.fresh = nil, false
	news = a.news(n)
	if invariant.On {
		a.outbox.check()
	}
	return send, news
}

// MarkWaiting records that r waits for room at its node. r must not move. If
// nothing has been sent yet, the attempt is postponed, so that it does not time
// out before it has begun.
func (a *Attempt) MarkWaiting(r *protocol.Request) {
	if a.outbox.unsent == nil {
		a.outbox.unsent = new([32]*protocol.Request)
	}
	a.outbox.unsent[r.Node] = r
	if a.outbox.sent == 0 { //mutant:RulePostpone
		a.State.MarkNotStarted()
	}
}

// Sent records that r, the same pointer as in MarkWaiting, was handed to a
// link. sent says whether the node may receive the request; if not, a call of
// Fail follows.
func (a *Attempt) Sent(r *protocol.Request, sent bool) {
	if a.outbox.waitingAt(r.Node) == r {
		a.outbox.unsent[r.Node] = nil
	}
	if !sent {
		return
	}
	if a.State.NotStarted() {
		// An earlier node had no room in this step, but this one has. So the
		// attempt begins now, with the ticket that it has just proposed.
		a.Claim.State.Begin(r.Sent, a.State.Ticket())
	}
	bit := uint32(1) << r.Node
	a.outbox.sent |= bit
	if repeatable(r.Op) {
		a.outbox.flying |= bit
	}
}

// Refused records that a node has refused r for now. If r is a leave that
// should be sent again, it returns the pause before that, which grows with the
// time for which the node has refused. Otherwise it returns 0, and r counts as
// failed.
// Invariant: a leave is sent again only while the lease that it ends may still
// run, and only to a node that may have the claim.
func (a *Attempt) Refused(now protocol.Time, r *protocol.Request) (pause time.Duration) {
	since := now.Sub(r.Sent)
	pause = max(a.State.NodeTimeout, since) / 4
	has := (a.outbox.reached|a.outbox.flying)&(1<<r.Node) != 0
	if r.Op == protocol.OpLeave && has && since+pause < a.State.TTL { //mutant:RuleLeaveAgain
		return pause
	}
	a.fail(now, r, false)
	return 0
}

// Reached records that a node has carried out a request, or may have.
func (a *Attempt) Reached(node int) { a.outbox.reached |= 1 << node }

// Fail records that r will not be answered. permanent says that the node will
// not answer such a request later either. The node may have carried r out.
func (a *Attempt) Fail(now protocol.Time, r *protocol.Request, permanent bool) {
	a.Reached(r.Node)
	a.fail(now, r, permanent)
}

// fail is Fail, except that the node has certainly not carried r out.
func (a *Attempt) fail(now protocol.Time, r *protocol.Request, permanent bool) {
	a.outbox.landed(r)
	if r.Op == protocol.OpLeave {
		a.outbox.left(r.Node, false)
		return
	}
	a.Claim.Fail(now, *r, permanent)
}

// AwaitsFirstAnswers reports whether fewer than a quorum of nodes have answered
// or failed while the attempt is joining. As long as it is true the attempt
// counts toward core.MaxStarting. The content of the answers does not matter:
// an attempt stuck behind rivals at its name must not keep other names out.
func (a *Attempt) AwaitsFirstAnswers() bool {
	return a.State.Phase() == lease.Joining && !a.State.Sets.Met(a.outbox.sent&^a.outbox.flying)
}

// Reload reports whether to send a request again that its node could not carry
// out because it did not know the script. It is false after the leave of the
// claim: the claim would stay at the node for a whole lease.
func (a *Attempt) Reload(r *protocol.Request) bool {
	return r.Op == protocol.OpLeave || !a.State.Phase().Final()
}

// Up records that the connection to a node is ready again: the node may have
// pushed something that did not arrive, or may have lost the claim. The node is
// asked again, unless a request that will ask it is already waiting for room. A
// request in flight is not enough, because its answer may be older than the
// lost push.
func (a *Attempt) Up(now protocol.Time, node int) {
	if a.outbox.waitingAt(node) == nil {
		a.outbox.fresh = true //mutant:RuleAskAgain=false
		a.Claim.Up(now, node)
	}
}

// Renew asks every node for a new lease now, even a node that has already been
// asked.
func (a *Attempt) Renew(now protocol.Time) {
	a.outbox.fresh = true
	a.Claim.Renew(now)
}

// Take gives the hold to a caller, if there is one, and returns the phase. The
// hold may have ended between admission and the moment when the caller runs.
func (a *Attempt) Take(now protocol.Time) lease.Phase {
	a.Tick(now)
	a.taken = a.State.Phase() == lease.Holding
	return a.State.Phase()
}

// Free returns the nodes that are known to be free of the claim after its end,
// a bit for each. all reports whether every leave has been answered or given
// up.
func (a *Attempt) Free() (nodes uint32, all bool) {
	return a.outbox.free, a.outbox.ended >= a.State.Nodes
}

// News says what an event has changed for an attempt.
type News struct {
	Was, Phase lease.Phase
	Taken      bool // a caller has the hold and must learn of its end and of waiters
	Waiting    bool // a claim has begun to wait behind the hold of that caller
	Calm       bool // no claim waits behind it any more
}

func (n *News) Changed() bool { return n.Was != n.Phase }

func (n *News) Lost() bool { return n.Taken && n.Was == lease.Holding && n.Phase == lease.Lost }

// Over reports whether the attempt has just ended.
func (n *News) Over() bool { return n.Phase.Final() && !n.Was.Final() }

// news returns what the event has changed. At the end of the attempt, a node
// that was never asked counts as free of the claim.
func (a *Attempt) news(n *Name) News {
	news := News{Was: a.phase, Phase: a.State.Phase(), Taken: a.taken}
	a.phase = news.Phase
	switch {
	case news.Over():
		for i := range int(a.State.Nodes) {
			if a.State.Untouched(i) {
				a.outbox.left(i, true)
			}
		}
	case !news.Phase.Final() && a.taken:
		if waiters := a.State.Waiters(); waiters != a.waitersReported {
			if a.waitersReported = waiters; waiters {
				news.Waiting = true
				n.Meet(true)
			}
			news.Calm = !waiters
		}
	}
	return news
}
