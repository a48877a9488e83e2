// Package rwmutex is sync.RWMutex across processes: any number of readers or
// one writer hold it on a majority of the nodes of a [quorate.Quorum], first
// come first served over all processes.
//
//	m := rwmutex.New(q, "catalogue")
//	m.RLock()
//	defer m.RUnlock()
package rwmutex

import (
	"context"
	"sync"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/localqueue"
	"github.com/quorate/quorate/internal/protocol"
)

// An RWMutex is held by any number of readers or by one writer, in all
// processes. It must be made by [New] and must not be copied. The zero value
// has no quorum, and its methods panic. It is safe for concurrent use.
//
// One value is one participant. Its readers share one claim on the nodes: only
// the first and the last of them talk to the nodes, and each process's claim
// has a lease of its own. Writers of one value pass the lock on without a round
// trip, as those of a [mutex.Mutex] do.
//
// A waiting writer stops new readers, in every process, and gets in after the
// readers before it. One that waits behind readers of its own value stops those
// of that value, and asks the nodes when they have left. The readers that
// waited behind a writer get in together when it leaves. If it gives up
// instead, other processes learn that with their next renewal. A reader that
// has lost its hold keeps other callers of its value out until it calls
// RUnlock. As with [sync.RWMutex], recursive read locking is ruled out. So is
// upgrading: two readers that both upgrade would wait for each other. Call
// RUnlock, then Lock, and look again at what was read.
//
// With [quorate.WithoutRenewal] readers of one value share what is left of the
// first one's lease.
//
// [mutex.Mutex]: https://pkg.go.dev/github.com/quorate/quorate/mutex#Mutex
type RWMutex struct {
	_ core.NoCopy
	q *localqueue.Queue
}

// New returns an RWMutex of the given name. A name serves one kind of
// primitive: while a [mutex.Mutex] of that name is in use, every call that
// would lock an RWMutex fails with [quorate.ErrInvalid] and names both kinds.
// [RWMutex.RLock] and [RWMutex.Lock] log that and try again.
//
// A wrong or nil option is a programmer's error: New panics and names the
// remedy. An unusable name (empty, longer than 1024 bytes, or with braces) is
// reported by every call that would lock, with [quorate.ErrInvalid].
//
// [quorate.WithLinger] keeps a claim for a while after the last Unlock or
// RUnlock, until a claim is queued that cannot share it. A read lock on what is
// mostly read then costs no round trip.
//
// [mutex.Mutex]: https://pkg.go.dev/github.com/quorate/quorate/mutex#Mutex
func New(q *quorate.Quorum, name string, opts ...quorate.LockOption) *RWMutex {
	c := core.CoreOf(q).For(name)
	set := core.Override(c, "rwmutex.New", opts)
	return &RWMutex{q: localqueue.New(c, set,
		core.Spec{Name: name, Kind: "rwmutex", Weight: protocol.Writer, Capacity: protocol.Writer},
		core.Spec{Name: name, Kind: "rwmutex", Weight: 1, Capacity: protocol.Writer})}
}

func (m *RWMutex) queue() *localqueue.Queue {
	if m == nil || m.q == nil {
		panic("quorate: the zero rwmutex.RWMutex has no quorum; use rwmutex.New")
	}
	return m.q
}

// Lock locks m for writing. It waits for its turn, through outages too, and
// never returns unlocked. It panics if the name is unusable. When the
// [quorate.Quorum] is closed, Lock does not return, see [quorate.Quorum.Close].
func (m *RWMutex) Lock() { m.queue().MustLock("lock", localqueue.Write) }

// RLock locks m for reading, as [RWMutex.Lock] does for writing.
func (m *RWMutex) RLock() { m.queue().MustLock("read lock", localqueue.Read) }

// TryLock tries to lock m for writing and reports whether it succeeded. It does
// not wait for a turn, only for the answers of a majority, and never longer
// than the node timeout.
func (m *RWMutex) TryLock() bool { return m.TryLockContext(context.Background()) == nil }

// TryRLock tries to lock m for reading and reports whether it succeeded, as
// [RWMutex.TryLock] does for writing.
func (m *RWMutex) TryRLock() bool { return m.TryRLockContext(context.Background()) == nil }

// LockContext locks m for writing. It fails with a [*quorate.Error]:
//
//   - when the context ends, one that matches the context's error and says what was missing: [quorate.ErrHeld], the turn, or [quorate.ErrNoQuorum], nodes;
//   - ErrNoQuorum at once when so many nodes refuse for good that waiting cannot help;
//   - [quorate.ErrClosed] or [quorate.ErrInvalid].
//
// The claim is then withdrawn from every node. The end of the context ends the
// waiting, not the hold.
func (m *RWMutex) LockContext(ctx context.Context) error {
	return core.WrapError("lock", m.queue().Name(), m.q.Lock(ctx, localqueue.Write, false))
}

// RLockContext locks m for reading, as [RWMutex.LockContext] does for writing.
func (m *RWMutex) RLockContext(ctx context.Context) error {
	return core.WrapError("read lock", m.queue().Name(), m.q.Lock(ctx, localqueue.Read, false))
}

// TryLockContext is [RWMutex.TryLock] with the reason. It fails with
// [quorate.ErrHeld] when another claim holds the name or is ahead, with
// [quorate.ErrNoQuorum] when too few nodes answered, and otherwise as
// [RWMutex.LockContext] does.
func (m *RWMutex) TryLockContext(ctx context.Context) error {
	return core.WrapError("try lock", m.queue().Name(), m.q.Lock(ctx, localqueue.Write, true))
}

// TryRLockContext is [RWMutex.TryRLock] with the reason, as
// [RWMutex.TryLockContext]. A waiting writer is ahead of a new reader, and so
// is another goroutine that gets m from the nodes at that moment.
func (m *RWMutex) TryRLockContext(ctx context.Context) error {
	return core.WrapError("try read lock", m.queue().Name(), m.q.Lock(ctx, localqueue.Read, true))
}

// Unlock unlocks m for writing. It does not wait for the nodes. It panics if m
// is not locked for writing. If the lock was lost meanwhile, Unlock does
// nothing: the lease's context, the observer and the log have said so.
func (m *RWMutex) Unlock() { m.queue().MustUnlock("Unlock of unlocked RWMutex", localqueue.Write) }

// RUnlock undoes one [RWMutex.RLock], as [RWMutex.Unlock] does a Lock.
func (m *RWMutex) RUnlock() { m.queue().MustUnlock("RUnlock of unlocked RWMutex", localqueue.Read) }

// UnlockContext unlocks m for writing and waits until a majority of the nodes
// is known to be free of the claim: each has confirmed the release, or was
// never asked for the lock.
//
// It fails with [quorate.ErrNotHeld] when m is not locked for writing, and with
// [quorate.ErrLost] or [quorate.ErrClosed] when the hold ended by itself. It
// fails with [quorate.ErrNoQuorum] when too few nodes confirmed within the node
// timeout or before the context ended. The lock is released all the same.
func (m *RWMutex) UnlockContext(ctx context.Context) error {
	return core.WrapError("unlock", m.queue().Name(), m.q.UnlockContext(ctx, localqueue.Write))
}

// RUnlockContext undoes one [RWMutex.RLock], as [RWMutex.UnlockContext] does a
// Lock. Only the last reader of a value has nodes to wait for.
func (m *RWMutex) RUnlockContext(ctx context.Context) error {
	return core.WrapError("read unlock", m.queue().Name(), m.q.UnlockContext(ctx, localqueue.Read))
}

// Do runs f while m is locked for writing. The context of f ends with ctx, and
// when the lock is lost; [context.Cause] then is [quorate.ErrLost] or
// [quorate.ErrClosed]. Do unlocks m also when f panics. It returns how locking
// failed (see [RWMutex.LockContext]), or f's error, joined with ErrLost or
// ErrClosed if the hold ended before f returned. Profiles show f with the
// labels quorate_kind and quorate_name.
func (m *RWMutex) Do(ctx context.Context, f func(ctx context.Context) error) error {
	return m.queue().Do(ctx, "do", localqueue.Write, f)
}

// RDo runs f while m is locked for reading, as [RWMutex.Do] does for writing.
func (m *RWMutex) RDo(ctx context.Context, f func(ctx context.Context) error) error {
	return m.queue().Do(ctx, "read do", localqueue.Read, f)
}

// Downgrade makes the writer a reader, without a gap in which another writer
// could get in. Afterwards RUnlock, not Unlock, ends the hold. Downgrade does
// not wait for the nodes: readers elsewhere get in as the nodes hear of it.
//
// It fails with [quorate.ErrNotHeld] when m is not locked for writing, and with
// the context's error when that has ended. It fails with [quorate.ErrLost] or
// [quorate.ErrClosed] when the hold ended by itself: Unlock must still be
// called then.
//
// The token stays that of the writer, and readers of this value that come in
// beside it have the same. A resource that refuses tokens lower than the
// highest it has seen takes all of them.
func (m *RWMutex) Downgrade(ctx context.Context) error {
	if ctx.Err() != nil {
		return core.WrapError("downgrade", m.queue().Name(), ctx.Err())
	}
	return core.WrapError("downgrade", m.queue().Name(), m.q.Downgrade())
}

// Lease returns the writer's hold, or nil if m is not locked for writing.
func (m *RWMutex) Lease() quorate.Lease { return lease(m.queue().Lease(localqueue.Write)) }

// RLease returns the hold that the readers of this value share, or nil if m is
// not locked for reading. Its token is above that of every writer before it. So
// a resource can refuse a reader that is older than the last writer. Its
// context ends when the last reader has left.
func (m *RWMutex) RLease() quorate.Lease { return lease(m.queue().Lease(localqueue.Read)) }

// lease keeps a nil of one type from becoming a non-nil of another.
func lease(l *core.Lease) quorate.Lease {
	if l == nil {
		return nil
	}
	return l
}

// Extend renews the writer's lease now and waits until a majority of the nodes
// has done so, see [quorate.WithoutRenewal]. It fails with
// [quorate.ErrNotHeld], [quorate.ErrLost], [quorate.ErrClosed], or with
// [quorate.ErrNoQuorum] when the old deadline stands.
func (m *RWMutex) Extend(ctx context.Context) error {
	return core.WrapError("extend", m.queue().Name(), m.q.Extend(ctx, localqueue.Write))
}

// RExtend renews the readers' lease, as [RWMutex.Extend] does the writer's.
func (m *RWMutex) RExtend(ctx context.Context) error {
	return core.WrapError("read extend", m.queue().Name(), m.q.Extend(ctx, localqueue.Read))
}

// Holder asks the nodes which process holds m: the writer, or of the readers
// the one that has for the longest. It fails with [quorate.ErrNotHeld] when no
// process does, with [quorate.ErrNoQuorum] when too few nodes answer, and with
// [quorate.ErrClosed] or [quorate.ErrInvalid]. The answer may be out of date
// when it arrives.
func (m *RWMutex) Holder(ctx context.Context) (quorate.Holder, error) {
	h, err := m.queue().Holder(ctx)
	return quorate.Holder(h), core.WrapError("holder", m.q.Name(), err)
}

// RLocker returns a [sync.Locker] whose Lock and Unlock are RLock and RUnlock.
func (m *RWMutex) RLocker() sync.Locker { return (*rlocker)(m) }

type rlocker RWMutex

func (r *rlocker) Lock()   { (*RWMutex)(r).RLock() }
func (r *rlocker) Unlock() { (*RWMutex)(r).RUnlock() }
