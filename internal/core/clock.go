package core

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// Leases end by their node's wall clock, so one that jumps ahead ends them
// early, and a node that then votes for the next is like one that has lost its
// memory and does not sit out its guard time. That is what it is taken for:
// every answer tells the node's time; whoever sees it jump believes nothing that
// the node says from there on, and has it sit out its guard time.
//
// What this process cannot see is a jump before it has heard the node's time
// for the first time. Whoever holds or waits sees it at his next beat.

// clock is what a client knows of a node's clock: bounds of how far it is ahead
// of ours. Each answer was given between the moments when the request was sent
// and the answer heard, and that narrows the bounds; the time between two
// answers widens them again, as the two clocks run at different speeds.
type clock struct {
	mu       sync.Mutex
	known    bool
	since    protocol.Time // the clock has not jumped since
	at       protocol.Time // when the bounds were right
	low, top int64         // nanoseconds
	jumped   time.Duration // the last jump, and
	when     time.Time     // when it was seen

	judging atomic.Bool
}

// rate is how much faster or slower a node's clock may run than ours: twice the 1% that leases bear.
const rate = 50

// narrow takes the node's time, in milliseconds, of an answer to a request that
// was sent and heard when our clock showed that. It returns by how much the node's
// clock has jumped, 0 if that is possible without a jump. A jump leaves the
// bounds as they are.
func (c *clock) narrow(sent, heard protocol.Time, millis int64) time.Duration {
	own := int64(heard-sent) / rate // while the answer was under way
	low, top := millis*1e6-int64(heard)-own, (millis+1)*1e6-int64(sent)+own
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		c.known, c.since, c.at, c.low, c.top = true, heard, heard, low, top
		return 0
	}
	drift := int64(heard-min(sent, c.at)) / rate
	switch {
	case low > c.top+drift:
		return time.Duration(low - c.top)
	case top < c.low-drift:
		return time.Duration(top - c.low)
	}
	c.at, c.low, c.top = heard, max(low, c.low-drift), min(top, c.top+drift)
	return 0
}

// ahead is narrow for a push, of which nobody knows when it was sent: it can
// only show that the clock has jumped ahead.
func (c *clock) ahead(heard protocol.Time, millis int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known && millis*1e6-int64(heard) > c.top+int64(heard-c.at)/rate
}

// forget: the next answer sets the bounds anew.
func (c *clock) forget() {
	c.mu.Lock()
	c.known = false
	c.mu.Unlock()
}

// span returns since when the clock is known not to have jumped, and until when.
func (c *clock) span() (from, to protocol.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.since, c.at
}

// last returns the last jump that was seen, and when.
func (c *clock) last() (time.Duration, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.jumped, c.when
}

// look asks each node for its time that has not told it for a while, so that
// the bounds stay narrow though there is nothing to do.
func (q *Quorum) look() {
	every := max(q.set.TTL/2, time.Second)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-q.closing:
			return
		}
		for _, n := range q.nodes {
			if _, at := n.clock.span(); q.now().Sub(at) > every && n.link.Err() == nil {
				n.link.Send(q.askTime(n))
			}
		}
	}
}

// askTime is to be sent at once.
func (q *Quorum) askTime(n *node) *question {
	sent := q.now()
	return &question{command: resp.AppendCommand(nil, "TIME"), reply: func(v []resp.Value, err error) {
		if millis, e := decodeTime(v); err == nil && e == nil {
			_ = q.timely(n, sent, millis) // which sees to it
		}
	}}
}

// JumpedError says that a node's clock has jumped, so what it answers does not count.
type JumpedError struct{ By time.Duration }

func (e *JumpedError) Error() string {
	return fmt.Sprintf("its clock has jumped by %+v", e.By.Round(time.Millisecond))
}

// timely: an answer counts unless the node's clock has jumped.
func (q *Quorum) timely(n *node, sent protocol.Time, millis int64) error {
	by := n.clock.narrow(sent, q.now(), millis)
	if by == 0 {
		return nil
	}
	q.jumped(n)
	return &JumpedError{By: by}
}

// jumped looks into a jump, once at a time.
func (q *Quorum) jumped(n *node) {
	if !n.clock.judging.CompareAndSwap(false, true) {
		return
	}
	q.records.mu.Lock()
	defer q.records.mu.Unlock()
	if q.isClosed() {
		return
	}
	q.records.tasks.Go(func() {
		defer n.clock.judging.Store(false)
		q.judgment.Lock()
		defer q.judgment.Unlock()
		q.judge(n)
	})
}

// judge finds out whose clock has jumped. When others seem to have done so too,
// and none that was known before has not, it is ours that has stood still, as
// that of a machine that was asleep, and there is nothing to tell the nodes. One
// is judged after the other: what the first finds out may acquit the next.
func (q *Quorum) judge(n *node) {
	ctx, cancel := context.WithTimeout(context.Background(), q.set.NodeTimeout)
	defer cancel()
	sent := q.now()
	_, good := n.clock.span()
	var by time.Duration
	steady, jumpy := 0, 0
	q.ask(ctx, func(dst []byte, _ *node) []byte {
		return resp.AppendCommand(dst, "TIME")
	}, func(i int, v []resp.Value) error {
		millis, err := decodeTime(v)
		if err != nil {
			return err
		}
		other := &q.nodes[i].clock
		since, _ := other.span()
		switch d := other.narrow(sent, q.now(), millis); {
		case i == n.index:
			by = d
		case d != 0:
			jumpy++
		case since <= good:
			steady++
		}
		return nil
	})
	if by == 0 {
		return
	}
	if jumpy > 0 && steady == 0 {
		q.set.Logger.Warn("quorate: this process's clock has stood still", "for", by)
		for _, n := range q.nodes {
			n.clock.forget()
			q.recheck(n)
		}
		return
	}
	n.clock.mu.Lock()
	n.clock.jumped, n.clock.when = by, time.Now()
	n.clock.mu.Unlock()
	q.set.Logger.Warn("quorate: a node's clock has jumped; it does not vote for a guard time", "node", n.addr, "by", by)
	q.observe(Event{Kind: EventClockJumped, Node: n.addr, Took: by, Err: &JumpedError{By: by}})
	q.disown(n)
}

// disown tells a node that it is not to be trusted in its present incarnation.
// Whoever tells it so too, later, changes nothing. Should this fail, the next
// answer shows the jump again.
func (q *Quorum) disown(n *node) {
	known := &q.incs[n.index]
	inc := known.Load()
	if inc >= unknown || !known.CompareAndSwap(inc, telling) {
		return
	}
	n.link.Send(&question{command: q.mark(n.link.Info(), strconv.FormatUint(inc, 10)), reply: func(v []resp.Value, err error) {
		got, _, e := script.DecodeMarker(v)
		if err != nil || e != nil {
			known.CompareAndSwap(telling, inc)
			return
		}
		q.met(n, got)
		known.CompareAndSwap(telling, uint64(got))
		q.recheck(n)
		q.heal(n)
	}})
}

// met: another incarnation begins with the clock as it is. Either its memory is
// gone, or somebody else has seen the jump.
func (q *Quorum) met(n *node, inc protocol.Incarnation) {
	if n.met.Swap(uint64(inc)) != uint64(inc) {
		n.clock.forget()
	}
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
