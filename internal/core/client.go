package core

import (
	"math/rand/v2"

	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/wake"
)

// process.Client decides which replies count, whether clocks have parted and
// which nodes are repaired. This file gives it the time and does what it says.
// Invariant: what the Client says is carried out without the Client's lock
// held.

// driver owns the Client of a Quorum and the timer that it asks for. It is safe
// for concurrent use: both have locks of their own.
// Lock order: the lock of an attempt or a registerCall, then the Client's.
type driver struct {
	q      *Quorum
	client *process.Client
	timer  wake.Timer
}

// The seed is random, so that the clients of a fleet do not try to repair a
// node at the same moments.
func (d *driver) init(q *Quorum) {
	d.q = q
	d.client = process.NewClient(process.ClientConfig{
		TTL: d.q.set.TTL, NodeTimeout: d.q.set.NodeTimeout, Guard: d.q.set.Guard,
		Seed: rand.Uint64(), Rules: rules(),
	})
	d.timer.Start(d.tick)
}

// It runs in the goroutine of the timer.
func (d *driver) tick() {
	if !d.q.isClosed() {
		d.carryOut(d.client.Tick(d.q.now()))
	}
}

// carryOut does what the Client says, once New has made all nodes. The caller
// holds no lock of an attempt or a registerCall. Two goroutines may carry out
// their actions in any order: late is right at any time.
func (d *driver) carryOut(do []process.Action) {
	if len(do) == 0 {
		return
	}
	select {
	case <-d.q.built:
	case <-d.q.closing:
		select {
		case <-d.q.built: // it closes, and gives its turns up
		default:
			return
		}
	}
	if d.q.nodes.size() == 0 { // the first group is yet to come, and an Action names a node
		d.q.nodes.grow(d.q, 1)
	}
	for i := range do {
		d.act(&do[i])
	}
	for i := range do { // last: the observer or the logger may end the goroutine
		d.report(d.q.nodes.at(do[i].Node), &do[i])
	}
}

// It must not block for long: the goroutine may be the reader of a node. What
// waits for nodes is a question with a reply, or a task.
func (d *driver) act(a *process.Action) {
	n := d.q.nodes.at(a.Node)
	switch a.Kind {
	case process.ActWake:
		d.timer.Set(d.q.now(), a.At)
	case process.ActAsk:
		n.recheck()
	case process.ActGone:
		n.gone()
	case process.ActEarly:
		for _, at := range d.q.attempts.all() {
			at.event(func(c *process.Attempt, now protocol.Time) { c.Early(now, a.Nodes, a.By) })
		}
		d.q.records.early(a.By)
	case process.ActTime:
		for i, n := range d.q.nodes.all() {
			// A node that is down is left out: probe asks it for the time when
			// it is connected to again.
			if a.Nodes&(1<<i) != 0 && n.err() == nil {
				n.send(n.askTime())
				n.askServes()
			}
		}
	case process.ActMark:
		n.beginIncarnation(a)
	case process.ActReconnect:
		n.link.Reconnect(errOtherIncarnation)
	case process.ActStep:
		d.q.repairs.start(a.Step)
	case process.ActAttempted:
		d.q.repairs.wake(n)
	}
}

// report tells the log and the observer what the Client has found out.
// Invariant: it runs after all of act. A logger may block, and an observer may
// end its goroutine; what is to be done for safety is done by then.
func (d *driver) report(n *node, a *process.Action) {
	switch a.Kind {
	case process.ActJumped:
		// Noted first: a logger that blocks must not keep it from Check.
		n.jump.note(a.By)
		d.q.set.Logger.Warn("quorate: a node's clock has jumped; it does not vote for a guard time", "node", n.addr, "by", a.By)
		d.q.observer.call(Event{Kind: EventClockJumped, Node: n.addr, Took: a.By, Err: &JumpedError{By: a.By}})
	case process.ActDoubted:
		d.q.set.Logger.Warn("quorate: this process's clock and a node's disagree, and too few other nodes can be asked which one is wrong; "+
			"it does not vote for half a guard time", "node", n.addr, "by", a.By)
	case process.ActStood:
		d.q.set.Logger.Warn("quorate: this process's clock has stood still, as that of a machine that was asleep; holds end earlier by that", "for", a.By)
	}
}
