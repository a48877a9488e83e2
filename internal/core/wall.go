package core

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
)

// protocol.Client decides when the wall clock is compared with the nodes' clocks, and
// whether it is wrong. This file asks the nodes, and says what is wrong.

// WallError says that a majority of the nodes contradicts this process's wall clock.
type WallError struct {
	By      time.Duration // at least so far ahead of the nodes; negative: behind them
	Nodes   int           // that say so
	Of      int
	Allowed time.Duration
}

func (e *WallError) Error() string {
	where := "ahead of"
	if e.By < 0 {
		where = "behind"
	}
	return fmt.Sprintf("%v: this process's wall clock is %v %s the clocks of %d of %d nodes, and %v are allowed; set the wrong clock right (NTP)",
		ErrNoQuorum, e.By.Abs().Round(time.Millisecond), where, e.Nodes, e.Of, e.Allowed)
}

// Unwrap returns the kinds.
func (e *WallError) Unwrap() []error { return []error{ErrNoQuorum, ErrClock} }

// ClockError is a node that does not take a claim's ticket, or takes it where it does
// not count, since the ticket and the node's clock are too far apart.
type ClockError struct{ Ahead time.Duration }

func (e *ClockError) Error() string {
	where := "behind"
	if e.Ahead < 0 {
		where = "ahead of"
	}
	return fmt.Sprintf("its clock is %v %s this process's; set the wrong clock right (NTP)", e.Ahead.Abs().Round(time.Millisecond), where)
}

// AheadError is a name that is asked for so often that its tickets have run ahead of a
// node's clock, or a node that keeps a forged ticket.
type AheadError struct{ Wait time.Duration }

func (e *AheadError) Error() string {
	return fmt.Sprintf("its last ticket for the name is too far ahead of its clock; it gives the next one in %v", e.Wait)
}

// allowed is how far the wall clock may be from a node's.
func (q *Quorum) allowed() time.Duration {
	return protocol.WallAllowed(q.set.Skew, q.set.Guard, q.set.TTL)
}

// wallTime is what the wall clock shows.
func (q *Quorum) wallTime() time.Time {
	if q.set.Wall != nil {
		return q.set.Wall()
	}
	return time.Now().Round(0)
}

// mismatch says why a node's answer to a claim does not count because of clocks, or nil.
// Called with a.mu held.
func (q *Quorum) mismatch(c *protocol.Attempt, r *protocol.Request, a *protocol.Answer) error {
	far, old := q.client.FarTicket(c, r, a)
	if !far {
		return nil
	}
	if ahead := q.wallTime().Sub(time.UnixMilli(a.Clock)); old || ahead > q.allowed() {
		return &ClockError{Ahead: ahead}
	}
	return &AheadError{Wait: a.Wait}
}

// askWall asks nodes for their time. Nodes that do not answer, or too late, do no harm.
func (q *Quorum) askWall(nodes, try uint32) {
	for _, n := range q.nodes {
		if nodes&(1<<n.index) == 0 || n.err() != nil {
			continue
		}
		n.send(&adminRequest{command: resp.AppendCommand(nil, "TIME"), reply: func(v []resp.Value, err error) {
			if millis, e := decodeTime(v); err == nil && e == nil {
				q.carryOut(q.client.WallTime(q.now(), n.index, try, millis))
			}
		}})
	}
}

// refuseAll ends what waits for a claim: with this wall clock it has no place in the order.
func (q *Quorum) refuseAll() {
	for _, a := range q.attempts.all() {
		go a.refuse()
	}
}

// reportWall logs that the wall clock is wrong.
func (q *Quorum) reportWall() {
	if w := q.client.WallWrong(); w != nil {
		q.set.Logger.Error("quorate: the nodes' clocks contradict this process's wall clock; it makes no claims until that is set right (NTP)",
			"ahead", w.By, "nodes", w.Nodes, "of", len(q.nodes), "allowed", q.allowed())
	}
}

// refuse ends an attempt that has not been admitted.
func (a *attempt) refuse() {
	a.mu.Lock()
	now := a.q.now()
	a.claim.Refuse(now)
	a.flushUnlock(now)
}

// refused is the error of a claim that ends, or does not begin, because of the wall clock.
func (q *Quorum) refused() error {
	if w := q.client.WallWrong(); w != nil {
		return &WallError{By: w.By, Nodes: w.Nodes, Of: len(q.nodes), Allowed: q.allowed()}
	}
	return nil
}
