// Package mutex is sync.Mutex across processes: it is held on a majority of
// the nodes of a quorate.Quorum, first come first served over all processes.
//
//	m := mutex.New(q, "invoices")
//	m.Lock()
//	defer m.Unlock()
package mutex

import (
	"context"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/party"
)

// A Mutex excludes all others of its name, in whatever process they are. It
// must be made by New, and must not be copied; the zero value panics, for it
// has no quorum.
//
// One value is one participant: goroutines that share it queue in this
// process, first come first served, and pass the lock on between them without
// a round trip; two values of one name exclude each other as two processes do.
// While another participant waits, they pass it on at most 32 times in a row,
// and for at most a quarter of the ttl. So a goroutine of the holder's process
// may have the lock before a process that asked earlier, but not for longer.
//
// In the terminology of the Go memory model, the n'th call of Unlock
// "synchronizes before" the m'th call of Lock on the same value for any n < m.
// Across processes there is no shared memory: what a holder has written to a
// resource, a later holder sees as far as the resource itself promises.
type Mutex struct {
	_ noCopy
	p *party.Party
}

// noCopy makes go vet report copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// New returns a Mutex of the given name. All who use the name, in whatever
// process, exclude each other, and so do other Redlock clients on the same
// nodes: the plain key of that name is held too. A wrong option is a
// programmer's error: New panics. An unusable name (empty, with braces, ending in :marker or :heal, longer
// than 1024 bytes) is reported by every call that would lock, as an error that
// matches quorate.ErrInvalid.
func New(q *quorate.Quorum, name string, opts ...quorate.Option) *Mutex {
	c := core.Of(q)
	set := core.Override(c, "mutex.New", opts)
	return &Mutex{p: party.New(c, set, core.Spec{Name: name, Weight: 1, Capacity: 1}, core.Spec{})}
}

// party returns what New has made.
func (m *Mutex) party() *party.Party {
	if m == nil || m.p == nil {
		panic("quorate: the zero mutex.Mutex has no quorum; use mutex.New")
	}
	return m.p
}

// Lock locks m. It waits for its turn, through outages too, and never returns
// unlocked. It panics if the name is unusable. When the Quorum is closed, Lock
// does not return; see [quorate.Quorum.Close]. Nodes that refuse for good (a
// wrong password, a key of another type) are told to the log and asked again.
func (m *Mutex) Lock() { m.party().MustLock("lock", party.Write) }

// TryLock tries to lock m and reports whether it succeeded. It does not wait
// for a turn, only for the answers of a majority. If several processes try a
// free name at the same moment, one of them succeeds; for that, a try may take
// a few round trips more, and never more than the node timeout.
func (m *Mutex) TryLock() bool { return m.TryLockContext(context.Background()) == nil }

// LockContext locks m, or fails with a *quorate.Error: when the context ends,
// one that matches the context's error and says what was being waited for
// (quorate.ErrHeld: the turn; quorate.ErrNoQuorum: nodes); quorate.ErrNoQuorum
// at once when so many nodes refuse for good that waiting cannot help;
// quorate.ErrClosed; quorate.ErrInvalid. The claim is then withdrawn from every
// node. The end of the context ends the waiting, not the hold.
func (m *Mutex) LockContext(ctx context.Context) error {
	return core.Dress("lock", m.party().Name(), m.p.Lock(ctx, party.Write, false))
}

// TryLockContext is TryLock with the reason: quorate.ErrHeld when somebody
// holds it or is ahead, quorate.ErrNoQuorum when too few nodes answered.
func (m *Mutex) TryLockContext(ctx context.Context) error {
	return core.Dress("try lock", m.party().Name(), m.p.Lock(ctx, party.Write, true))
}

// Unlock unlocks m. It does not wait for the nodes. It panics if m is not
// locked, as sync.Mutex does. If the lock was lost meanwhile it does nothing:
// the lease's context, the observer and the log have said so.
func (m *Mutex) Unlock() { m.party().MustUnlock("unlock of unlocked mutex", party.Write) }

// UnlockContext unlocks m and waits until a majority of the nodes is known to be
// free of it: has confirmed it, or was never asked for the lock. It fails with quorate.ErrNotHeld when m is not locked, with
// quorate.ErrLost when the lock was lost meanwhile, and with
// quorate.ErrNoQuorum when too few nodes confirmed within the node timeout or
// before the context ended: the lock is released all the same, and ends on the
// other nodes when they come back or its lease ends.
func (m *Mutex) UnlockContext(ctx context.Context) error {
	return core.Dress("unlock", m.party().Name(), m.p.UnlockContext(ctx, party.Write))
}

// Do runs f while m is locked. The context that f gets ends with ctx, and when
// the lock is lost; context.Cause then is quorate.ErrLost. Do returns f's
// error, or how locking failed, or quorate.ErrLost if the lock was lost
// before f returned.
func (m *Mutex) Do(ctx context.Context, f func(ctx context.Context) error) error {
	return m.party().Do(ctx, "do", party.Write, f)
}

// Lease returns the hold of the goroutine that has m locked, or nil if none
// has. Take it after Lock: the next Lock has another.
func (m *Mutex) Lease() quorate.Lease {
	if l := m.party().Lease(party.Write); l != nil {
		return l
	}
	return nil
}

// Extend renews the lease now and waits until a majority has done so. Renewal
// goes on by itself; Extend is for WithoutRenewal, and for making sure before
// something that must not be interrupted. It fails with quorate.ErrNotHeld,
// quorate.ErrLost, or quorate.ErrNoQuorum when the old deadline stands.
func (m *Mutex) Extend(ctx context.Context) error {
	return core.Dress("extend", m.party().Name(), m.p.Extend(ctx, party.Write))
}

// Holder asks the nodes who holds m. It fails with quorate.ErrNotHeld when
// nobody does, and with quorate.ErrNoQuorum when too few nodes answer. The
// answer may be out of date when it arrives.
func (m *Mutex) Holder(ctx context.Context) (quorate.Holder, error) {
	h, err := m.party().Holder(ctx)
	return quorate.Holder(h), core.Dress("holder", m.p.Name(), err)
}
