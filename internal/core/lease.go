package core

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Lease is what the holder of a primitive sees of its hold: one goroutine's
// turn under a claim that may serve several.
type Lease struct {
	hold  *Hold
	token uint64

	mu    sync.Mutex
	life  *life // made when asked for
	cause error // why the hold has ended; nil while it has not
}

// life is a context and what ends it.
type life struct {
	context.Context
	end context.CancelCauseFunc
}

// Lease returns a new lease, of the n-th turn under the claim.
func (h *Hold) Lease(n int) *Lease { return &Lease{hold: h, token: h.Token(n)} }

// Again makes l, which has ended and which nobody was given, the lease of the
// claim's n-th turn.
func (l *Lease) Again(n int) { *l = Lease{hold: l.hold, token: l.hold.Token(n)} }

// Token returns the fencing token.
func (l *Lease) Token() uint64 { return l.token }

// ValidUntil returns the claim's deadline as it stands.
func (l *Lease) ValidUntil() time.Time { return l.hold.ValidUntil() }

// Context returns a context that ends with the hold.
func (l *Lease) Context() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life == nil {
		ctx, end := context.WithCancelCause(context.Background())
		if l.life = (&life{ctx, end}); l.cause != nil {
			end(l.cause)
		}
	}
	return l.life.Context
}

// End ends the hold; the first cause stays. It returns what Lost does from then on.
func (l *Lease) End(cause error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause == nil {
		if l.cause = cause; l.life != nil {
			l.life.end(cause)
		}
	}
	return l.lost()
}

// Lost returns why the hold has ended by itself, or nil.
func (l *Lease) Lost() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost()
}

func (l *Lease) lost() error {
	if errors.Is(l.cause, ErrReleased) {
		return nil
	}
	return l.cause
}
