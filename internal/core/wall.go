package core

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
)

// protocol.Client decides when the wall clock is compared with the nodes'
// clocks, and whether it is wrong. This file asks the nodes, and says what is
// wrong.

// WallError says that a majority of the nodes contradicts this process's wall
// clock.
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

// ClockError is a node that does not take a claim's ticket, or takes it where
// it does not count, since the ticket and the node's clock are too far apart.
type ClockError struct{ Ahead time.Duration }

func (e *ClockError) Error() string {
	where := "behind"
	if e.Ahead < 0 {
		where = "ahead of"
	}
	return fmt.Sprintf("its clock is %v %s this process's; set the wrong clock right (NTP)", e.Ahead.Abs().Round(time.Millisecond), where)
}

// AheadError is a name that is asked for so often that its tickets have run
// ahead of a node's clock, or a node that keeps a forged ticket.
type AheadError struct{ Wait time.Duration }

func (e *AheadError) Error() string {
	return fmt.Sprintf("its last ticket for the name is too far ahead of its clock; it gives the next one in %v", e.Wait)
}

// wall is the wall clock of this process. It does not change, so it needs no
// lock.
type wall struct {
	show    func() time.Time // nil: the machine's
	allowed time.Duration    // how far it may be from a node's
}

// time is what the wall clock shows.
func (w *wall) time() time.Time {
	if w.show != nil {
		return w.show()
	}
	return time.Now().Round(0)
}

// micros is the only use of the wall clock in the protocol: tickets are near
// it, so that they rise across restarts. No lease and no deadline depends on
// it. It is what the wall clock shows, in microseconds, as tickets count.
func (w *wall) micros() protocol.Ticket { return protocol.Ticket(w.time().UnixMicro()) }

// mismatch says why a node's answer to a claim does not count because of
// clocks, or nil. Called with a.mu held.
func (d *driver) mismatch(c *protocol.Attempt, r *protocol.Request, a *protocol.Answer) error {
	far, old := d.client.FarTicket(c, r, a)
	if !far {
		return nil
	}
	if ahead := d.q.wall.time().Sub(time.UnixMilli(a.Clock)); old || ahead > d.q.wall.allowed {
		return &ClockError{Ahead: ahead}
	}
	return &AheadError{Wait: a.Wait}
}

// askWall asks nodes for their time. Nodes that do not answer, or too late, do
// no harm. One that is down is asked when it comes up: Client.Up says so.
// Without that a client that starts with a wrong wall clock waits two seconds
// for its error (protocol: TestWallClockOfLateNodes).
//
// try comes back with the answer, so one to an earlier comparison counts for
// none.
func (d *driver) askWall(nodes, try uint32) {
	for _, n := range d.q.nodes.all() {
		if nodes&(1<<n.index) == 0 || n.err() != nil {
			continue
		}
		n.send(&adminRequest{command: resp.AppendCommand(nil, "TIME"), reply: func(v []resp.Value, err error) {
			if millis, e := decodeTime(v); err == nil && e == nil {
				d.carryOut(d.client.WallTime(d.q.now(), n.index, try, millis))
			}
		}})
	}
}

// refuseAll ends what waits for a claim: with this wall clock it has no place
// in the order.
func (d *driver) refuseAll() {
	for _, a := range d.q.attempts.all() {
		go a.refuse()
	}
}

// reportWall logs that the wall clock is wrong.
func (d *driver) reportWall() {
	if w := d.client.WallWrong(); w != nil {
		d.q.set.Logger.Error("quorate: the nodes' clocks contradict this process's wall clock; it makes no claims until that is set right (NTP)",
			"ahead", w.By, "nodes", w.Nodes, "of", d.q.Size(), "allowed", d.q.wall.allowed)
	}
}

// refuse ends an attempt that has not been admitted. A hold stays: its ticket
// was taken by a majority, and no lease depends on the wall clock
// (docs/protocol.md, Tickets, 5).
func (a *attempt) refuse() {
	a.mu.Lock()
	now := a.q.now()
	a.claim.Refuse(now)
	a.stepUnlock(now)
}

// refused is the error of a claim that ends, or does not begin, because of the
// wall clock. A claim that was refused has been left, as one has that Close
// ends. So Wait asks for this error before it takes the end of a claim for that
// of the Quorum.
func (d *driver) refused() error {
	if w := d.client.WallWrong(); w != nil {
		return &WallError{By: w.By, Nodes: w.Nodes, Of: d.q.Size(), Allowed: d.q.wall.allowed}
	}
	return nil
}
