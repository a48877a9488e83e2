// Package mutex is sync.Mutex across processes: a lock that is held on a
// majority of the nodes of a [quorate.Quorum], first come first served over all
// processes.
//
//	m := mutex.New(q, "invoices")
//	m.Lock()
//	defer m.Unlock()
//
// A hold is a lease: it ends when its process dies or cannot reach a majority
// of the nodes any more. [Mutex.Lease] has the context that ends with it, and
// the fencing token by which a resource refuses a holder that came too late.
package mutex

import (
	"context"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/localqueue"
)

// A Mutex excludes all others of its name, in every process. It must be made by
// [New] and must not be copied. The zero value has no quorum, and its methods
// panic. It is safe for concurrent use.
//
// One value is one participant. Goroutines that share it queue in this process,
// first come first served, and pass the lock on without a round trip. Two
// values of one name exclude each other as two processes do. While another
// participant waits, the goroutines of a value pass the lock on for at most a
// 256th of the TTL. So a goroutine of the holder's process may get the lock
// before a process that asked earlier, but not for longer.
//
// In the terminology of the Go memory model, the n'th call of [Mutex.Unlock]
// "synchronizes before" the m'th call of [Mutex.Lock] on the same value for any
// n < m. Across processes there is no shared memory: what a holder has written
// to a resource, a later holder sees as far as the resource itself promises.
type Mutex struct {
	_ core.NoCopy
	q *localqueue.Queue
}

// New returns a Mutex of the given name. All Mutexes of the name exclude each
// other, in every process. So do other Redlock clients on the same nodes: the
// redlock key of that name is held too. A name serves one kind of primitive.
//
// A wrong or nil option is a programmer's error: New panics and names the
// remedy. An unusable name (empty, longer than 1024 bytes, or with braces) is
// reported by every call that would lock, with [quorate.ErrInvalid].
func New(q *quorate.Quorum, name string, opts ...quorate.LockOption) *Mutex {
	c := core.CoreOf(q).For(name)
	set := core.Override(c, "mutex.New", opts)
	return &Mutex{q: localqueue.New(c, set, core.Spec{Name: name, Kind: "mutex", Weight: 1, Capacity: 1}, core.Spec{})}
}

func (m *Mutex) queue() *localqueue.Queue {
	if m == nil || m.q == nil {
		panic("quorate: the zero mutex.Mutex has no quorum; use mutex.New")
	}
	return m.q
}

// Lock locks m. It waits for its turn, through outages too, and never returns
// unlocked. It panics if the name is unusable. When the [quorate.Quorum] is
// closed, Lock does not return, see [quorate.Quorum.Close]. A node that refuses
// for good (a wrong password, a key of another type) is logged and asked again.
func (m *Mutex) Lock() { m.queue().MustLock("lock", localqueue.Write) }

// TryLock tries to lock m and reports whether it succeeded. It does not wait
// for a turn, only for the answers of a majority. If several processes try a
// free name at the same moment, one of them succeeds. For that, a try may take
// a few more round trips, and never more than the node timeout
// ([quorate.WithNodeTimeout]).
func (m *Mutex) TryLock() bool { return m.TryLockContext(context.Background()) == nil }

// LockContext locks m. It fails with a [*quorate.Error]:
//
//   - when the context ends, one that matches the context's error and says what was missing: [quorate.ErrHeld], the turn, or [quorate.ErrNoQuorum], nodes;
//   - ErrNoQuorum at once when so many nodes refuse for good that waiting cannot help;
//   - [quorate.ErrClosed] or [quorate.ErrInvalid].
//
// The claim is then withdrawn from every node. The end of the context ends the
// waiting, not the hold.
func (m *Mutex) LockContext(ctx context.Context) error {
	return core.WrapError("lock", m.queue().Name(), m.q.Lock(ctx, localqueue.Write, false))
}

// TryLockContext is [Mutex.TryLock] with the reason. It fails with
// [quorate.ErrHeld] when another claim holds the name or is ahead, with
// [quorate.ErrNoQuorum] when too few nodes answered, and otherwise as
// [Mutex.LockContext] does.
func (m *Mutex) TryLockContext(ctx context.Context) error {
	return core.WrapError("try lock", m.queue().Name(), m.q.Lock(ctx, localqueue.Write, true))
}

// Unlock unlocks m. It does not wait for the nodes. It panics if m is not
// locked, as [sync.Mutex.Unlock] does. If the lock was lost meanwhile, Unlock
// does nothing: the lease's context, the observer and the log have said so.
func (m *Mutex) Unlock() { m.queue().MustUnlock("unlock of unlocked mutex", localqueue.Write) }

// UnlockContext unlocks m and waits until a majority of the nodes is known to
// be free of the claim: each has confirmed the release, or was never asked for
// the lock.
//
// It fails with [quorate.ErrNotHeld] when m is not locked, and with
// [quorate.ErrLost] or [quorate.ErrClosed] when the hold ended by itself. It
// fails with [quorate.ErrNoQuorum] when too few nodes confirmed within the node
// timeout or before the context ended. The lock is released all the same, and
// ends on the other nodes when they come back or when its lease ends.
func (m *Mutex) UnlockContext(ctx context.Context) error {
	return core.WrapError("unlock", m.queue().Name(), m.q.UnlockContext(ctx, localqueue.Write))
}

// Do runs f while m is locked. The context of f ends with ctx, and when the
// lock is lost; [context.Cause] then is [quorate.ErrLost] or
// [quorate.ErrClosed]. Do unlocks m also when f panics. It returns how locking
// failed (see [Mutex.LockContext]), or f's error, joined with ErrLost or
// ErrClosed if the hold ended before f returned. Profiles show f with the
// labels quorate_kind and quorate_name.
func (m *Mutex) Do(ctx context.Context, f func(ctx context.Context) error) error {
	return m.queue().Do(ctx, "do", localqueue.Write, f)
}

// Lease returns the hold of the goroutine that has m locked, or nil if m is not
// locked. Take it after Lock: the next Lock has another.
func (m *Mutex) Lease() quorate.Lease {
	if l := m.queue().Lease(localqueue.Write); l != nil {
		return l
	}
	return nil
}

// Extend renews the lease now and waits until a majority of the nodes has done
// so. Renewal goes on by itself: Extend is for [quorate.WithoutRenewal], and
// for making sure before something that must not be interrupted. It fails with
// [quorate.ErrNotHeld], [quorate.ErrLost], [quorate.ErrClosed], or with
// [quorate.ErrNoQuorum] when the old deadline stands.
func (m *Mutex) Extend(ctx context.Context) error {
	return core.WrapError("extend", m.queue().Name(), m.q.Extend(ctx, localqueue.Write))
}

// Holder asks the nodes which process holds m. It fails with
// [quorate.ErrNotHeld] when no process does, with [quorate.ErrNoQuorum] when
// too few nodes answer, and with [quorate.ErrClosed] or [quorate.ErrInvalid].
// The answer may be out of date when it arrives.
func (m *Mutex) Holder(ctx context.Context) (quorate.Holder, error) {
	h, err := m.queue().Holder(ctx)
	return quorate.Holder(h), core.WrapError("holder", m.q.Name(), err)
}
