package localqueue

import (
	"context"
	"time"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/process"
)

// Invariant: a lease and its contexts have ended before the next caller gets
// the value and before a leave is sent.

// Unlock ends the hold of one goroutine, without waiting for a node. It returns
// the claim if it has released it on the nodes, otherwise none. It fails with
// ErrNotHeld, ErrLost or ErrClosed. The next goroutine in line here gets the
// lock or, if the claim is released, the task of asking the nodes for a new one.
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
		// The deadline has passed, but the goroutine that handles deadlines has
		// not run yet. The caller must still learn of the loss, because this is
		// the last call that can report it.
		if lost == nil && x.Lost {
			lost = hold.Cause()
		}
		return none, failure(lost)
	}
	cause := fault.ErrReleased
	if x.Lost {
		cause = hold.Cause() // the deadline has passed, as above
	}
	span, lost := q.lease.Finish(cause)
	defer span.ReportHoldEnd() // it must run last, and without q.mu
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
	// UnlockLeave. A claim that looks lost is released, too: it may just have been
	// renewed.
	q.lease = nil
	q.mu.Unlock()
	x.Claim.Release() // does nothing if the claim has ended
	q.next(mode, false, nil)
	if lost != nil {
		return none, failure(lost)
	}
	return x.Claim, nil
}

// failure returns the error of a hold that was lost, nil if lost is nil.
func failure(lost error) error {
	if lost == nil {
		return nil
	}
	return &fault.Failure{Err: lost}
}

// Downgrade makes the writer a reader without a gap: the claim keeps its place
// and only its weight falls, so no other writer gets in between. It waits for
// no node. Readers are let in only after the claim has become lighter. Until
// then other processes treat this one as a writer.
func (q *Queue) Downgrade() error {
	q.mu.Lock()
	hold, ok := q.state.Downgrade()
	q.mu.Unlock()
	if !ok {
		return &fault.Failure{Err: fault.ErrNotHeld}
	}
	// Called without q.mu: if the claim turns out to be lost, Shrink calls
	// Ended, which locks q.mu.
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

// lingered runs when the time for which a claim lingers may be over. One timer
// serves any number of releases: if there was another release in the meantime,
// the timer is set again.
func (q *Queue) lingered() {
	q.mu.Lock()
	q.timer = nil
	hold, again := q.state.Lingered()
	if again > 0 {
		q.timer = time.AfterFunc(again, q.lingered)
	}
	q.giveUp(hold)
}

// Waiting is called when a claim begins to wait behind this one. It must not
// wait for a node, because its goroutine also serves other claims.
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

// giveUp unlocks q.mu. If hold is not none, it is a claim that only lingered,
// and giveUp releases it.
func (q *Queue) giveUp(hold core.Hold) {
	if hold != none {
		q.dropLingering()
	}
	q.mu.Unlock()
	if hold != none {
		hold.Release()
	}
}

// dropLingering drops the lease of a claim that lingered, and stops the timer.
// Called with q.mu held.
func (q *Queue) dropLingering() {
	if q.lease = nil; q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
}

// Ended is called when a claim was lost, evicted or closed. It may be an
// earlier claim. The leaves of the claim are sent only after Ended returns,
// because the contexts of the lease have ended by then. It waits for nothing
// but q.mu.
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

// Extend renews the claim now and waits until a majority has renewed it. It
// waits without q.mu, so other goroutines can unlock in the meantime.
func (q *Queue) Extend(ctx context.Context, mode Mode) error {
	q.mu.Lock()
	hold := q.state.Held(mode)
	q.mu.Unlock()
	if hold == none {
		return &fault.Failure{Err: fault.ErrNotHeld}
	}
	return hold.Renew(ctx)
}

// Lease returns the lease of the goroutine, or of the readers, that hold the
// value in this mode; nil if none does. The lease is marked as exposed, so it
// is not reused for a later turn (see renewLease).
func (q *Queue) Lease(mode Mode) *core.Lease {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.state.Held(mode) == none {
		return nil
	}
	return q.expose()
}

// Warn calls f with the lease of the goroutines that hold the value under the
// claim h, if any do.
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

// expose marks the lease as seen by a caller, and returns it. Called with q.mu
// held.
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
