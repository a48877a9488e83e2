package core

// When the contexts of a holder end, and with which cause.
// Invariant: the contexts of a lease have ended before a node can admit another
// claim. On a release they end before the leaves are queued. On a loss they end
// at the deadline, which is earlier than the deadlines of the nodes.
// Lock order: lease.mu is taken with no lock of an attempt held, and expire
// takes the attempt's lock with no lease.mu held.

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/fault"
)

// Lease is a holder's view of its hold: the turn of one goroutine. A claim may
// serve several turns, one after the other. It is safe for concurrent use.
type Lease struct {
	hold  Hold
	token uint64

	mu           sync.Mutex
	leaseContext *leaseContext // made on demand; heads the ring of the contexts that Derive made
	cause        error         // why the hold has ended; nil while it has not
	wanted       chan struct{} // closed when another waits; nil if none does and Wanted was not called
	span         *Span         // nil if the hold is not traced
}

// leaseContext is a context that ends with a lease: synchronously, in the
// goroutine that ends the lease. So it has ended before a leave can admit
// another holder.
//
// Note: Here is an incorrect way to derive one:
//
//	inner, cancel := context.WithCancelCause(ctx)
//	context.AfterFunc(lease.Context(), func() { cancel(ErrLost) })
//
// AfterFunc calls its function in another goroutine, which may run too late. A
// leaseContext takes Done and Value from a context of package context, so
// WithCancel, WithTimeout and AfterFunc attach to it without a goroutine, and
// their contexts end synchronously too.
type leaseContext struct {
	context.Context
	lease      *Lease
	from       context.Context
	end        context.CancelCauseFunc
	prev, next *leaseContext // a ring, guarded by lease.mu
}

// Err also checks the deadline, because the scheduler's goroutine may not have
// run yet. It calls Err of the parent context for the same reason: the parent
// may belong to another lease.
func (c *leaseContext) Err() error {
	_ = c.from.Err()
	if err := c.Context.Err(); err != nil {
		return err
	}
	if c.lease.hold.Valid() || !c.lease.expire() {
		return nil
	}
	return c.Context.Err()
}

// Lease returns a new lease for the n-th turn under the claim.
func (h Hold) Lease(n int) *Lease { return &Lease{hold: h, token: h.Token(n)} }

// Single is the Owner of a claim that serves one turn. It is safe for
// concurrent use.
type Single struct {
	OnEnd func() // called just before the lease ends without a release; may be nil

	mu    sync.Mutex
	lease *Lease // nil until Take is called
	ended bool   // Ended has been called
}

// Take returns the lease of the claim, which may have ended already. It is
// called once.
func (s *Single) Take(h Hold) *Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lease = h.Lease(0)
	s.end()
	return s.lease
}

// Ended ends the lease if it has been taken; otherwise Take ends it.
func (s *Single) Ended() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.end()
}

// end ends the lease if it has been taken and Ended has been called. Called
// with s.mu held.
func (s *Single) end() {
	if s.lease == nil || !s.ended {
		return
	}
	if s.OnEnd != nil {
		s.OnEnd()
	}
	s.lease.End(s.lease.hold.Cause())
}

func (s *Single) Waiting() {
	if l := s.turn(); l != nil {
		l.Want()
	}
}

func (s *Single) Calm() {}

func (s *Single) Warn(_ Hold, f func(lease any)) {
	if l := s.turn(); l != nil {
		f(l)
	}
}

// turn returns the lease, if it has been taken.
func (s *Single) turn() *Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease
}

// AcquireLease calls Acquire, and returns the lease of the hold's first turn.
func (q *claims) AcquireLease(ctx context.Context, s *Spec, try bool, owner *Single) (l *Lease, err error) {
	ctx, span := q.Trace(ctx, s, try)
	hold, err := q.Acquire(ctx, s, try, owner)
	if err == nil {
		l = owner.Take(hold)
	}
	span.ReportAcquire(hold, l, err, func() { _ = l.Release() })
	return l, err
}

// Hold returns the claim of the lease.
func (l *Lease) Hold() Hold { return l.hold }

// Again reuses l for the n-th turn. l has ended, and no caller has it.
func (l *Lease) Again(n int) { *l = Lease{hold: l.hold, token: l.hold.Token(n)} }

// Token returns the fencing token.
func (l *Lease) Token() uint64 { return l.token }

// LogValue returns the name, the token and the time left of the lease.
func (l *Lease) LogValue() slog.Value {
	return slog.GroupValue(slog.String("name", l.hold.a.spec.Name), slog.Uint64("token", l.token),
		slog.Duration("left", time.Until(l.ValidUntil())))
}

// Wanted returns a channel that is closed when another claim, or a goroutine of
// this process, has begun to wait behind the hold.
func (l *Lease) Wanted() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wanted == nil {
		l.wanted = make(chan struct{})
	}
	// Check after making the channel: HoldState shows a waiter before Want is
	// called.
	if l.hold.HoldState().Waiters {
		l.want()
	}
	return l.wanted
}

// Want records that another caller or claim waits.
func (l *Lease) Want() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.want()
}

// want is Want with l.mu held.
func (l *Lease) want() {
	switch {
	case l.cause != nil || l.wanted == closed:
		return
	case l.wanted != nil:
		close(l.wanted)
	}
	l.wanted = closed
}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// ValidUntil returns the claim's current deadline.
func (l *Lease) ValidUntil() time.Time { return l.hold.ValidUntil() }

// Context returns a context that ends with the hold.
func (l *Lease) Context() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.own()
}

// own returns the context of the lease, which it makes when first called.
// Called with l.mu held.
func (l *Lease) own() *leaseContext {
	if l.leaseContext == nil {
		l.leaseContext = l.live(context.Background())
		if l.cause != nil {
			l.leaseContext.end(l.cause)
		}
		l.leaseContext.prev, l.leaseContext.next = l.leaseContext, l.leaseContext
	}
	return l.leaseContext
}

// live returns a context that ends with ctx, or when its end is called. Package
// context calls Err of ctx, which may end l, so live is called without l.mu
// unless ctx is Background.
func (l *Lease) live(ctx context.Context) *leaseContext {
	inner, end := context.WithCancelCause(ctx)
	return &leaseContext{Context: inner, lease: l, from: ctx, end: end}
}

// Derive returns a context that ends with ctx and with the hold, and has the
// values and the deadline of ctx. The caller must call stop, which ends the
// context too.
func (l *Lease) Derive(ctx context.Context) (inner context.Context, stop func()) {
	c := l.live(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.own()
	if l.cause != nil {
		c.end(l.cause)
	}
	c.prev, c.next = own, own.next
	c.prev.next, c.next.prev = c, c
	return c, func() {
		l.mu.Lock()
		c.prev.next, c.next.prev = c.next, c.prev
		c.prev, c.next = c, c
		l.mu.Unlock()
		c.end(fault.ErrReleased)
	}
}

// End ends the lease and its contexts, not the claim: that is what Release does.
// A lease that has ended keeps its first cause. The tracer is called in another
// goroutine, because the caller may hold a lock or still have leaves to send.
func (l *Lease) End(cause error) {
	if span, _ := l.Finish(cause); span != nil {
		go span.ReportHoldEnd()
	}
}

// Finish is like End, but leaves the call to the tracer to its caller, which
// must call ReportHoldEnd of the span. lost is what Lost returns from then on.
func (l *Lease) Finish(cause error) (span *Span, lost error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	span = l.end(cause)
	return span, l.lost()
}

// follow makes span s report the end of the lease to the tracer. It returns
// false if the lease has a span already: readers of one process share a lease.
func (l *Lease) follow(s *Span) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.span != nil {
		return false
	}
	if l.span = s; l.cause != nil {
		s.setHoldEnd(l.cause)
		go s.ReportHoldEnd()
	}
	return true
}

// Release ends the hold and releases it on the nodes, without waiting for them.
// It returns ErrNotHeld if the hold was released before. If the hold had ended
// in another way, it returns the reason.
func (l *Lease) Release() error {
	cause := fault.ErrReleased
	if !l.hold.Valid() {
		cause = l.hold.Cause() // the deadline has passed, but its goroutine has not run yet
	}
	l.mu.Lock() //mutant:ReleaseLast=l.hold.Release(); l.mu.Lock()
	before := l.cause
	span := l.end(cause)
	lost := l.lost()
	l.mu.Unlock()
	if before == fault.ErrReleased {
		return fault.ErrNotHeld
	}
	l.hold.Release()
	span.ReportHoldEnd()
	return lost
}

// end ends the hold with a cause. It returns the span, or nil if the hold had
// already ended. Called with l.mu held.
func (l *Lease) end(cause error) *Span {
	if l.cause != nil {
		return nil
	}
	l.span.setHoldEnd(cause)
	if l.cause = cause; l.leaseContext != nil {
		l.leaseContext.end(cause) //mutant:EndAtOnce=go l.leaseContext.end(cause)
		for c := l.leaseContext.next; c != l.leaseContext; c = c.next {
			c.end(cause)
		}
	}
	return l.span
}

// expire ends a claim that is past its deadline, and its lease. It reports
// whether the claim has ended.
// Invariant: without a release, a lease ends only if its claim is final. The
// claim decides once, under the attempt's lock, whether an answer was in time.
func (l *Lease) expire() bool {
	a := l.hold.a
	a.mu.Lock()
	now := a.q.Now()
	a.claim.Tick(now)
	ended := a.claim.State.Phase().Final()
	// Usually the owner ends the lease here. If another goroutine has ended the
	// claim, the owner may not have been called yet, so the lease is ended
	// below.
	a.stepUnlock(now, ordinary)
	if ended {
		l.End(l.hold.Cause())
	}
	return ended
}

// Lost returns why the hold has ended if it was not released, otherwise nil.
func (l *Lease) Lost() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost()
}

// lost is Lost with l.mu held.
func (l *Lease) lost() error {
	if errors.Is(l.cause, fault.ErrReleased) {
		return nil
	}
	return l.cause
}
