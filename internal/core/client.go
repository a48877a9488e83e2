package core

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// protocol.Client decides which replies count, whether clocks have parted and which nodes
// are repaired. This file gives it the time, and carries out what it says.
//
// Invariant: what the Client says is carried out without the Client's lock held. Some of it
// sends, some calls the logger, and either may lead to another event of the Client.

// The seed is random, so that the clients of a fleet do not try to repair a node at
// the same moments.
func (q *Quorum) newClient(nodes int) *protocol.Client {
	return protocol.NewClient(protocol.ClientConfig{
		Nodes: nodes, TTL: q.set.TTL, NodeTimeout: q.set.NodeTimeout, Guard: q.set.Guard, WallAllowed: q.allowed(),
		Wall: q.micros, Seed: rand.Uint64(), Rules: rules(),
	})
}

// clientTimer is when the Client wants a Tick. It is safe for concurrent use; mu guards at.
//
// Invariant: the timer fires at the earliest time that was asked for since it fired last.
// Two goroutines may ask in any order.
// Note: Here is an incorrect version: timer.Reset with every time that is asked
// for. A goroutine that got its action first may carry it out last, and the later
// time would replace the earlier. The Client would then wake too late to see a
// clock jump.
type clientTimer struct {
	mu    sync.Mutex
	timer *time.Timer
	at    protocol.Time // 0: it does not run
}

// The timer runs for the first time when the Client asks for it. An hour is only a
// start value, and a tick that comes for no reason does no harm.
func (t *clientTimer) start(tick func()) {
	t.timer = time.AfterFunc(time.Hour, func() {
		t.mu.Lock()
		t.at = 0
		t.mu.Unlock()
		tick()
	})
}

func (t *clientTimer) set(now, at protocol.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.at == 0 || at < t.at {
		t.at = at
		t.timer.Reset(max(at.Sub(now), 0))
	}
}

// It runs in the goroutine of the timer. After Close has begun, the Client needs
// the time no more.
func (q *Quorum) tickClient() {
	if !q.isClosed() {
		q.carryOut(q.client.Tick(q.now()))
	}
}

// carryOut does what the Client says. The caller holds no lock of an attempt or a registerCall.
// It first waits until New has made all nodes. New waits for no connection, so this
// is short; if New fails, closing ends the wait.
//
// Any goroutine may be here: a reader with a reply, the timer, a caller. Two of
// them may carry out their actions in any order. The Client allows for that: late
// is right at any time.
func (q *Quorum) carryOut(do []protocol.Action) {
	if len(do) == 0 {
		return
	}
	select {
	case <-q.built:
	case <-q.closing:
		select {
		case <-q.built: // it closes, and gives its turns up
		default:
			return
		}
	}
	for i := range do {
		q.act(&do[i])
	}
	for i := range do { // last: the observer or the logger may end the goroutine
		q.report(q.nodes[do[i].Node], &do[i])
	}
}

// It must not block for long: the goroutine may be the reader of a node. What waits
// for nodes is a question with a reply, or a task.
func (q *Quorum) act(a *protocol.Action) {
	n := q.nodes[a.Node]
	switch a.Kind {
	case protocol.ActWake:
		q.clientTimer.set(q.now(), a.At)
	case protocol.ActAsk:
		n.recheck()
	case protocol.ActGone:
		n.gone()
	case protocol.ActEarly:
		for _, at := range q.attempts.all() {
			at.event(func(c *protocol.Attempt, now protocol.Time) { c.Early(now, a.Nodes, a.By) })
		}
		q.records.early(a.By)
	case protocol.ActTime:
		for i, n := range q.nodes {
			if a.Nodes&(1<<i) != 0 && n.err() == nil {
				n.send(n.askTime())
			}
		}
	case protocol.ActMark:
		n.beginIncarnation(a)
	case protocol.ActRecount:
		n.recount()
	case protocol.ActGuard:
		n.askGuard()
	case protocol.ActCompare:
		n.compare(*a)
	case protocol.ActReconnect:
		n.link.Reconnect(errOtherIncarnation)
	case protocol.ActStep:
		q.repairs.start(a.Step)
	case protocol.ActWall:
		q.askWall(a.Nodes, a.Try)
	case protocol.ActWallWrong:
		q.refuseAll()
	case protocol.ActAttempted:
		q.repairs.wake(n)
	}
}

// report tells the log and the observer what the Client has found out.
// Invariant: it runs after all of act. A logger may block, and an observer may end
// its goroutine; what is to be done for safety is done by then.
func (q *Quorum) report(n *node, a *protocol.Action) {
	switch a.Kind {
	case protocol.ActDuplicate:
		q.set.Logger.Warn("quorate: two nodes are the same server; the first keeps its vote, the second gets none: give each server once",
			"first", q.nodes[a.Other].addr, "second", n.addr)
	case protocol.ActJumped:
		n.jump.note(a.By)
		q.set.Logger.Warn("quorate: a node's clock has jumped; it does not vote for a guard time", "node", n.addr, "by", a.By)
		q.observer.call(Event{Kind: EventClockJumped, Node: n.addr, Took: a.By, Err: &JumpedError{By: a.By}})
	case protocol.ActDoubted:
		q.set.Logger.Warn("quorate: this process's clock and a node's have parted, and too few other nodes can be asked whose it was; "+
			"for half a guard time its votes count later by that", "node", n.addr, "by", a.By)
	case protocol.ActWallWrong:
		if a.Changed {
			q.reportWall()
		}
	case protocol.ActWallRight:
		q.set.Logger.Info("quorate: the nodes' clocks agree with this process's wall clock again")
	case protocol.ActStood:
		q.set.Logger.Warn("quorate: this process's clock has stood still, as that of a machine that was asleep; holds end earlier by that", "for", a.By)
	}
}
