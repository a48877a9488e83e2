package core

// The calls to the tracer that the application provides:
//
//	AcquireStart ---> AcquireEnd ---> HoldEnd
//
// Invariant: no lock is held during a call, and a call never runs on a
// goroutine that does other work for the library, because the tracer may end
// the goroutine, as t.FailNow does.

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/setup"
)

// Span is one acquisition and the hold that follows it, as the tracer sees
// them. A nil Span is not traced; its methods do nothing.
type Span struct {
	q               *claims
	ctx             context.Context // returned by AcquireStart
	info            setup.AcquireInfo
	began           protocol.Time
	since           protocol.Time // when the caller got the hold
	token           uint64
	acquireReported chan struct{} // closed after AcquireEnd has returned
	held            time.Duration
	cause           error // why the hold has ended
}

// Trace starts a span. The acquisition must use the context that it returns.
func (q *claims) Trace(ctx context.Context, s *Spec, try bool) (context.Context, *Span) {
	t := q.Set.Trace
	if t == nil {
		return ctx, nil
	}
	span := &Span{
		q: q, began: q.Now(), info: setup.AcquireInfo{Kind: s.Kind, Name: s.Name, Try: try},
		acquireReported: make(chan struct{}),
	}
	span.ctx = t.AcquireStart(ctx, span.info)
	return span.ctx, span
}

// ReportAcquire reports to the tracer how the acquisition ended: with an error,
// or with lease l. got is the claim that the nodes admitted, or none if the
// lease was handed over inside this process. l is nil if another goroutine has
// unlocked in the meantime, which is a mistake of the application. If the
// tracer does not return, undo is called.
func (s *Span) ReportAcquire(got Hold, l *Lease, err error, undo func()) {
	if s == nil {
		return
	}
	r := setup.AcquireResult{Kind: s.info.Kind, Name: s.info.Name, Try: s.info.Try, Err: err}
	s.since = s.q.Now()
	r.Wait = s.since.Sub(s.began)
	if f, ok := errors.AsType[*fault.Failure](err); ok {
		r.Votes = f.Votes
		r.Err = WrapError("acquire", s.info.Name, err)
	}
	if got != none {
		got.a.describe(s.since, &r)
	}
	switch {
	case err != nil:
	case l == nil:
		r.Shared = true // there is no hold that could end
	default:
		s.token = l.Token()
		r.Token, r.Local = s.token, got == none
		r.Shared = !l.follow(s)
	}
	returned := false
	defer func() {
		if close(s.acquireReported); !returned && err == nil {
			undo()
		}
	}()
	s.q.Set.Trace.AcquireEnd(s.ctx, r)
	returned = true
}

// setHoldEnd records why the hold has ended, and how long it lasted.
func (s *Span) setHoldEnd(cause error) {
	if s != nil {
		s.held, s.cause = s.q.Now().Sub(s.since), cause
	}
}

// ReportHoldEnd reports the end of the hold to the tracer, after setHoldEnd. It
// is called once, without a lock, and must be the last call on its goroutine,
// because the tracer may end the goroutine.
func (s *Span) ReportHoldEnd() {
	if s == nil {
		return
	}
	<-s.acquireReported // a hold may end while AcquireEnd still runs
	r := setup.HoldResult{Kind: s.info.Kind, Name: s.info.Name, Token: s.token, Held: s.held}
	if s.cause != fault.ErrReleased {
		r.Err = WrapError("hold", s.info.Name, &fault.Failure{Err: s.cause})
	}
	s.q.Set.Trace.HoldEnd(s.ctx, r)
}

// describe adds the details of an admission to the result for the tracer.
func (a *attempt) describe(now protocol.Time, r *setup.AcquireResult) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r.Votes = a.claim.State.Votes(now)
	if a.stats != nil {
		r.Contended, r.Queue, r.RoundTrips = a.stats.contended, a.stats.queue,
			int(slices.Max(a.stats.asked[:]))
	}
}
