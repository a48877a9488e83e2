package core

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
)

// A client compares its wall clock with the nodes' clocks, and makes no claims while
// protocol.WallComparison says that it is wrong. This file asks the nodes.
//
// A wrong clock is found before it does harm: nodes refuse tickets that are too far ahead of
// their clocks, whatever this process believes. The comparison is there to name the cause. Without it
// every Lock fails with refusals that an operator cannot tell from a loaded node.

// wall is the comparison.
// It is safe for concurrent use. Only the goroutine of watchWall has wrong written.
type wall struct {
	wrong atomic.Pointer[WallError] // nil: no majority contradicts the wall clock
	poke  chan struct{}             // compare now
}

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
// There is something about this process's wall clock to find out then.
// Called with a.mu held. It waits for nothing: the comparison is only asked for.
func (q *Quorum) mismatch(c *protocol.Attempt, r protocol.Request, a protocol.Answer) error {
	old := a.Status == protocol.OK && r.Op == protocol.OpJoin && c.Phase() < protocol.Holding && q.client.Window().Old(a.Ticket, a.Clock)
	if a.Status != protocol.Ahead && !old {
		return nil
	}
	q.compareWall()
	if ahead := q.wallTime().Sub(time.UnixMilli(a.Clock)); old || ahead > q.allowed() {
		return &ClockError{Ahead: ahead}
	}
	return &AheadError{Wait: a.Wait}
}

// compareWall has the clocks compared soon.
func (q *Quorum) compareWall() {
	select {
	case q.wall.poke <- struct{}{}:
	default:
	}
}

// watchWall compares the clocks when a node has come up, when an answer gave a
// reason, and from time to time; every second while they differ.
// It is a goroutine of the Quorum, and ends with it.
func (q *Quorum) watchWall() {
	every := max(q.set.TTL, 2*time.Second)
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		select {
		case <-q.closing:
			return
		case <-q.wall.poke:
		case <-timer.C:
		}
		q.measureWall()
		pause := every
		if q.wall.wrong.Load() != nil {
			pause = time.Second
		}
		timer.Reset(pause - rand.N(pause/8))
		// Answers that give a reason come with every retry.
		select {
		case <-time.After(q.set.NodeTimeout / 4):
		case <-q.closing:
			return
		}
	}
}

// measureWall asks all nodes for their time. It decides as soon as enough of them have
// answered: one that hangs must not delay that. It waits for them as long as a link
// waits for a node, not for a node timeout: answers of nodes that are farther away count,
// however late. Otherwise a client of such nodes never learns that its clock is wrong, and
// one that has learnt it never learns that its clock is right again.
func (q *Quorum) measureWall() {
	ctx, cancel := context.WithTimeout(context.Background(), max(10*q.set.NodeTimeout, 2*time.Second))
	defer cancel()
	go func() {
		select {
		case <-q.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	sent, comparison := q.wallTime(), protocol.NewWallComparison(len(q.nodes), q.allowed(), rules())
	q.ask(ctx, func(dst []byte, _ *node) []byte {
		return resp.AppendCommand(dst, "TIME")
	}, func(_ int, v []resp.Value) error {
		millis, err := decodeTime(v)
		if err != nil {
			return err
		}
		// The node's time was taken between the two looks at the wall clock, however
		// long the answer took and whatever this machine did meanwhile.
		low := sent.Sub(time.UnixMilli(millis + 1))
		top := q.wallTime().Sub(time.UnixMilli(millis))
		switch comparison.Take(low, top) {
		case protocol.WallWrong:
			q.wallWrong(comparison.Wrong())
			cancel()
		case protocol.WallRight:
			q.wallRight()
			cancel()
		}
		return nil
	})
}

// wallWrong ends what waits for a claim: with this wall clock it has no place in the order.
func (q *Quorum) wallWrong(by time.Duration, nodes int) {
	e := &WallError{By: by, Nodes: nodes, Of: len(q.nodes), Allowed: q.allowed()}
	if q.wall.wrong.Swap(e) == nil {
		q.set.Logger.Error("quorate: the nodes' clocks contradict this process's wall clock; it makes no claims until that is set right (NTP)",
			"ahead", by, "nodes", nodes, "of", len(q.nodes), "allowed", e.Allowed)
	}
	for _, a := range q.all() {
		go a.refuse()
	}
}

func (q *Quorum) wallRight() {
	if q.wall.wrong.Swap(nil) != nil {
		q.set.Logger.Info("quorate: the nodes' clocks agree with this process's wall clock again")
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
	if e := q.wall.wrong.Load(); e != nil {
		return e
	}
	return nil
}
