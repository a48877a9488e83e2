// Package mutex is sync.Mutex across processes. One process at a time holds a
// name, and waiters are served first come, first served.
//
//	m := mutex.New(q, "invoices")
//	m.Lock()
//	defer m.Unlock()
//
// A hold is a lease on a majority of the nodes of a [quorate.Quorum]. The
// library renews it. It ends by itself when the process dies or cannot reach a
// majority any more. [Mutex.Lease] returns the context that ends with the hold,
// and the fencing token by which a database refuses a holder that comes too
// late.
//
// # Errors
//
// Methods with a context return a [*quorate.Error]. Test for its kind with
// [errors.Is]:
//
//   - [quorate.ErrHeld]: another client has the lock or is ahead in the queue;
//   - [quorate.ErrNoQuorum]: too few nodes answered. A waiting call returns it
//     at once if so many nodes refuse for good, for example because of a wrong
//     password, that waiting is pointless;
//   - [quorate.ErrLost]: the hold has ended by itself;
//   - [quorate.ErrNotHeld]: the call releases or extends a lock that is not
//     held;
//   - [quorate.ErrClosed]: the Quorum has been closed;
//   - [quorate.ErrInvalid]: the name is empty, longer than 1024 bytes or
//     contains braces, or another kind of primitive uses it.
//
// If the context ends first, the error matches the context's error and also
// ErrHeld or ErrNoQuorum, whichever the call was waiting for. No claim is then
// left on any node.
//
// All types of this package are safe for concurrent use.
package mutex

import (
	"context"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/localqueue"
)

// A Mutex is a lock that excludes all other Mutexes of its name, in every
// process. It must be created by [New] and must not be copied.
//
// One value is one participant. Goroutines that share a value queue in this
// process and hand the lock to each other without a round trip, but for at most
// a 256th of the TTL (31 ms by default) while another process waits. Two values
// of one name exclude each other as two processes do.
//
// In the terminology of the Go memory model, the n'th call of [Mutex.Unlock]
// "synchronizes before" the m'th call of [Mutex.Lock] on the same value for any
// n < m. Across processes there is no shared memory: whether a later holder
// sees what an earlier one has written depends on the resource that was written
// to.
type Mutex struct {
	_ core.NoCopy
	q *localqueue.Queue
}

// New returns a Mutex of the given name. It also excludes redsync and other
// Redlock clients that lock this name on the same nodes.
//
// Options: [quorate.WithTTL], [quorate.WithNodeTimeout], [quorate.WithMaxHold],
// [quorate.WithoutRenewal], [quorate.WithWarning] and [quorate.WithLinger].
// Their defaults are those of q. New panics if an option is wrong or nil. An
// invalid name is reported by every call that would lock.
func New(q *quorate.Quorum, name string, opts ...quorate.LockOption) *Mutex {
	c := core.CoreOf(q).For(name)
	set := core.Override(c, "mutex.New", opts)
	return &Mutex{q: localqueue.New(c, set, core.Spec{Name: name, Kind: "mutex", Weight: 1, Capacity: 1},
		core.Spec{})}
}

func (m *Mutex) queue() *localqueue.Queue {
	if m == nil || m.q == nil {
		panic("quorate: the zero mutex.Mutex has no quorum; use mutex.New")
	}
	return m.q
}

// Lock locks m. It waits for its turn, through outages too, and never returns
// without the lock. If a node refuses for good, Lock logs that and keeps
// trying. It panics if the name is invalid. It does not return if the Quorum is
// closed, see [quorate.Quorum.Close].
func (m *Mutex) Lock() { m.queue().MustLock("lock", localqueue.Write) }

// TryLock tries to lock m and reports whether it succeeded. It does not wait
// for a turn, only for the answers of a majority, for one node timeout at most
// ([quorate.WithNodeTimeout]). If several processes try a free name at the same
// moment, one of them succeeds.
func (m *Mutex) TryLock() bool { return m.TryLockContext(context.Background()) == nil }

// LockContext locks m. It waits for its turn until ctx ends. The end of ctx
// ends the waiting, not the hold. For errors see the package comment.
func (m *Mutex) LockContext(ctx context.Context) error {
	return core.WrapError("lock", m.queue().Name(), m.q.Lock(ctx, localqueue.Write, false))
}

// TryLockContext is [Mutex.TryLock] with the reason: [quorate.ErrHeld] if
// another client has the lock or is ahead, [quorate.ErrNoQuorum] if too few
// nodes answered.
func (m *Mutex) TryLockContext(ctx context.Context) error {
	return core.WrapError("try lock", m.queue().Name(), m.q.Lock(ctx, localqueue.Write, true))
}

// Unlock unlocks m. It does not wait for the nodes. It panics if m is not
// locked, as [sync.Mutex.Unlock] does. It does nothing if the lock was lost
// meanwhile: the lease's context, the observer and the log have reported the
// loss.
func (m *Mutex) Unlock() { m.queue().MustUnlock("unlock of unlocked mutex", localqueue.Write) }

// UnlockContext unlocks m and waits until a majority of the nodes has confirmed
// the release. Nodes that were never asked for the lock count as confirmed.
//
// It fails with [quorate.ErrNotHeld] if m is not locked, with [quorate.ErrLost]
// or [quorate.ErrClosed] if the hold has ended by itself, and with
// [quorate.ErrNoQuorum] if too few nodes confirmed within the node timeout or
// before ctx ended. The lock is released in any case. A node that has not
// confirmed releases it when it comes back, or when the lease expires.
func (m *Mutex) UnlockContext(ctx context.Context) error {
	return core.WrapError("unlock", m.queue().Name(), m.q.UnlockContext(ctx, localqueue.Write))
}

// Do runs f while m is locked, and unlocks m even if f panics. The context of f
// ends with ctx, and when the lock is lost; [context.Cause] then is
// [quorate.ErrLost] or [quorate.ErrClosed]. Do returns why locking failed, or
// f's error, joined with ErrLost or ErrClosed if the hold ended before f
// returned. Profiles show f with the labels quorate_kind and quorate_name.
func (m *Mutex) Do(ctx context.Context, f func(ctx context.Context) error) error {
	return m.queue().Do(ctx, "do", localqueue.Write, f)
}

// Lease returns the current hold, or nil if m is not locked. Call it after
// Lock: the next Lock has another lease.
func (m *Mutex) Lease() quorate.Lease {
	if l := m.queue().Lease(localqueue.Write); l != nil {
		return l
	}
	return nil
}

// Extend renews the lease now and waits until a majority of the nodes has done
// so. The library renews leases by itself: use Extend with
// [quorate.WithoutRenewal], or before a step that must not be interrupted. It
// fails with [quorate.ErrNotHeld], [quorate.ErrLost] or [quorate.ErrClosed], or
// with [quorate.ErrNoQuorum], in which case the old deadline stands.
func (m *Mutex) Extend(ctx context.Context) error {
	return core.WrapError("extend", m.queue().Name(), m.q.Extend(ctx, localqueue.Write))
}

// Holder asks the nodes which process holds m. It fails with
// [quorate.ErrNotHeld] if none does, and with [quorate.ErrNoQuorum] if too few
// nodes answer. The answer may be out of date when it arrives.
func (m *Mutex) Holder(ctx context.Context) (quorate.Holder, error) {
	h, err := m.queue().Holder(ctx)
	return quorate.Holder(h), core.WrapError("holder", m.q.Name(), err)
}
