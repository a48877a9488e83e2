package main

import (
	"context"
	"errors"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/rwmutex"
	"github.com/quorate/quorate/semaphore"
)

// One call in tries does not wait for its turn.
const tries = 8

type mutexWork struct{ m *mutex.Mutex }

func openMutex(e *clientEnv, name string) work { return mutexWork{mutex.New(e.quorum, name)} }

func (w mutexWork) do(ctx context.Context, t *turn) {
	lock := w.m.LockContext
	if !t.calm && t.rand.IntN(tries) == 0 {
		lock = w.m.TryLockContext
	}
	op, ok := t.ask(ctx, 1, lock)
	if !ok {
		return
	}
	lease := w.m.Lease()
	t.begin(op, lease)
	t.use(op, lease, true)
	t.end(op, lease, func() error { return unlock(w.m.UnlockContext) })
}

// unlock ends a hold without waiting for the nodes' word, for which a majority
// may be out of reach, but tells a release of what is not held.
func unlock(f func(context.Context) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := f(ctx)
	if errors.Is(err, quorate.ErrNotHeld) || errors.Is(err, quorate.ErrLost) {
		return err
	}
	return nil
}

// exclusive is a reader/writer lock's capacity: a writer weighs all of it.
const exclusive = 1 << 30

type rwmutexWork struct{ m *rwmutex.RWMutex }

func openRWMutex(e *clientEnv, name string) work { return rwmutexWork{rwmutex.New(e.quorum, name)} }

func (w rwmutexWork) do(ctx context.Context, t *turn) {
	if t.rand.IntN(3) > 0 {
		w.read(ctx, t)
	} else {
		w.write(ctx, t)
	}
}

func (w rwmutexWork) read(ctx context.Context, t *turn) {
	lock := w.m.RLockContext
	if !t.calm && t.rand.IntN(tries) == 0 {
		lock = w.m.TryRLockContext
	}
	if op, ok := t.ask(ctx, 1, lock); ok {
		w.reading(t, op)
	}
}

// reading is what comes when the lock is held by a reader.
func (w rwmutexWork) reading(t *turn, op string) {
	lease := w.m.RLease()
	t.begin(op, lease)
	t.use(op, lease, false)
	t.end(op, lease, func() error { return unlock(w.m.RUnlockContext) })
}

func (w rwmutexWork) write(ctx context.Context, t *turn) {
	lock := w.m.LockContext
	if !t.calm && t.rand.IntN(tries) == 0 {
		lock = w.m.TryLockContext
	}
	op, ok := t.ask(ctx, exclusive, lock)
	if !ok {
		return
	}
	lease := w.m.Lease()
	t.begin(op, lease)
	t.use(op, lease, true)
	if t.rand.IntN(6) > 0 {
		t.end(op, lease, func() error { return unlock(w.m.UnlockContext) })
		return
	}
	// The writer becomes a reader: one hold ends and another begins.
	t.ended(op, lease, false)
	t.after = op
	reader, ok := t.ask(ctx, 1, w.m.Downgrade)
	t.after = ""
	if ok {
		w.reading(t, reader)
		return
	}
	t.end(op, lease, func() error { return unlock(w.m.UnlockContext) })
}

// permits is a semaphore's capacity.
const permits = 3

type semaphoreWork struct{ s *semaphore.Weighted }

func openSemaphore(e *clientEnv, name string) work {
	return semaphoreWork{semaphore.NewWeighted(e.quorum, name, permits)}
}

func (w semaphoreWork) do(ctx context.Context, t *turn) {
	weight := 1 + t.rand.Int64N(permits)
	acquire := w.s.AcquireLease
	if !t.calm && t.rand.IntN(tries) == 0 {
		acquire = w.s.TryAcquireLease
	}
	var lease *semaphore.Lease
	op, ok := t.ask(ctx, weight, func(ctx context.Context) (err error) {
		lease, err = acquire(ctx, weight)
		return err
	})
	if !ok {
		return
	}
	t.begin(op, lease)
	t.stay(op, lease)
	t.end(op, lease, lease.Release)
}
