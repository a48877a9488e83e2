package localqueue

import (
	"context"
	"errors"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/process"
)

// This file owns the start of a hold, and what every primitive on a Queue does
// alike.

// Lock gets the lock in the given mode, from inside the process if that can
// be, else from the nodes. A try does not wait for a turn.
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
		span.End(got, l, err, func() { _, _ = q.Unlock(mode) })
	}
	return err
}

// lock returns the claim as well if it is this goroutine that got it from the
// nodes.
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

// await waits for the turn in the local queue. It ends with the caller's
// context, or when the Quorum closes: no wait outlasts both. It returns what
// lock does.
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
	// The caller has asked for the end of its context: it gives the turn back.
	if !gone { // the turn came at the same time: it goes to the next
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

// acquire gets the lock from the nodes; getting it is this goroutine's task.
// When its context ends, the place in the nodes' queue goes to the next local
// waiter. before is a claim that is in the way and is released first.
func (q *Queue) acquire(ctx context.Context, mode Mode, try bool, pending *core.Pending,
	before core.Hold) (hold core.Hold, err error) {
	var queued *core.Pending // still is at the nodes
	// Deferred, because the caller's context may panic. The next local waiter
	// would wait forever, for a task that no goroutine has.
	defer func() {
		if hold == none {
			q.next(mode, try, queued)
		}
	}()
	if before != none {
		before.Release()
	}
	if pending == nil {
		if pending, err = q.quorum.Begin(q.spec(mode), try, q); err != nil {
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

// MustLock locks and never returns unlocked: through outages it waits, and it
// panics if the name is unusable. Nodes that refuse for good are logged and
// asked again. When the Quorum is closed it does not return.
func (q *Queue) MustLock(op string, mode Mode) {
	core.Must(q.quorum, q.write, op, func() error {
		return core.WrapError(op, q.Name(), q.Lock(context.Background(), mode, false))
	})
}

// MustUnlock unlocks, and panics if it is not locked, as sync does. What was
// lost meanwhile is not there to be unlocked: that has been said.
func (q *Queue) MustUnlock(what string, mode Mode) {
	if _, err := q.Unlock(mode); errors.Is(err, fault.ErrNotHeld) {
		panic("quorate: " + what + " " + q.Name())
	}
}

// UnlockContext unlocks and waits until a majority has confirmed it.
// The goroutines of this process go on at once: only the caller waits for the
// nodes.
func (q *Queue) UnlockContext(ctx context.Context, mode Mode) error {
	released, err := q.Unlock(mode)
	if err == nil && released != none {
		err = released.Released(ctx)
	}
	return err
}

// Do runs f while it is locked. f's context ends with ctx, and when the lock is
// lost. Unlock runs also when f panics, so that a panic that is recovered
// further up leaves nothing locked.
func (q *Queue) Do(ctx context.Context, op string, mode Mode, f func(ctx context.Context) error) (err error) {
	if err := q.Lock(ctx, mode, false); err != nil {
		return core.WrapError(op, q.Name(), err)
	}
	l := q.Lease(mode)
	if l == nil { // another goroutine has unlocked meanwhile, which is a mistake
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
