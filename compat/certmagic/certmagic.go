// Package quoratecertmagic gives any storage of
// github.com/caddyserver/certmagic a lock on a quorum of independent Redis
// masters. It is for fleets of Caddy, or of programs that use CertMagic, whose
// storage has no lock of its own or one that goes by clocks and timestamps.
package quoratecertmagic

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/mutex"
)

// Storage is a [certmagic.Storage] whose locks are Quorate's. Everything else
// goes to the storage that it was made from. It is safe for concurrent use.
//
// Waiters get a lock first come, first served. Leases are renewed until Unlock,
// so a lock lasts as long as its work does. If a process dies, its locks are
// free when their leases expire (8 s by default).
//
// CertMagic does not stop its work when a lock is lost. It is tolerant of two
// processes that obtain one certificate; the second one costs rate limit.
type Storage struct {
	certmagic.Storage
	q    *quorate.Quorum
	opts []quorate.LockOption

	mu    sync.Mutex
	locks map[string]*lock
}

// lock is a lock of a name that this process holds or waits for. Storage.mu
// guards it. CertMagic unlocks by name alone, so the process counts: holders of
// a mutex in use, and those that have lost it.
type lock struct {
	m     *mutex.Mutex
	users int  // calls of Lock that hold it or wait for it
	held  bool // by the Lock that returned last
	lost  int  // calls whose hold was lost, and who have not called Unlock yet
}

var (
	_ certmagic.Storage          = (*Storage)(nil)
	_ certmagic.TryLocker        = (*Storage)(nil)
	_ certmagic.LockLeaseRenewer = (*Storage)(nil)
)

// New returns s with the locks of q. Make one Storage per process, and use it
// as the Storage of each certmagic.Config. All processes that share s must use
// the same nodes. The options are the options of [mutex.New], and New panics if
// mutex.New would, or if s is nil.
//
// A name is locked as the mutex "certmagic:" followed by the name as
// [certmagic.KeyBuilder.Safe] returns it, as certmagic.FileStorage does. So
// quorate inspect shows which process obtains a certificate.
func New(s certmagic.Storage, q *quorate.Quorum, opts ...quorate.LockOption) *Storage {
	if s == nil {
		panic("quorate: quoratecertmagic.New: the storage is nil")
	}
	mutex.New(q, "certmagic:", opts...) // panics if an option is wrong
	return &Storage{Storage: s, q: q, opts: opts, locks: map[string]*lock{}}
}

// String returns the names of both parts, for CertMagic's log.
func (s *Storage) String() string { return fmt.Sprintf("%v with locks of Quorate", s.Storage) }

// use returns the lock of a name, with one more user.
func (s *Storage) use(name string) *lock {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := certmagic.StorageKeys.Safe(name)
	l := s.locks[key]
	if l == nil {
		l = &lock{m: mutex.New(s.q, "certmagic:"+key, s.opts...)}
		s.locks[key] = l
	}
	l.users++
	return l
}

// locked notes how an attempt to lock has ended.
func (s *Storage) locked(name string, l *lock, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.drop(name, l)
		return err
	}
	l.held = true
	return nil
}

// drop takes a user away. Called with s.mu held.
func (s *Storage) drop(name string, l *lock) {
	if l.users--; l.users == 0 {
		delete(s.locks, certmagic.StorageKeys.Safe(name))
	}
}

// Lock waits for its turn until ctx ends, and fails as
// [mutex.Mutex.LockContext] does.
func (s *Storage) Lock(ctx context.Context, name string) error {
	l := s.use(name)
	return s.locked(name, l, l.m.LockContext(ctx))
}

// TryLock reports whether it has locked the name. It does not wait for others.
// If too few nodes answer, it fails with [quorate.ErrNoQuorum].
func (s *Storage) TryLock(ctx context.Context, name string) (bool, error) {
	l := s.use(name)
	err := s.locked(name, l, l.m.TryLockContext(ctx))
	if errors.Is(err, quorate.ErrHeld) && ctx.Err() == nil {
		return false, nil
	}
	return err == nil, err
}

// Unlock unlocks the name. It fails with [quorate.ErrNotHeld] if this Storage
// has not locked the name, and with [quorate.ErrLost] or [quorate.ErrClosed] if
// the lock had ended before. In the latter cases another process may have
// worked at the same time. Nodes that do not answer are no error: they free the
// name when they are back, or when the lease expires.
func (s *Storage) Unlock(ctx context.Context, name string) error {
	s.mu.Lock()
	l := s.locks[certmagic.StorageKeys.Safe(name)]
	switch {
	case l == nil || !l.held && l.lost == 0:
		s.mu.Unlock()
		return fmt.Errorf("quorate: unlock %q: %w", name, quorate.ErrNotHeld)
	case l.lost > 0:
		// Its hold was lost in RenewLockLease. If another goroutine has
		// the name now, its own Unlock is still to come.
		l.lost--
		s.drop(name, l)
		s.mu.Unlock()
		return fmt.Errorf("quorate: unlock %q: %w", name, quorate.ErrLost)
	}
	l.held = false
	s.drop(name, l)
	s.mu.Unlock()
	err := l.m.UnlockContext(ctx)
	if errors.Is(err, quorate.ErrNoQuorum) {
		return nil
	}
	return err
}

// RenewLockLease makes sure that the name is still locked. CertMagic calls it
// before each attempt to obtain a certificate. Quorate renews leases by itself,
// so there is nothing to do unless the lock was lost. Then RenewLockLease locks
// the name again, and waits for its turn for at most d, or until ctx ends.
// CertMagic looks next whether another process has obtained the certificate. It
// fails with [quorate.ErrNotHeld] if this Storage has not locked the name.
//
// With [quorate.WithoutRenewal], RenewLockLease renews the lease for one TTL,
// whatever d is.
func (s *Storage) RenewLockLease(ctx context.Context, name string, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	s.mu.Lock()
	l := s.locks[certmagic.StorageKeys.Safe(name)]
	if l == nil || !l.held && l.lost == 0 {
		s.mu.Unlock()
		return fmt.Errorf("quorate: renew %q: %w", name, quorate.ErrNotHeld)
	}
	if l.held {
		s.mu.Unlock()
		err := l.m.Extend(ctx)
		if !errors.Is(err, quorate.ErrLost) {
			return err
		}
		s.mu.Lock()
		l.held = false
		l.lost++
		s.mu.Unlock()
		_ = l.m.UnlockContext(ctx) // it is lost
	} else {
		s.mu.Unlock()
	}
	if err := l.m.LockContext(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	l.lost--
	l.held = true
	s.mu.Unlock()
	return nil
}
