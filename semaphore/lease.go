package semaphore

import (
	"context"
	"log/slog"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
)

// A Lease is a number of permits held as one. It implements [quorate.Lease].
// Create it with [Weighted.AcquireLease] or [Weighted.TryAcquireLease].
type Lease struct {
	lease *core.Lease
	name  string

	// Guarded by Weighted.mu for those that Acquire took.
	weight int64
	lost   bool // it has ended by itself
}

var _ quorate.Lease = (*Lease)(nil)

// Token returns the fencing token of the hold; see [quorate.Lease].
func (l *Lease) Token() uint64 { return l.lease.Token() }

// Context returns a context that ends when the permits are lost or released;
// see [quorate.Lease].
func (l *Lease) Context() context.Context { return l.lease.Context() }

// ValidUntil returns when the hold ends unless it is renewed; see
// [quorate.Lease].
func (l *Lease) ValidUntil() time.Time { return l.lease.ValidUntil() }

// Wanted returns a channel that is closed when another claim is waiting; see
// [quorate.Lease].
func (l *Lease) Wanted() <-chan struct{} { return l.lease.Wanted() }

// LogValue returns the name, the token and the remaining time, for [log/slog].
func (l *Lease) LogValue() slog.Value { return l.lease.LogValue() }

// Release releases the permits without waiting for the nodes. It returns
// [quorate.ErrLost] or [quorate.ErrClosed] if the permits have been lost, and
// [quorate.ErrNotHeld] if they have already been released. On a nil Lease it
// does nothing.
func (l *Lease) Release() error {
	if l == nil {
		return nil
	}
	return core.WrapError("release", l.name, l.lease.Release())
}
