// Package mutex is sync.Mutex across processes. One process at a time holds a
// name, and waiters are served first come, first served.
//
//	m := mutex.New(q, "invoices")
//	m.Lock()
//	defer m.Unlock()
//
// A hold is a lease on a majority of the nodes of a [quorate.Quorum], which the
// library renews. If the process dies or can no longer reach a majority, the
// hold ends without an Unlock. [Mutex.Lease] gives you a context that ends with
// the hold, and a fencing token that lets a database reject writes from a
// former holder.
//
// # Errors
//
// Methods that take a context return a [*quorate.Error]. Check for its kind
// with [errors.Is]:
//
//   - [quorate.ErrHeld]: another client has the lock or is ahead in the queue;
//   - [quorate.ErrNoQuorum]: too few nodes answered. A waiting call returns it
//     early if so many nodes refuse permanently, for example because of a wrong
//     password, that waiting is pointless;
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
package mutex

import (
	"context"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/localqueue"
)

// A Mutex is a lock that excludes every other Mutex with the same name, in any
// process. It must be created with [New] and must not be copied.
//
// Each value is one participant. Goroutines that share a value queue up within
// the process and hand the lock to each other without a round trip, but for no
// more than TTL/256 (31 ms by default) while another process is waiting. Two
// values with the same name exclude each other just as two processes would.
//
// In the terminology of the Go memory model, the n'th call of [Mutex.Unlock]
// "synchronizes before" the m'th call of [Mutex.Lock] on the same value for any
// n < m. Processes share no memory, so whether a later holder sees what an
// earlier holder wrote depends on the resource it was written to.
type Mutex struct {
	_ core.NoCopy
	q *localqueue.Queue
}

// New returns a Mutex with the given name. It also excludes redsync and other
// Redlock clients that lock the same name on the same nodes.
//
// Options: [quorate.WithTTL], [quorate.WithNodeTimeout], [quorate.WithMaxHold],
// [quorate.WithoutRenewal], [quorate.WithWarning] and [quorate.WithLinger]. The
// defaults are the settings of q. New panics if an option is invalid or nil. If
// the name is invalid, every call that would lock returns an error.
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

// Lock locks m. It waits for its turn, even through outages, and never returns
// without the lock. If nodes refuse permanently, Lock logs the error and keeps
// trying. It panics if the name is invalid. If the Quorum is closed, Lock never
// returns; see [quorate.Quorum.Close].
func (m *Mutex) Lock() { m.queue().MustLock("lock", localqueue.Write) }

// TryLock tries to lock m and reports whether it succeeded. It does not wait
// for its turn, only for a majority of the nodes to answer, for at most one
// node timeout ([quorate.WithNodeTimeout]). If several processes try a free
// name at the same moment, one of them succeeds.
func (m *Mutex) TryLock() bool { return m.TryLockContext(context.Background()) == nil }

// LockContext locks m. It waits for its turn until ctx is done. Cancelling ctx
// after LockContext has returned does not affect the hold.
func (m *Mutex) LockContext(ctx context.Context) error {
	return core.WrapError("lock", m.queue().Name(), m.q.Lock(ctx, localqueue.Write, false))
}

// TryLockContext is like [Mutex.TryLock] but reports why it failed:
// [quorate.ErrHeld] if another client holds the lock or is ahead in the queue,
// [quorate.ErrNoQuorum] if too few nodes answered.
func (m *Mutex) TryLockContext(ctx context.Context) error {
	return core.WrapError("try lock", m.queue().Name(), m.q.Lock(ctx, localqueue.Write, true))
}

// Unlock unlocks m without waiting for the nodes. It panics if m is not locked,
// as [sync.Mutex.Unlock] does. If the lock has been lost, Unlock does nothing:
// the loss has already been reported by the lease's context, the observer and
// the log.
func (m *Mutex) Unlock() { m.queue().MustUnlock("unlock of unlocked mutex", localqueue.Write) }

// UnlockContext unlocks m and waits until a majority of the nodes has confirmed
// the release. Nodes that were never asked for the lock count as confirmed.
//
// It returns [quorate.ErrNotHeld] if m is not locked, [quorate.ErrLost] or
// [quorate.ErrClosed] if the hold had already ended, and [quorate.ErrNoQuorum]
// if too few nodes confirmed within the node timeout or before ctx was done.
// The lock is released even if UnlockContext fails: a node that has not
// confirmed releases it when the node comes back, or when the lease expires.
func (m *Mutex) UnlockContext(ctx context.Context) error {
	return core.WrapError("unlock", m.queue().Name(), m.q.UnlockContext(ctx, localqueue.Write))
}

// Do runs f while m is locked, and unlocks m even if f panics. The context
// passed to f ends when ctx does or when the lock is lost. In the latter case,
// [context.Cause] returns [quorate.ErrLost] or [quorate.ErrClosed]. Do returns
// the error from locking, or else f's error, joined with ErrLost or ErrClosed
// if the hold ended before f returned. In profiles, f has the labels
// quorate_kind and quorate_name.
func (m *Mutex) Do(ctx context.Context, f func(ctx context.Context) error) error {
	return m.queue().Do(ctx, "do", localqueue.Write, f)
}

// Lease returns the current hold, or nil if m is not locked. Call it again
// after each Lock, because every hold has a new lease.
func (m *Mutex) Lease() quorate.Lease {
	if l := m.queue().Lease(localqueue.Write); l != nil {
		return l
	}
	return nil
}

// Extend renews the lease now and waits for a majority of the nodes to confirm.
// Leases are renewed automatically, so you need Extend only with
// [quorate.WithoutRenewal], or before a step that must not be interrupted. If
// Extend returns [quorate.ErrNoQuorum], the old deadline still applies.
func (m *Mutex) Extend(ctx context.Context) error {
	return core.WrapError("extend", m.queue().Name(), m.q.Extend(ctx, localqueue.Write))
}

// Holder asks the nodes which process holds m. It returns [quorate.ErrNotHeld]
// if no process does. The answer may be out of date by the time it arrives.
func (m *Mutex) Holder(ctx context.Context) (quorate.Holder, error) {
	h, err := m.queue().Holder(ctx)
	return quorate.Holder(h), core.WrapError("holder", m.q.Name(), err)
}
