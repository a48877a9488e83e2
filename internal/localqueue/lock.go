package localqueue

import (
	"context"
	"errors"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/process"
)

// Lock gets the lock in the given mode, from another goroutine of the process
// if possible, otherwise from the nodes. With try it does not wait for a turn.
func (q *Queue) Lock(ctx context.Context, mode Mode, try bool) error {
	if q.err != nil {
		return q.err
	}
	if ctx.Err() != nil {
		return &fault.Failure{Err: fault.ContextError(ctx)}
	}
	ctx, span := q.quorum.Trace(ctx, q.spec(mode), try)
	got, err := q.lock(ctx, mode, try)
	if span != nil {
		q.mu.Lock()
		l := q.lease
		q.mu.Unlock()
		span.ReportAcquire(got, l, err, func() { _, _ = q.Unlock(mode) })
	}
	return err
}

// lock does what Lock does. It returns the claim if this goroutine got it from
// the nodes, otherwise none.
func (q *Queue) lock(ctx context.Context, mode Mode, try bool) (got core.Hold, err error) {
	var w *waiter
	q.mu.Lock()
	do, before := q.state.Lock(mode, try)
	switch do {
	case process.LockEntered:
		q.renewLease()
	case process.LockWait:
		w = &waiter{mode: mode, turn: make(chan turn, 1)}
		w.place = q.state.Wait(w, mode)
		q.want()
	}
	q.mu.Unlock()
	switch do {
	case process.LockGet:
		return q.acquire(ctx, mode, try, nil, before)
	case process.LockRefused:
		return none, &fault.Failure{Err: fault.ErrHeld}
	case process.LockWait:
		return q.await(ctx, w)
	}
	return none, nil
}

// await waits for the turn in the local queue. It ends early if the context of
// the caller ends or the Quorum is closed. It returns what lock returns.
func (q *Queue) await(ctx context.Context, w *waiter) (core.Hold, error) {
	select {
	case t := <-w.turn:
		if t.locked {
			return none, nil
		}
		return q.acquire(ctx, w.mode, false, t.pending, none)
	case <-ctx.Done():
	case <-q.quorum.Over:
	}
	q.mu.Lock()
	in, gone := q.state.GiveUp(w.place)
	held := q.state.Held(Write) != none || q.state.Held(Read) != none
	q.mu.Unlock()
	letIn(in)
	// The turn may have come at the same time as the end of the context. The
	// caller asked for the end, so the turn goes to the next caller.
	if !gone {
		if t := <-w.turn; t.locked {
			_, _ = q.Unlock(w.mode)
		} else {
			q.next(w.mode, false, t.pending)
		}
	}
	switch {
	case ctx.Err() == nil:
		return none, &fault.Failure{Err: fault.ErrClosed}
	case held:
		return none, fault.CutShort(fault.ErrHeld, ctx)
	}
	return none, q.quorum.CutShort(ctx)
}

// acquire gets the lock from the nodes, which is the task of this goroutine. If
// its context ends, the next local waiter takes over the place in the queue at
// the nodes. If before is not none, it is a claim that would be in the way, and
// is released first.
func (q *Queue) acquire(ctx context.Context, mode Mode, try bool, pending *core.Pending,
	before core.Hold) (hold core.Hold, err error) {
	var queued *core.Pending // an attempt that is still queued at the nodes
	// Deferred, because the caller's context may panic. Without this the next
	// local waiter would wait forever: no goroutine would have the task.
	defer func() {
		if hold == none {
			q.next(mode, try, queued)
		}
	}()
	if before != none {
		before.Release()
	}
	if pending == nil {
		if pending, err = q.quorum.Begin(ctx, q.spec(mode), try, q); err != nil {
			return none, err
		}
	}
	hold, err = pending.Wait(ctx)
	if err != nil {
		// Note: Here is an incorrect condition: ctx.Err() != nil. The context
		// may end after the nodes have refused the claim.
		if pending.Queued() {
			queued = pending
		}
		return none, err
	}
	q.mu.Lock()
	turns, end := q.state.Admitted(mode, hold)
	q.lease, q.leaseExposed = hold.Lease(0), false
	if end == process.EndedHold {
		q.lease.End(hold.Cause())
	}
	q.mu.Unlock()
	letIn(turns)
	return hold, nil
}

// MustLock locks and does not return before it has the lock. It waits through
// outages, and logs and retries if nodes refuse permanently. It panics if the
// name is unusable. It never returns if the Quorum is closed.
func (q *Queue) MustLock(op string, mode Mode) {
	core.Must(q.quorum, q.write, op, func() error {
		return core.WrapError(op, q.Name(), q.Lock(context.Background(), mode, false))
	})
}

// MustUnlock unlocks, and panics if the value is not locked, as sync.Mutex
// does. If the hold was lost it does nothing: the loss has already been
// reported.
func (q *Queue) MustUnlock(what string, mode Mode) {
	if _, err := q.Unlock(mode); errors.Is(err, fault.ErrNotHeld) {
		panic("quorate: " + what + " " + q.Name())
	}
}

// UnlockContext unlocks and waits until a majority has confirmed the release.
// Other goroutines of this process can lock at once: only the caller waits for
// the nodes.
func (q *Queue) UnlockContext(ctx context.Context, mode Mode) error {
	released, err := q.Unlock(mode)
	if err == nil && released != none {
		err = released.Released(ctx)
	}
	return err
}

// Do locks, runs f and unlocks. The context of f ends with ctx, or when the
// lock is lost. Do unlocks even if f panics, so nothing stays locked when the
// panic is recovered further up.
func (q *Queue) Do(ctx context.Context, op string, mode Mode, f func(ctx context.Context) error) (err error) {
	if err := q.Lock(ctx, mode, false); err != nil {
		return core.WrapError(op, q.Name(), err)
	}
	l := q.Lease(mode)
	if l == nil { // another goroutine has unlocked in the meantime, which is a bug
		return core.WrapError(op, q.Name(), &fault.Failure{Err: fault.ErrNotHeld})
	}
	inner, stop := l.Derive(ctx)
	defer func() {
		stop()
		if _, uerr := q.Unlock(mode); uerr != nil {
			err = errors.Join(err, core.WrapError(op, q.Name(), uerr))
		}
	}()
	return core.Labeled(inner, q.write.Kind, q.Name(), f)
}
