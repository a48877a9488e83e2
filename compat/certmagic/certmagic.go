// Package quoratecertmagic adds locks on a quorum of independent Redis masters
// to any storage for github.com/caddyserver/certmagic. It is for fleets of
// Caddy servers, or of programs that use CertMagic, whose storage has no locks
// of its own or has locks based on timestamps.
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

// Storage is a [certmagic.Storage] that uses Quorate's locks. Everything else
// goes to the underlying storage. It is safe for concurrent use.
//
// Waiters get a lock first come, first served. Leases are renewed until Unlock,
// so a lock lasts as long as the work does. If a process dies, its locks are
// released when their leases expire (after 8 s by default).
//
// CertMagic does not stop working when a lock is lost. It tolerates two
// processes obtaining the same certificate, but the second one counts against
// the rate limit.
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
	lost  int  // calls whose hold was lost, and who neither wait in RenewLockLease nor have called Unlock
}

var (
	_ certmagic.Storage          = (*Storage)(nil)
	_ certmagic.TryLocker        = (*Storage)(nil)
	_ certmagic.LockLeaseRenewer = (*Storage)(nil)
)

// New returns a storage that stores everything in s and locks with q. Create
// one Storage per process and use it as the Storage of each certmagic.Config.
// All processes that share s must use the same nodes. New takes the options of
// [mutex.New], and panics if mutex.New would or if s is nil.
//
// The mutex for a name is called "certmagic:" followed by the name as sanitized
// by [certmagic.KeyBuilder.Safe], which certmagic.FileStorage uses too. So
// "quorate inspect" can show which process is obtaining a certificate.
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

// Lock waits for its turn until ctx is done. It returns the same errors as
// [mutex.Mutex.LockContext].
func (s *Storage) Lock(ctx context.Context, name string) error {
	l := s.use(name)
	return s.locked(name, l, l.m.LockContext(ctx))
}

// TryLock reports whether it has locked the name. It does not wait for its
// turn. If too few nodes answer, it returns [quorate.ErrNoQuorum].
func (s *Storage) TryLock(ctx context.Context, name string) (bool, error) {
	l := s.use(name)
	err := s.locked(name, l, l.m.TryLockContext(ctx))
	if errors.Is(err, quorate.ErrHeld) && ctx.Err() == nil {
		return false, nil
	}
	return err == nil, err
}

// Unlock unlocks the name. It returns [quorate.ErrNotHeld] if this Storage has
// not locked the name, and [quorate.ErrLost] or [quorate.ErrClosed] if the lock
// had already ended. In the latter cases another process may have been working
// at the same time. It is not an error if nodes do not answer: they release the
// name when they come back, or when the lease expires.
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
// so there is nothing to do unless the lock was lost. In that case
// RenewLockLease locks the name again, waiting for its turn for at most d or
// until ctx is done. CertMagic then checks whether another process has obtained
// the certificate. RenewLockLease returns [quorate.ErrNotHeld] if this Storage
// has not locked the name.
//
// With [quorate.WithoutRenewal], RenewLockLease renews the lease for one TTL
// and ignores d.
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
		s.mu.Unlock()
		_ = l.m.UnlockContext(ctx) // it is lost
	} else {
		l.lost-- // this call waits; an Unlock in the meantime comes from the goroutine that holds the name
		s.mu.Unlock()
	}
	err := l.m.LockContext(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		l.lost++
		return err
	}
	l.held = true
	return nil
}
