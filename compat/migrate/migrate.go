// Package quoratemigrate puts a lock on a quorum of independent Redis masters
// before a database driver of github.com/golang-migrate/migrate/v4: for those
// that have none of their own, as ClickHouse and MongoDB by default, and for
// poolers that do not keep sessions.
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

// New returns d behind the lock of the given name. It waits for its turn for as
// long as wait, and then for the lock of d itself, if that has one. Choose less
// than the LockTimeout of migrate, which is 15 s by default: migrate gives up
// after that, and does not end what waits. Options are those of [mutex.New],
// and it panics as that does. A wait that is not positive is a programmer's
// error, and New panics.
//
// Its Lock fails with [database.ErrLocked] when another process has the lock
// for all of wait, and with [quorate.ErrNoQuorum] when nodes are missing. Its
// Unlock fails with [quorate.ErrLost] if the lock was lost while the migrations
// ran: then another replica may have run beside them. migrate cannot be stopped
// in the middle.
//
// A driver makes its table of versions as it is opened. So open it by what New
// returns, as the first replicas may do that at once.
func New(d database.Driver, q *quorate.Quorum, name string, wait time.Duration, opts ...quorate.LockOption) database.Driver {
	if wait <= 0 {
		panic(fmt.Sprintf("quorate: quoratemigrate.New: wait %v: choose how long another replica's migrations may take, below migrate's LockTimeout", wait))
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
