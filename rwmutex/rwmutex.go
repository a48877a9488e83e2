// Package rwmutex is sync.RWMutex across processes. Any number of readers or
// one writer holds a name, first come, first served.
//
//	m := rwmutex.New(q, "catalogue")
//	m.RLock()
//	defer m.RUnlock()
//
// A hold is a lease on a majority of the nodes of a [quorate.Quorum], which the
// library renews. If the process dies or can no longer reach a majority, the
// hold ends without an unlock.
//
// # Errors
//
// Methods that take a context return a [*quorate.Error]. Check for its kind
// with [errors.Is]:
//
//   - [quorate.ErrHeld]: another client has the lock or is ahead in the queue;
//   - [quorate.ErrNoQuorum]: too few nodes answered. A waiting call returns it
//     early if so many nodes refuse permanently that waiting is pointless;
//   - [quorate.ErrLost]: the hold ended before it was released;
//   - [quorate.ErrNotHeld]: the lock is not held;
//   - [quorate.ErrClosed]: the Quorum has been closed;
//   - [quorate.ErrInvalid]: the name is empty, longer than 1024 bytes or
//     contains braces, or another kind of primitive uses it.
//
// If the context ends first, the error matches the context's error and also
// ErrHeld or ErrNoQuorum, depending on what the call was waiting for. The claim
// is then withdrawn from all nodes.
//
// All types in this package are safe for concurrent use.
package rwmutex

import (
	"context"
	"sync"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/localqueue"
	"github.com/quorate/quorate/internal/protocol"
)

// An RWMutex can be held by any number of readers or by a single writer, across
// all processes. It must be created with [New] and must not be copied.
//
// Each value is one participant. Its readers share one claim on the nodes, so
// only the first and the last of them talk to the nodes. Its writers hand the
// lock to each other like goroutines that share a [mutex.Mutex].
//
// A waiting writer blocks new readers in every process, and gets the lock after
// the readers ahead of it. When the writer unlocks, all readers that were
// waiting behind it get the lock together. A reader that has lost its hold
// blocks other users of the same value until it calls RUnlock.
//
// As with [sync.RWMutex], a goroutine must not read-lock twice, and a reader
// cannot become a writer: if two readers tried, they would wait for each other.
// Call RUnlock, then Lock, and read the data again.
//
// With [quorate.WithoutRenewal], all readers of a value share what is left of
// the first reader's lease.
//
// [mutex.Mutex]: https://pkg.go.dev/github.com/quorate/quorate/mutex#Mutex
type RWMutex struct {
	_ core.NoCopy
	q *localqueue.Queue
}

// New returns an RWMutex with the given name. A name can be used for only one
// kind of primitive: while a [mutex.Mutex] with that name is in use, calls that
// would lock fail with [quorate.ErrInvalid]. [RWMutex.RLock] and [RWMutex.Lock]
// log the error and try again.
//
// Options: [quorate.WithTTL], [quorate.WithNodeTimeout], [quorate.WithMaxHold],
// [quorate.WithoutRenewal], [quorate.WithWarning] and [quorate.WithLinger]. The
// defaults are the settings of q. With WithLinger, most read locks on
// read-mostly data take no round trip. New panics if an option is invalid or
// nil. If the name is invalid, every call that would lock returns an error.
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

// Lock locks m for writing. It waits for its turn, even through outages, and
// never returns without the lock. It panics if the name is invalid. If the
// Quorum is closed, Lock never returns; see [quorate.Quorum.Close].
func (m *RWMutex) Lock() { m.queue().MustLock("lock", localqueue.Write) }

// RLock locks m for reading, as [RWMutex.Lock] does for writing.
func (m *RWMutex) RLock() { m.queue().MustLock("read lock", localqueue.Read) }

// TryLock tries to lock m for writing and reports whether it succeeded. It does
// not wait for its turn, only for a majority of the nodes to answer, for at
// most one node timeout.
func (m *RWMutex) TryLock() bool { return m.TryLockContext(context.Background()) == nil }

// TryRLock tries to lock m for reading and reports whether it succeeded.
func (m *RWMutex) TryRLock() bool { return m.TryRLockContext(context.Background()) == nil }

// LockContext locks m for writing. It waits for its turn until ctx is done.
// Cancelling ctx after LockContext has returned does not affect the hold.
func (m *RWMutex) LockContext(ctx context.Context) error {
	return core.WrapError("lock", m.queue().Name(), m.q.Lock(ctx, localqueue.Write, false))
}

// RLockContext locks m for reading, as [RWMutex.LockContext] does for writing.
func (m *RWMutex) RLockContext(ctx context.Context) error {
	return core.WrapError("read lock", m.queue().Name(), m.q.Lock(ctx, localqueue.Read, false))
}

// TryLockContext is like [RWMutex.TryLock] but reports why it failed:
// [quorate.ErrHeld] if another client has the lock or is ahead in the queue,
// [quorate.ErrNoQuorum] if too few nodes answered.
func (m *RWMutex) TryLockContext(ctx context.Context) error {
	return core.WrapError("try lock", m.queue().Name(), m.q.Lock(ctx, localqueue.Write, true))
}

// TryRLockContext is like [RWMutex.TryRLock] but reports why it failed. Waiting
// writers are ahead of a new reader, and so is another goroutine that is just
// acquiring m from the nodes.
func (m *RWMutex) TryRLockContext(ctx context.Context) error {
	return core.WrapError("try read lock", m.queue().Name(), m.q.Lock(ctx, localqueue.Read, true))
}

// Unlock unlocks m for writing without waiting for the nodes. It panics if m is
// not locked for writing. If the lock has been lost, Unlock does nothing: the
// loss has already been reported by the lease's context, the observer and the
// log.
func (m *RWMutex) Unlock() { m.queue().MustUnlock("Unlock of unlocked RWMutex", localqueue.Write) }

// RUnlock undoes one [RWMutex.RLock], as [RWMutex.Unlock] undoes a Lock.
func (m *RWMutex) RUnlock() { m.queue().MustUnlock("RUnlock of unlocked RWMutex", localqueue.Read) }

// UnlockContext unlocks m for writing and waits until a majority of the nodes
// has confirmed the release. Nodes that were never asked for the lock count as
// confirmed.
//
// It returns [quorate.ErrNotHeld] if m is not locked for writing,
// [quorate.ErrLost] or [quorate.ErrClosed] if the hold had already ended, and
// [quorate.ErrNoQuorum] if too few nodes confirmed within the node timeout or
// before ctx was done. The lock is released even if UnlockContext fails.
func (m *RWMutex) UnlockContext(ctx context.Context) error {
	return core.WrapError("unlock", m.queue().Name(), m.q.UnlockContext(ctx, localqueue.Write))
}

// RUnlockContext undoes one [RWMutex.RLock], as [RWMutex.UnlockContext] undoes
// a Lock. Only the last reader of a value waits for the nodes.
func (m *RWMutex) RUnlockContext(ctx context.Context) error {
	return core.WrapError("read unlock", m.queue().Name(), m.q.UnlockContext(ctx, localqueue.Read))
}

// Do runs f while m is locked for writing, and unlocks m even if f panics. The
// context passed to f ends when ctx does or when the lock is lost. In the
// latter case, [context.Cause] returns [quorate.ErrLost] or
// [quorate.ErrClosed]. Do returns the error from locking, or else f's error,
// joined with ErrLost or ErrClosed if the hold ended before f returned. In
// profiles, f has the labels quorate_kind and quorate_name.
func (m *RWMutex) Do(ctx context.Context, f func(ctx context.Context) error) error {
	return m.queue().Do(ctx, "do", localqueue.Write, f)
}

// RDo runs f while m is locked for reading, as [RWMutex.Do] does for writing.
func (m *RWMutex) RDo(ctx context.Context, f func(ctx context.Context) error) error {
	return m.queue().Do(ctx, "read do", localqueue.Read, f)
}

// Downgrade turns the writer into a reader without letting another writer in
// between. Afterwards, call RUnlock, not Unlock. Downgrade does not wait for
// the nodes: readers in other processes get the lock as soon as the nodes hear
// of it.
//
// It returns [quorate.ErrNotHeld] if m is not locked for writing, ctx's error
// if ctx is done, and [quorate.ErrLost] or [quorate.ErrClosed] if the hold had
// already ended. In the last case you must still call Unlock.
//
// The token does not change, and goroutines that read-lock this value during
// the hold share it. A resource that rejects lower tokens than the highest it
// has seen accepts all of them.
func (m *RWMutex) Downgrade(ctx context.Context) error {
	if ctx.Err() != nil {
		return core.WrapError("downgrade", m.queue().Name(), ctx.Err())
	}
	return core.WrapError("downgrade", m.queue().Name(), m.q.Downgrade())
}

// Lease returns the writer's hold, or nil if m is not locked for writing.
func (m *RWMutex) Lease() quorate.Lease { return lease(m.queue().Lease(localqueue.Write)) }

// RLease returns the hold shared by the readers of this value, or nil if m is
// not locked for reading. Its token is higher than that of any earlier writer,
// so a resource can reject readers that are older than the last writer. Its
// context ends when the last reader unlocks.
func (m *RWMutex) RLease() quorate.Lease { return lease(m.queue().Lease(localqueue.Read)) }

// lease keeps a nil of one type from becoming a non-nil of another.
func lease(l *core.Lease) quorate.Lease {
	if l == nil {
		return nil
	}
	return l
}

// Extend renews the writer's lease now and waits for a majority of the nodes to
// confirm; see [quorate.WithoutRenewal]. If it returns [quorate.ErrNoQuorum],
// the old deadline still applies.
func (m *RWMutex) Extend(ctx context.Context) error {
	return core.WrapError("extend", m.queue().Name(), m.q.Extend(ctx, localqueue.Write))
}

// RExtend renews the readers' lease, as [RWMutex.Extend] renews the writer's.
func (m *RWMutex) RExtend(ctx context.Context) error {
	return core.WrapError("read extend", m.queue().Name(), m.q.Extend(ctx, localqueue.Read))
}

// Holder asks the nodes which process holds m: the writer, or the reader that
// has held m longest. It returns [quorate.ErrNotHeld] if no process does. The
// answer may be out of date by the time it arrives.
func (m *RWMutex) Holder(ctx context.Context) (quorate.Holder, error) {
	h, err := m.queue().Holder(ctx)
	return quorate.Holder(h), core.WrapError("holder", m.q.Name(), err)
}

// RLocker returns a [sync.Locker] whose Lock and Unlock are RLock and RUnlock.
func (m *RWMutex) RLocker() sync.Locker { return (*rlocker)(m) }

type rlocker RWMutex

func (r *rlocker) Lock()   { (*RWMutex)(r).RLock() }
func (r *rlocker) Unlock() { (*RWMutex)(r).RUnlock() }
