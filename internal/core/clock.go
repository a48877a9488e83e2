package core

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// Leases end by their node's wall clock. protocol.Clocks judges by the times that
// the nodes tell whether one of these clocks has jumped, or this process's has
// stood still. This file gives it the readings, and does what it says.

// clocks owns the judge of a Quorum. mu guards judge and ticking.
type clocks struct {
	open atomic.Bool // some case is: each reading may be evidence

	mu      sync.Mutex // before any nodeClock's
	judge   *protocol.Clocks
	ticking bool // a goroutine is waiting for judge.Wake
}

// nodeClock is what is known of one node's clock. mu guards it. The judge reads all bounds
// with all of these locks held, in the order of the nodes.
type nodeClock struct {
	mu     sync.Mutex
	bounds protocol.ClockBounds
	jumped time.Duration // the last jump, and
	when   time.Time     // when it was seen
}

// newClocks returns a judge over n nodes, and what it knows of each.
func newClocks(n int, set *Settings) (*clocks, []nodeClock) {
	nodes := make([]nodeClock, n)
	bounds := make([]*protocol.ClockBounds, n)
	for i := range nodes {
		bounds[i] = &nodes[i].bounds
	}
	c := &clocks{judge: protocol.NewClocks(bounds, set.NodeTimeout, set.Guard)}
	c.judge.Rules = rules()
	return c, nodes
}

// last returns the last jump that was seen, and when it was seen.
func (c *nodeClock) last() (time.Duration, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.jumped, c.when
}

// look asks each node for its time if no reply has shown it for a while, so that
// the bounds stay narrow without traffic. With a ttl of 1 s or more, no bound of a
// connected node is older than three eighths of it: protocol.md, "Clocks", counts on
// half of one.
func (q *Quorum) look() {
	every := max(q.set.TTL/4, 250*time.Millisecond)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-q.closing:
			return
		}
		for i, n := range q.nodes {
			c := &q.nodeClocks[i]
			c.mu.Lock()
			at := c.bounds.At()
			c.mu.Unlock()
			if q.now().Sub(at) > every/2 && n.err() == nil {
				n.send(q.askTime(n))
			}
		}
	}
}

// askTime returns a question for a node's time. It is to be sent at once: the time from
// askTime to the answer bounds the node's clock.
func (q *Quorum) askTime(n *node) *question {
	sent := q.now()
	return &question{command: resp.AppendCommand(nil, "TIME"), reply: func(v []resp.Value, err error) {
		if millis, e := decodeTime(v); err == nil && e == nil {
			_, _ = q.timely(n, protocol.Reading{Sent: sent, Heard: q.now(), Millis: millis}) // which sees to it
		}
	}}
}

// JumpedError says that a node's clock has jumped: see EventClockJumped.
type JumpedError struct{ By time.Duration }

func (e *JumpedError) Error() string {
	return fmt.Sprintf("its clock has jumped by %+v", e.By.Round(time.Millisecond))
}

var errParted = errors.New("its clock and this process's have parted, and what it says does not count for a moment")

// LateError is a node that votes for a claim, and whose vote does not count yet.
type LateError struct{ Late time.Duration }

func (e *LateError) Error() string {
	return fmt.Sprintf("its clock and this process's have parted, so its vote counts %v after it was given", e.Late.Round(time.Millisecond))
}

// timely takes a reading of a node's clock. It fails if the reply that came with it does
// not count, because the clocks have parted. It returns how much later a vote counts.
func (q *Quorum) timely(n *node, r protocol.Reading) (late time.Duration, err error) {
	if !q.clocks.open.Load() {
		c := &q.nodeClocks[n.index]
		c.mu.Lock()
		ok := c.bounds.Take(r)
		c.mu.Unlock()
		if ok {
			return 0, nil
		}
	}
	counts := false
	q.judge(func(j *protocol.Clocks) { counts, late = j.Read(n.index, r) })
	if !counts {
		return 0, errParted
	}
	return late, nil
}

// judge passes an event to the judge, and does what it says then, with no lock held.
func (q *Quorum) judge(event func(j *protocol.Clocks)) {
	c := q.clocks
	c.mu.Lock()
	for i := range q.nodeClocks {
		q.nodeClocks[i].mu.Lock()
	}
	event(c.judge)
	c.open.Store(c.judge.Open())
	todo := c.judge.Out
	c.judge.Out = nil
	for i := range q.nodeClocks {
		q.nodeClocks[i].mu.Unlock()
	}
	tick := c.judge.Open() && !c.ticking
	c.ticking = c.ticking || tick
	c.mu.Unlock()
	if len(todo) > 0 {
		select {
		case <-q.built:
		case <-q.closing:
			return
		}
	}
	for _, e := range todo {
		q.settle(e)
	}
	if !tick {
		return
	}
	q.records.mu.Lock()
	defer q.records.mu.Unlock()
	if !q.isClosed() {
		q.records.tasks.Go(q.tickClocks)
	}
}

// tickClocks passes the time to the judge until no case is open. At most one runs.
func (q *Quorum) tickClocks() {
	c := q.clocks
	for {
		c.mu.Lock()
		at := c.judge.Wake()
		if at == protocol.Never {
			c.ticking = false
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		select {
		case <-time.After(max(at.Sub(q.now()), 0)):
		case <-q.closing:
			return
		}
		q.judge(func(j *protocol.Clocks) { j.Tick(q.now()) })
	}
}

// settle does what the judge says.
func (q *Quorum) settle(e protocol.ClockEvent) {
	n := q.nodes[e.Node]
	switch e.Kind {
	case protocol.ClockAsk:
		for i, n := range q.nodes {
			if e.Nodes&(1<<i) != 0 && n.err() == nil {
				n.send(q.askTime(n))
			}
		}
	case protocol.ClockEarly:
		for _, a := range q.all() {
			a.event(func(c *protocol.Claim, now protocol.Time) { c.Early(now, e.Nodes, e.By) })
		}
		q.records.early(e.By)
	case protocol.ClockCleared:
		q.recheck(n)
	case protocol.ClockGuard:
		q.askGuard(n)
	case protocol.ClockMark:
		q.life(n, func(s *protocol.Incarnations, _ protocol.Time) { s.Distrust(n.index) }) // should that fail, the next answer asks for it
	case protocol.ClockJumped:
		c := &q.nodeClocks[e.Node]
		c.mu.Lock()
		c.jumped, c.when = e.By, time.Now()
		c.mu.Unlock()
		q.set.Logger.Warn("quorate: a node's clock has jumped; it does not vote for a guard time", "node", n.addr, "by", e.By)
		q.observe(Event{Kind: EventClockJumped, Node: n.addr, Took: e.By, Err: &JumpedError{By: e.By}})
	case protocol.ClockDoubted:
		q.set.Logger.Warn("quorate: this process's clock and a node's have parted, and too few other nodes can be asked whose it was; "+
			"for half a guard time its votes count later by that", "node", n.addr, "by", e.By)
		if e.By < 0 {
			q.recount(n)
		}
	case protocol.ClockStood:
		q.set.Logger.Warn("quorate: this process's clock has stood still, as that of a machine that was asleep; holds end earlier by that", "for", e.By)
	}
}

// askGuard reads the longest guard time that clients have shown to a node.
func (q *Quorum) askGuard(n *node) {
	n.send(&question{command: resp.AppendCommand(nil, "GET", script.MarkerKey(q.set.Prefix)), reply: func(v []resp.Value, err error) {
		if m, ok := parseMarker(text(v, 0)); err == nil && ok {
			q.judge(func(j *protocol.Clocks) { j.Guard(q.now(), n.index, m.guard) })
		}
	}})
}

// recount has a node whose clock was set back count its guard time again if it
// began by a time that has not come yet. A node that began earlier is unchanged.
func (q *Quorum) recount(n *node) {
	n.send(&question{command: q.mark(*n.info(), script.Kept), reply: func(v []resp.Value, err error) {
		if inc, _, e := script.DecodeMarker(v); err == nil && e == nil {
			q.life(n, func(s *protocol.Incarnations, now protocol.Time) { s.Counted(now, n.index, inc) })
		}
	}})
}

func decodeTime(v []resp.Value) (millis int64, err error) {
	if len(v) != 2 {
		return 0, script.ErrAnswer
	}
	s, err1 := strconv.ParseInt(string(v[0].Str), 10, 40)
	us, err2 := strconv.ParseInt(string(v[1].Str), 10, 40)
	if err1 != nil || err2 != nil {
		return 0, script.ErrAnswer
	}
	return s*1000 + us/1000, nil
}
