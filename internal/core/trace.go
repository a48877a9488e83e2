package core

// The calls to the tracer that the application provides:
//
//	AcquireStart ---> AcquireEnd ---> HoldEnd
//
// Invariant: no lock is held during a call, and no call is on a goroutine that
// does other work for the library: the tracer may end that goroutine, as
// t.FailNow does.

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
	q     *claims
	ctx   context.Context // of AcquireStart
	info  setup.AcquireInfo
	began protocol.Time
	since protocol.Time // when the caller got the hold
	token uint64
	told  chan struct{} // closed after AcquireEnd
	held  time.Duration
	cause error // why the hold has ended
}

// Trace starts a span. The acquisition must use the context that it returns.
func (q *claims) Trace(ctx context.Context, s *Spec, try bool) (context.Context, *Span) {
	t := q.Set.Trace
	if t == nil {
		return ctx, nil
	}
	span := &Span{
		q: q, began: q.Now(), info: setup.AcquireInfo{Kind: s.Kind, Name: s.Name, Try: try}, told: make(chan struct{}),
	}
	span.ctx = t.AcquireStart(ctx, span.info)
	return span.ctx, span
}

// End reports how the acquisition has ended: with an error, or with a lease,
// under a claim that was got from the nodes, or under one of this process if
// got is nil. There is no lease where another goroutine has unlocked meanwhile,
// which is a mistake. If the tracer does not return, undo is called.
func (s *Span) End(got Hold, l *Lease, err error, undo func()) {
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
		got.a.tell(s.since, &r)
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
		if close(s.told); !returned && err == nil {
			undo()
		}
	}()
	s.q.Set.Trace.AcquireEnd(s.ctx, r)
	returned = true
}

// finish records why the hold has ended, and how long it lasted.
func (s *Span) finish(cause error) {
	if s != nil {
		s.held, s.cause = s.q.Now().Sub(s.since), cause
	}
}

// Ended reports to the tracer that the hold has ended, after finish. It is
// called once, without a lock, and as the last thing that its goroutine does,
// since the tracer may end the goroutine.
func (s *Span) Ended() {
	if s == nil {
		return
	}
	<-s.told // a hold may end as its caller gets it
	r := setup.HoldResult{Kind: s.info.Kind, Name: s.info.Name, Token: s.token, Held: s.held}
	if s.cause != fault.ErrReleased {
		r.Err = WrapError("hold", s.info.Name, &fault.Failure{Err: s.cause})
	}
	s.q.Set.Trace.HoldEnd(s.ctx, r)
}

// tell adds the details of an admission to the result for the tracer.
func (a *attempt) tell(now protocol.Time, r *setup.AcquireResult) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r.Votes = a.claim.State.Votes(now)
	if a.seen != nil {
		r.Contended, r.Queue, r.RoundTrips = a.seen.contended, a.seen.queue, int(slices.Max(a.seen.asked[:]))
	}
}
