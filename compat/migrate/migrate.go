// Package quoratemigrate adds a lock on a quorum of independent Redis masters
// to a database driver of github.com/golang-migrate/migrate/v4. It is for
// drivers that have no lock of their own (such as ClickHouse, and MongoDB by
// default), and for poolers that do not keep sessions.
package quoratemigrate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/golang-migrate/migrate/v4/database"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/mutex"
)

// driver is a database driver behind a lock.
type driver struct {
	database.Driver
	m    *mutex.Mutex
	wait time.Duration
}

// New wraps d in the lock with the given name. The driver's Lock waits for its
// turn for at most wait, and then for d's own lock, if it has one. Choose a
// wait below migrate's LockTimeout, which is 15 s by default: after that time
// migrate gives up, but the waiting call goes on. New takes the options of
// [mutex.New]. It panics if mutex.New would or if wait is not positive.
//
// Lock returns [database.ErrLocked] if another process still has the lock after
// wait, and [quorate.ErrNoQuorum] if too few nodes answer. Unlock returns
// [quorate.ErrLost] if the lock was lost during the migrations. In that case
// another replica may have run migrations at the same time, because migrate
// cannot be interrupted.
//
// A driver creates its version table when it is opened. Open the driver through
// the value that New returns, because several replicas might do that at the
// same time.
func New(d database.Driver, q *quorate.Quorum, name string, wait time.Duration,
	opts ...quorate.LockOption) database.Driver {
	if wait <= 0 {
		panic(fmt.Sprintf("quorate: quoratemigrate.New: wait %v: must be positive: how long another replica's "+
			"migrations may take, and less than migrate's LockTimeout", wait))
	}
	return &driver{d, mutex.New(q, name, opts...), wait}
}

// Open opens the driver under the lock, and puts the result behind it.
func (d *driver) Open(url string) (database.Driver, error) {
	if err := d.take(); err != nil {
		return nil, err
	}
	defer d.m.Unlock()
	opened, err := d.Driver.Open(url)
	if err != nil {
		return nil, err
	}
	return &driver{opened, d.m, d.wait}, nil
}

// take takes the lock of the quorum.
func (d *driver) take() error {
	ctx, cancel := context.WithTimeout(context.Background(), d.wait)
	defer cancel()
	err := d.m.LockContext(ctx)
	if errors.Is(err, quorate.ErrHeld) {
		return fmt.Errorf("%w: %w", database.ErrLocked, err)
	}
	return err
}

// Lock takes both locks, or none.
func (d *driver) Lock() error {
	if err := d.take(); err != nil {
		return err
	}
	if err := d.Driver.Lock(); err != nil {
		d.m.Unlock()
		return err
	}
	return nil
}

// Unlock gives both locks back.
func (d *driver) Unlock() error {
	ctx, cancel := context.WithTimeout(context.Background(), d.wait)
	defer cancel()
	return errors.Join(d.Driver.Unlock(), d.m.UnlockContext(ctx))
}
