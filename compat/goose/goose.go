// Package quorategoose provides a lock for github.com/pressly/goose/v3 on a
// quorum of independent Redis masters. It is for databases without advisory
// locks, and for poolers that do not keep sessions.
package quorategoose

import (
	"context"
	"database/sql"

	"github.com/pressly/goose/v3/lock"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/mutex"
)

// A Locker is a [lock.Locker] and a [lock.SessionLocker]. Pass it to one
// provider, with goose.WithLocker. It is safe for concurrent use.
type Locker struct{ m *mutex.Mutex }

var (
	_ lock.Locker        = (*Locker)(nil)
	_ lock.SessionLocker = (*Locker)(nil)
)

// New returns the lock with the given name. It takes the options of [mutex.New]
// and panics if mutex.New would.
func New(q *quorate.Quorum, name string, opts ...quorate.LockOption) *Locker {
	return &Locker{mutex.New(q, name, opts...)}
}

// Lock waits for its turn until ctx is done. It returns the same errors as
// [mutex.Mutex.LockContext].
func (l *Locker) Lock(ctx context.Context, _ *sql.DB) error { return l.m.LockContext(ctx) }

// Unlock releases the lock and waits until a majority of the nodes has
// confirmed that. It returns [quorate.ErrLost] if the lock was lost during the
// migrations. In that case another replica may have run migrations at the same
// time, because goose cannot be interrupted.
func (l *Locker) Unlock(ctx context.Context, _ *sql.DB) error { return l.m.UnlockContext(ctx) }

// SessionLock is [Locker.Lock].
func (l *Locker) SessionLock(ctx context.Context, _ *sql.Conn) error { return l.m.LockContext(ctx) }

// SessionUnlock is [Locker.Unlock].
func (l *Locker) SessionUnlock(ctx context.Context, _ *sql.Conn) error {
	return l.m.UnlockContext(ctx)
}
