package main

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/rwmutex"
	"github.com/quorate/quorate/semaphore"
)

// grip is something to be held while a command runs.
type grip interface {
	take(ctx context.Context, try bool) error
	lease() quorate.Lease
	release(ctx context.Context) error
	holder(name string) string // describes the holder in the way
}

// locker is what a mutex and either side of an rwmutex have in common.
type locker struct {
	lock, try, unlock func(context.Context) error
	held              func() quorate.Lease
	describe          func(name string) string
}

func newMutexGrip(q *quorate.Quorum, name string) grip {
	m := mutex.New(q, name)
	return &locker{m.LockContext, m.TryLockContext, m.UnlockContext, m.Lease,
		func(name string) string { return mutexHolder(m, name) }}
}

func newReadGrip(q *quorate.Quorum, name string) grip {
	m := rwmutex.New(q, name)
	return &locker{m.RLockContext, m.TryRLockContext, m.RUnlockContext, m.RLease, func(name string) string {
		return fmt.Sprintf("the lock %q is held with --exclusive, or a process is waiting for it with --exclusive",
			name)
	}}
}

func newWriteGrip(q *quorate.Quorum, name string) grip {
	m := rwmutex.New(q, name)
	return &locker{m.LockContext, m.TryLockContext, m.UnlockContext, m.Lease, func(name string) string {
		return fmt.Sprintf("the lock %q is held, or others are ahead", name)
	}}
}

func (l *locker) take(ctx context.Context, try bool) error {
	if try {
		return l.try(ctx)
	}
	return l.lock(ctx)
}

func (l *locker) lease() quorate.Lease              { return l.held() }
func (l *locker) release(ctx context.Context) error { return l.unlock(ctx) }
func (l *locker) holder(name string) string         { return l.describe(name) }

// mutexHolder describes the holder of the lock, if it can be found out.
func mutexHolder(m *mutex.Mutex, name string) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	h, err := m.Holder(ctx)
	switch {
	case err != nil:
		return fmt.Sprintf("the lock %q is held, or others are ahead", name)
	case h.Foreign:
		return fmt.Sprintf("the lock %q is held by another library; its key expires in %v unless it is extended",
			name, h.Left.Round(time.Millisecond))
	}
	note := ""
	if h.Note != "" {
		note = fmt.Sprintf(", note %q", h.Note)
	}
	return fmt.Sprintf("the lock %q is held by process %d on %s%s (token %d, %d waiting)", name, h.PID,
		h.Host, note, h.Token, h.Waiters)
}

// semGrip is permits of a semaphore.
type semGrip struct {
	s               *semaphore.Weighted
	permits, weight int64
	l               *semaphore.Lease
}

func newSemGrip(q *quorate.Quorum, name string, permits, weight int64) grip {
	return &semGrip{s: semaphore.NewWeighted(q, name, permits), permits: permits, weight: weight}
}

func (g *semGrip) take(ctx context.Context, try bool) (err error) {
	if g.weight < 1 {
		return cli.NewExit(cli.ExitUsage, fmt.Errorf("--weight %d: a command needs at least 1 permit", g.weight))
	}
	if try {
		g.l, err = g.s.TryAcquireLease(ctx, g.weight)
	} else {
		g.l, err = g.s.AcquireLease(ctx, g.weight)
	}
	return err
}

func (g *semGrip) lease() quorate.Lease          { return g.l }
func (g *semGrip) release(context.Context) error { return g.l.Release() }

func (g *semGrip) holder(name string) string {
	return fmt.Sprintf("fewer than %d of the %d permits of %q are free, or others are ahead", g.weight,
		g.permits, name)
}
