package client

import (
	"context"

	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/rwmutex"
	"github.com/quorate/quorate/semaphore"
)

type mutexWork struct{ m *mutex.Mutex }

func openMutex(e *Env, name string) work { return mutexWork{mutex.New(e.Quorum, name)} }

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

// exclusive is the capacity of a reader/writer lock, and the weight of a
// writer.
const exclusive = 1 << 30

type rwmutexWork struct{ m *rwmutex.RWMutex }

func openRWMutex(e *Env, name string) work { return rwmutexWork{rwmutex.New(e.Quorum, name)} }

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

// reading is the rest of an operation once a reader holds the lock.
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

func openSemaphore(e *Env, name string) work {
	return semaphoreWork{semaphore.NewWeighted(e.Quorum, name, permits)}
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
