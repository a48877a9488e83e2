package semaphore

import (
	"context"
	"log/slog"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
)

// A Lease is a number of permits held as one, and a [quorate.Lease]. It is made
// by [Weighted.AcquireLease] and [Weighted.TryAcquireLease]. It is safe for
// concurrent use.
type Lease struct {
	lease *core.Lease
	name  string

	// Guarded by Weighted.mu for those that Acquire took.
	weight int64
	lost   bool // it has ended by itself
}

var _ quorate.Lease = (*Lease)(nil)

// Token returns the fencing token of the hold, see [quorate.Lease].
func (l *Lease) Token() uint64 { return l.lease.Token() }

// Context returns a context that ends when the hold ends, see [quorate.Lease].
func (l *Lease) Context() context.Context { return l.lease.Context() }

// ValidUntil returns when the hold ends unless it is renewed before, see
// [quorate.Lease].
func (l *Lease) ValidUntil() time.Time { return l.lease.ValidUntil() }

// Wanted returns a channel that is closed when another waits, see
// [quorate.Lease].
func (l *Lease) Wanted() <-chan struct{} { return l.lease.Wanted() }

// LogValue see [quorate.Lease].
func (l *Lease) LogValue() slog.Value { return l.lease.LogValue() }

// Release gives the permits back. It does not wait for the nodes. It fails with
// [quorate.ErrLost] or [quorate.ErrClosed] if the hold has ended by itself, and
// with [quorate.ErrNotHeld] when it was released before. On a nil Lease it does
// nothing.
func (l *Lease) Release() error {
	if l == nil {
		return nil
	}
	return core.WrapError("release", l.name, l.lease.Release())
}
