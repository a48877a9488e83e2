package localqueue

import (
	"context"
	"time"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/process"
)

// This file owns the end of a hold: Unlock, Downgrade, lingering, and losses.
// Invariant: the lease has ended, with its contexts, before the next caller
// gets the value and before a leave is sent.

// Unlock ends one goroutine's hold. It waits for no node. It returns the claim
// if that was released on the nodes, and fails with ErrNotHeld, ErrLost or
// ErrClosed. The next caller runs as soon as it gets its turn.
func (q *Queue) Unlock(mode Mode) (core.Hold, error) {
	q.mu.Lock()
	hold, _ := q.state.Claim()
	x := q.state.Unlock(mode)
	switch x.Do {
	case process.UnlockNotHeld:
		q.mu.Unlock()
		return none, &fault.Failure{Err: fault.ErrNotHeld}
	case process.UnlockShared:
		lost := q.lease.Lost()
		q.mu.Unlock()
		// The deadline has passed, but the goroutine of the timer has not run
		// yet. The caller must learn of the loss all the same: this is the last
		// call in which it can.
		if lost == nil && x.Lost {
			lost = hold.Cause()
		}
		return none, failure(lost)
	}
	cause := fault.ErrReleased
	if x.Lost {
		cause = hold.Cause() // as above
	}
	span, lost := q.lease.Finish(cause)
	defer span.Ended() // without q.mu, and last
	switch x.Do {
	case process.UnlockPassed:
		q.renewLease()
		q.mu.Unlock()
		x.To.turn <- turn{locked: true}
		return none, failure(lost)
	case process.UnlockLingers:
		if q.timer == nil {
			q.timer = time.AfterFunc(q.write.Set.Linger, q.lingered)
		}
		q.mu.Unlock()
		return none, failure(lost)
	}
	q.lease = nil
	q.mu.Unlock()
	x.Claim.Release() // on a claim that has ended it does nothing
	q.next(mode, false, nil)
	if lost != nil {
		return none, failure(lost)
	}
	return x.Claim, nil
}

// failure returns the error of a hold that was lost, nil if it was not.
func failure(lost error) error {
	if lost == nil {
		return nil
	}
	return &fault.Failure{Err: lost}
}

// Downgrade makes the writer a reader without a gap: the claim keeps its place,
// and only its weight falls, so no other writer comes between. It waits for no
// node. Readers are let in after the claim has become lighter, never before:
// until then other processes take this one for a writer.
func (q *Queue) Downgrade() error {
	q.mu.Lock()
	hold, ok := q.state.Downgrade()
	q.mu.Unlock()
	if !ok {
		return &fault.Failure{Err: fault.ErrNotHeld}
	}
	// Without q.mu, because the claim may turn out to be lost, and then Ended
	// is called.
	shrunk := hold.Shrink(q.read.Weight)
	q.mu.Lock()
	turns := q.state.Downgraded(shrunk)
	q.mu.Unlock()
	letIn(turns)
	if !shrunk {
		return &fault.Failure{Err: hold.Cause()}
	}
	return nil
}

// lingered runs when the time may be over for which a claim lingers. One timer
// serves any number of releases: it sleeps on when there has been another
// meanwhile.
func (q *Queue) lingered() {
	q.mu.Lock()
	q.timer = nil
	hold, again := q.state.Lingered()
	if again > 0 {
		q.timer = time.AfterFunc(again, q.lingered)
	}
	q.giveUp(hold)
}

// Waiting is called when a claim begins to wait behind this one, in a goroutine
// that also serves other claims. So it waits for no node.
func (q *Queue) Waiting() {
	q.mu.Lock()
	q.want()
	q.giveUp(q.state.Waiting())
}

// Calm is called when no claim waits behind this one any more.
func (q *Queue) Calm() {
	q.mu.Lock()
	in := q.state.Calm()
	q.mu.Unlock()
	letIn(in)
}

// giveUp unlocks q.mu and releases a claim that only lingered.
func (q *Queue) giveUp(hold core.Hold) {
	if hold != none {
		q.dropLingering()
	}
	q.mu.Unlock()
	if hold != none {
		hold.Release()
	}
}

// dropLingering forgets the lease of a claim that lingered, and its timer.
// Called with q.mu held.
func (q *Queue) dropLingering() {
	if q.lease = nil; q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
}

// Ended is called when a claim has ended by itself. It may be an earlier one.
// It returns after the contexts of the lease have ended: only then the leaves
// are sent. It waits for nothing but q.mu.
func (q *Queue) Ended() {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch q.state.Ended() {
	case process.EndedLinger:
		q.dropLingering()
	case process.EndedHold:
		q.lease.End(q.lease.Hold().Cause())
	}
}

// Extend waits for the nodes without mu, so other goroutines may unlock
// meanwhile. It renews the claim now and waits until a majority has done so.
func (q *Queue) Extend(ctx context.Context, mode Mode) error {
	q.mu.Lock()
	hold := q.state.Held(mode)
	q.mu.Unlock()
	if hold == none {
		return &fault.Failure{Err: fault.ErrNotHeld}
	}
	return hold.Renew(ctx)
}

// Lease marks the lease as exposed, so it is never used again for a later turn:
// see renewLease. It returns the hold of the goroutine, or the readers, that
// have it locked in this mode; nil if none has.
func (q *Queue) Lease(mode Mode) *core.Lease {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.state.Held(mode) == none {
		return nil
	}
	return q.expose()
}

// Warn calls f with the lease of the goroutines that hold the value under a
// claim.
func (q *Queue) Warn(h core.Hold, f func(lease any)) {
	var l *core.Lease
	q.mu.Lock()
	if q.state.Held(Write) == h || q.state.Held(Read) == h {
		l = q.expose()
	}
	q.mu.Unlock()
	if l != nil {
		f(l)
	}
}

func (q *Queue) expose() *core.Lease {
	if q.leaseExposed = true; q.state.Waiters() {
		q.lease.Want()
	}
	return q.lease
}

func (q *Queue) Holder(ctx context.Context) (core.Holder, error) {
	if q.err != nil {
		return core.Holder{}, q.err
	}
	return q.quorum.Onlooker().Holder(ctx, q.write)
}
