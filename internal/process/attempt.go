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

// Attempt is one claim and all that goes with it in its process. A lock of the
// runtime guards it. A [Client] may be called while that lock is held.
//
// Each event ends with a Step. It returns what is to be sent, and what has
// become of the attempt. Wake says when the attempt wants a Tick.
type Attempt struct {
	lease.Claim
	outbox          outbox
	phase           lease.Phase // as of the last Step
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

// Step ends an event. It returns what is to be sent, in order: the runtime
// enqueues each request at its node, and tells Departed or Waits what has become
// of it. Then it gives the slice to [lease.Free]. What the claim wants sent and
// is not in it is needless: see outbox.
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
	return send, a.news(n)
}

// Waits says that r, which stays where it is, has to wait for room. An attempt
// of which nothing has been sent has not begun.
func (a *Attempt) Waits(r *protocol.Request) {
	if a.outbox.unsent == nil {
		a.outbox.unsent = new([32]*protocol.Request)
	}
	a.outbox.unsent[r.Node] = r
	if a.outbox.sent == 0 { //mutant:RulePostpone
		a.State.Postpone()
	}
}

// Departed says that a link was handed r, which has not moved since, and
// whether the node may get it. If not, a failure follows. The link had room.
func (a *Attempt) Departed(r *protocol.Request, sent bool) {
	if a.outbox.waits(r.Node) == r {
		a.outbox.unsent[r.Node] = nil
	}
	if !sent {
		return
	}
	if a.State.Postponed() {
		a.Claim.State.Begin(r.Sent, a.State.Ticket())
	}
	bit := uint32(1) << r.Node
	a.outbox.sent |= bit
	if repeatable(r.Op) {
		a.outbox.flying |= bit
	}
}

// Refused says that a node has refused r for now. A leave is to be sent again
// after the pause that is returned, which grows with the time that the node has
// refused. Anything else has failed.
// Invariant: a leave is sent again while the lease that it is to end may last,
// and only to a node that may have the claim.
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

// Reached says that a node has carried out a request, or may have.
func (a *Attempt) Reached(node int) { a.outbox.reached |= 1 << node }

// Fail takes a request that will not be answered, for good or for now. The node
// may have carried it out.
func (a *Attempt) Fail(now protocol.Time, r *protocol.Request, forGood bool) {
	a.Reached(r.Node)
	a.fail(now, r, forGood)
}

func (a *Attempt) fail(now protocol.Time, r *protocol.Request, forGood bool) {
	a.outbox.landed(r)
	if r.Op == protocol.OpLeave {
		a.outbox.left(r.Node, false)
		return
	}
	a.Claim.Fail(now, *r, forGood)
}

// Underway reports whether the attempt is on the way to its first answers: it
// joins, and fewer nodes than a quorum have answered or failed. What the
// answers say is in nothing: an attempt that a name's other claims keep from
// settling must not keep other names out.
func (a *Attempt) Underway() bool {
	return a.State.Phase() == lease.Joining && !a.State.Sets.Met(a.outbox.sent&^a.outbox.flying)
}

// Reload reports whether a request is to be sent once more that its node could
// not carry out, because it did not know the script. Not after the claim's own
// leave: the claim would stay at the node for a lease.
func (a *Attempt) Reload(r *protocol.Request) bool {
	return r.Op == protocol.OpLeave || !a.State.Phase().Final()
}

// Up says that a node may have pushed what did not arrive, or has lost the
// claim. It is asked, unless a request waits that is about to ask it.
// Invariant: it is asked although the same request may be under way. The answer
// to that one may be from before the push that was lost.
func (a *Attempt) Up(now protocol.Time, node int) {
	if a.outbox.waits(node) == nil {
		a.outbox.fresh = true //mutant:RuleAskAgain=false
		a.Claim.Up(now, node)
	}
}

// Renew asks every node for a new lease now, also where one has been asked for.
func (a *Attempt) Renew(now protocol.Time) {
	a.outbox.fresh = true
	a.Claim.Renew(now)
}

// Take has a caller take the hold, if there is one: the admission may have
// ended before the caller came to run.
func (a *Attempt) Take(now protocol.Time) lease.Phase {
	a.Tick(now)
	a.taken = a.State.Phase() == lease.Holding
	return a.State.Phase()
}

// Free returns the nodes that are known to be free of the claim after its end,
// a bit for each, and whether each node has confirmed that or has had its time.
func (a *Attempt) Free() (nodes uint32, all bool) {
	return a.outbox.free, a.outbox.ended >= a.State.Nodes
}

// News is what has become of an attempt in an event.
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

// news says what has become of the attempt. At its end a node that was never
// asked is free of the claim.
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
