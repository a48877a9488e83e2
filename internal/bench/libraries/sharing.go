package libraries

import (
	"context"
	"math/rand/v2"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/bench/servers"
	"github.com/quorate/quorate/rwmutex"
	"github.com/quorate/quorate/semaphore"
)

const (
	WriteEvery = 20 // one in this many locks is for writing
	AllPermits = 16 // permits of one semaphore
)

// readers are clients of one Quorum that share one RWMutex, like the goroutines
// of a process.
type readers struct {
	q     *quorate.Quorum
	opts  []quorate.LockOption
	async bool
	m     *rwmutex.RWMutex
}

func openReaders(async bool, opts ...quorate.LockOption) func(context.Context,
	servers.Nodes) (Client, error) {
	return func(ctx context.Context, n servers.Nodes) (Client, error) {
		q, err := Connect(ctx, n)
		if err != nil {
			return nil, err
		}
		return &readers{q: q, opts: opts, async: async}, nil
	}
}

func (c *readers) Close() { _ = c.q.Close() }

func (c *readers) Mutex(name string) Locker {
	if c.m == nil {
		c.m = rwmutex.New(c.q, name, c.opts...)
	}
	return &reader{m: c.m, async: c.async, uses: rand.IntN(WriteEvery)}
}

// reader locks for reading, and once in WriteEvery times for writing.
type reader struct {
	m     *rwmutex.RWMutex
	async bool
	uses  int
}

func (r *reader) writes() bool { return r.uses%WriteEvery == 0 }

// share returns the whole capacity for a writer, and almost nothing for a
// reader.
func (r *reader) share() (weight, room int64) {
	const all = 1 << 20
	if r.writes() {
		return all, all
	}
	return 1, all
}

func (r *reader) Lock(ctx context.Context) error {
	r.uses++
	if r.writes() {
		return r.m.LockContext(ctx)
	}
	return r.m.RLockContext(ctx)
}

func (r *reader) Unlock(ctx context.Context) error {
	switch {
	case r.async && r.writes():
		r.m.Unlock()
	case r.async:
		r.m.RUnlock()
	case r.writes():
		return Confirmed(r.m.UnlockContext(ctx))
	default:
		return Confirmed(r.m.RUnlockContext(ctx))
	}
	return nil
}

// users are clients of one Quorum that use permits.
type users struct{ q *quorate.Quorum }

func openPermits(ctx context.Context, n servers.Nodes) (Client, error) {
	q, err := Connect(ctx, n)
	if err != nil {
		return nil, err
	}
	return users{q}, nil
}

func (c users) Close() { _ = c.q.Close() }

func (c users) Mutex(name string) Locker {
	return PermitOf(semaphore.NewWeighted(c.q, name, AllPermits))
}

// PermitOf returns a Locker of one permit of a semaphore.
func PermitOf(s *semaphore.Weighted) Locker { return permit{s} }

type permit struct{ s *semaphore.Weighted }

func (p permit) Lock(ctx context.Context) error { return p.s.Acquire(ctx, 1) }
func (p permit) Unlock(context.Context) error   { p.s.Release(1); return nil }
func (p permit) share() (weight, room int64)    { return 1, AllPermits }
