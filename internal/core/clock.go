package core

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// Leases end by their node's wall clock. process.Client judges by the times
// that the nodes tell whether one of these clocks has jumped, or this process's
// has stood still. This file asks the nodes.

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
func (n *node) askTime() *adminRequest {
	q := n.q
	sent := q.now()
	return &adminRequest{command: resp.AppendCommand(nil, "TIME"), reply: func(v []resp.Value, err error) {
		if millis, e := decodeTime(v); err == nil && e == nil {
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

// JumpedError says that a node's clock has jumped: see EventClockJumped.
type JumpedError struct{ By time.Duration }

func (e *JumpedError) Error() string {
	return fmt.Sprintf("its clock has jumped by %+v", e.By.Round(time.Millisecond))
}

var errParted = errors.New("its clock and this process's disagree, and its answers do not count until it is known which one is wrong")

// ClockError is a node that does not take a claim's ticket, or takes it where
// it does not count, since the ticket and the node's clock are too far apart.
type ClockError struct{ Ahead time.Duration }

func (e *ClockError) Error() string {
	where := "behind"
	if e.Ahead < 0 {
		where = "ahead of"
	}
	return fmt.Sprintf("its clock is %v %s the other nodes'; set the wrong clock right (NTP)", e.Ahead.Abs().Round(time.Millisecond), where)
}

// AheadError is a name that is asked for so often that its tickets have run
// ahead of a node's clock, or a node that keeps a forged ticket.
type AheadError struct{ Wait time.Duration }

func (e *AheadError) Error() string {
	return fmt.Sprintf("its last ticket for the name is too far ahead of its clock; it gives the next one in %v", e.Wait)
}

// mismatch says why a node's answer to a claim does not count because of
// clocks, or nil. Called with a.mu held.
func (d *driver) mismatch(c *process.Attempt, r *protocol.Request, a *protocol.Answer) error {
	far, old := d.client.FarTicket(c, r, a)
	if !far {
		return nil
	}
	if ahead := d.nodesTime(d.q.now()).Sub(time.UnixMilli(a.Clock)); old || ahead > d.q.set.Skew {
		return &ClockError{Ahead: ahead}
	}
	return &AheadError{Wait: a.Wait}
}

// NodesTime is the median of the nodes' clocks, near 1970 before any is known.
func (q *Quorum) NodesTime() time.Time { return q.driver.nodesTime(q.now()) }

func (d *driver) nodesTime(at protocol.Time) time.Time {
	return time.UnixMicro(int64(d.client.Clock(at)))
}

// Microseconds are cut off, so the node's clock shows up to a millisecond more
// than this: what judges by it allows for that.
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
