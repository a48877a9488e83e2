package core

// This file owns the Client of a Quorum. process.Client decides which replies
// count, whether clocks have parted and which nodes are repaired. This file
// gives it the time and the nodes' answers, and does what it says.
// Invariant: what the Client says is carried out without the Client's lock
// held.

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/flow"
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/rule"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/wake"
)

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
		Seed: rand.Uint64(), Rules: rule.Protocol(),
	})
	d.timer.Start(d.tick)
}

// It runs in the goroutine of the timer.
func (d *driver) tick() {
	if !d.q.isClosed() {
		d.carryOut(d.client.Tick(d.q.now()))
	}
}

// carryOut does what the Client says. The caller holds no lock of an attempt or
// a registerCall. Two goroutines may carry out their actions in any order: late
// is right at any time.
func (d *driver) carryOut(do []process.Action) {
	if len(do) > 0 && d.q.nodes.size() == 0 { // the first group is yet to come, and an Action names a node
		d.q.nodes.grow(d.q, 1)
	}
	for i := range do {
		d.act(&do[i])
	}
	for i := range do { // last: the logger may block
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
		d.q.records.event(func(in *lease.RegisterOp, now protocol.Time) { in.Early(now, a.By) })
	case process.ActTime:
		for i, n := range d.q.nodes.all() {
			// A node that is down is left out: probe asks it for the time when
			// it is connected to again.
			if a.Nodes&(1<<i) != 0 && n.Err() == nil {
				n.Send(n.askTime())
				n.askServes()
			}
		}
	case process.ActMark:
		n.beginIncarnation(a)
	case process.ActReconnect:
		n.Link.Reconnect(fault.ErrOtherIncarnation)
	case process.ActStep:
		d.q.repairs.start(a.Step)
	}
}

// report tells the log and the observer what the Client has found out.
// Invariant: it runs after all of act. A logger may block; what is to be done
// for safety is done by then.
func (d *driver) report(n *node, a *process.Action) {
	switch a.Kind {
	case process.ActJumped:
		// Noted first: a logger that blocks must not keep it from Check.
		n.jump.note(a.By)
		d.q.set.Logger.Warn("quorate: a node's clock has jumped; it does not vote for a guard time", "node", n.addr, "by", a.By)
		d.q.observer.call(setup.Event{Kind: setup.EventClockJumped, Node: n.addr, Took: a.By, Err: &fault.JumpedError{By: a.By}})
	case process.ActDoubted:
		d.q.set.Logger.Warn("quorate: this process's clock and a node's disagree, and too few other nodes can be asked which one is wrong; "+
			"it does not vote for half a guard time", "node", n.addr, "by", a.By)
	case process.ActStood:
		d.q.set.Logger.Warn("quorate: this process's clock has stood still, as that of a machine that was asleep; holds end earlier by that", "for", a.By)
	}
}

// jump is the last jump of a node's clock, for Check: an operator must see the
// cause of a loss after the node has recovered. mu guards it.
type jump struct {
	mu   sync.Mutex
	by   time.Duration
	when time.Time // when it was seen
}

func (j *jump) note(by time.Duration) {
	j.mu.Lock()
	j.by, j.when = by, time.Now()
	j.mu.Unlock()
}

func (j *jump) last() (time.Duration, time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.by, j.when
}

// askTime returns a question for a node's time. It is to be sent at once: the
// time from askTime to the answer bounds the node's clock.
func (n *node) askTime() *flow.Request {
	q := n.q
	sent := q.now()
	return &flow.Request{Command: resp.AppendCommand(nil, "TIME"), Then: func(v []resp.Value, err error) {
		if millis, e := script.DecodeTime(v); err == nil && e == nil {
			q.driver.showTime(n.index, nodeset.Reading{Sent: sent, Received: q.now(), Millis: millis})
		}
	}}
}

// showTime takes the time that a node has told. It is evidence about clocks and
// nothing else, so what the Client makes of the reading itself is dropped.
func (d *driver) showTime(node int, r nodeset.Reading) {
	_, do := d.client.Time(node, r)
	d.carryOut(do)
}

// mismatch says why a node's answer to a claim does not count because of
// clocks, or nil. Called with a.mu held.
func (d *driver) mismatch(c *process.Attempt, r *protocol.Request, a *protocol.Answer) error {
	far, old := d.client.FarTicket(c, r, a)
	if !far {
		return nil
	}
	if ahead := d.nodesTime(d.q.now()).Sub(time.UnixMilli(a.Clock)); old || ahead > d.q.set.Skew {
		return &fault.ClockError{Ahead: ahead}
	}
	return &fault.AheadError{Wait: a.Wait}
}

// NodesTime is the median of the nodes' clocks, near 1970 before any is known.
func (q *Quorum) NodesTime() time.Time { return q.driver.nodesTime(q.now()) }

func (d *driver) nodesTime(at protocol.Time) time.Time {
	return time.UnixMicro(int64(d.client.Clock(at)))
}

// a.Try comes back, so that the Client knows an answer to an older question.
func (n *node) beginIncarnation(a *process.Action) {
	q := n.q
	jumped, try := strconv.FormatUint(uint64(a.Incarnation), 10), a.Try
	n.Send(&flow.Request{Command: script.AppendMark(nil, q.members.markerKey(), newID(), n.Info().Run(), jumped), Then: func(v []resp.Value, err error) {
		inc, _, e := script.DecodeMarker(v)
		q.driver.carryOut(q.driver.client.Marked(q.now(), n.index, try, inc, err == nil && e == nil))
	}})
}

func (q *Quorum) addr(i int) string {
	if n := q.node(i); n != nil {
		return n.addr
	}
	return ""
}

// checkIncarnation says why a reply of that incarnation does not count. It is
// for answers beside claims and records, such as a marker. The caller holds no
// lock: what follows may be an event of each claim.
func (d *driver) checkIncarnation(node int, inc protocol.Incarnation) error {
	why, do := d.client.Check(d.q.now(), node, inc)
	d.carryOut(do)
	return uncounted(why)
}

// uncounted returns why a reply does not count, nil if it counts.
func uncounted(why protocol.Why) error {
	switch why {
	case protocol.Counts:
		return nil
	case protocol.Parted:
		return fault.ErrParted
	}
	return fault.ErrOtherIncarnation
}

// Rounds is how long to wait for n questions of a majority, one after another.
func (q *Quorum) Rounds(s *setup.Settings, n int) time.Duration {
	return time.Duration(n) * q.driver.client.Fanout().QuorumTimeout(0, s.NodeTimeout, s.TTL)
}

func (d *driver) sets() protocol.Quorums { return d.client.Group().Sets }

// timeout is how long to wait for an answer of this node.
func (n *node) timeout(s *setup.Settings) time.Duration {
	if n.seed() {
		return max(s.NodeTimeout, min(2*n.Info().RoundTrip, s.TTL/4))
	}
	return n.fanout.NodeTimeout(n.index, s.NodeTimeout, s.TTL)
}

// furthest is how long to wait for the answers of all nodes.
func (d *driver) furthest(s *setup.Settings) time.Duration {
	return d.client.Fanout().Longest(s.NodeTimeout, s.TTL)
}
