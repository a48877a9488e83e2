// Package period runs a job at most once per period across all processes,
// whatever their clocks show.
//
//	p := period.New(q, "report", time.Hour)
//	ran, err := p.Do(ctx, report) // called by a scheduler, or in a loop with Wait
//
// Periods follow the nodes' clocks. They are the multiples of their length
// since 1970-01-01 00:00 UTC, so a period of 24 h begins at midnight UTC.
// Before a run begins, a majority of the nodes of a [quorate.Quorum] has
// recorded that it begins.
//
// All types in this package are safe for concurrent use.
package period

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/setup"
)

// A Period is a job that runs at most once per period. It must be created by
// [New] and must not be copied. Goroutines that share it behave as separate
// processes do.
//
// No period has two runs. This does not depend on clocks or leases: the period
// is recorded before the run begins, and recorded periods only increase. But a
// run may still be in progress when the run of a later period begins, because
// its process can sleep through its lease. So fence what the run writes to with
// the token of [Lease].
//
// If no process calls [Period.Do] in a period, that period is skipped. A run
// that lasts into later periods keeps other runs from starting until it ends. A
// run that fails, or whose process dies, is repeated only with [WithRetry].
//
// A run begins within its period by the nodes' clocks, give or take the
// difference between them, see [quorate.WithSkew]. Do not use the name for
// another primitive. The newest run stays recorded, so choose a name that does
// not change from day to day.
type Period struct {
	_      core.NoCopy
	q      *core.Quorum
	spec   *core.Spec
	reg    *core.Register
	every  time.Duration
	retry  bool
	err    error        // of the name; every call that would ask the nodes tells it
	waited atomic.Int64 // the period that Wait has returned for last, in Unix microseconds; 0: none
}

// own is an option that this package alone understands.
type own struct {
	quorate.PeriodOption // nil: it makes the type an option of New, and has no other use
	set                  func(*Period)
}

// Apply leaves the settings of other primitives as they are, see New.
func (own) Apply(*setup.Settings) {}

// WithRetry makes a later call of [Period.Do] in the same period run the
// function again if it returned an error or its process died. By default a
// period has at most one run, whatever its outcome.
func WithRetry() quorate.PeriodOption { return own{set: func(p *Period) { p.retry = true }} }

// A period that is shorter than a few round trips would be skipped most of the
// time. They are counted from 1970 on, so one that is too long never begins.
const shortest, longest = 10 * time.Millisecond, 50 * 365 * 24 * time.Hour

// New returns the job with the given name. All values with the same name share
// the job, in every process, and should have the same period and options.
//
// Options: [WithRetry], [quorate.WithTTL], [quorate.WithNodeTimeout],
// [quorate.WithMaxHold], [quorate.WithoutRenewal] and [quorate.WithWarning].
// The defaults of the last five are the settings of q. New panics if an option
// is wrong or nil, or if every is below 10 ms, above fifty years, or not a
// whole number of milliseconds. Every call reports an invalid name (empty,
// longer than 1024 bytes, or with braces) with [quorate.ErrInvalid].
func New(q *quorate.Quorum, name string, every time.Duration, opts ...quorate.PeriodOption) *Period {
	if every < shortest || every > longest || every%time.Millisecond != 0 {
		panic(fmt.Sprintf("quorate: period.New: every %v: must be a whole number of milliseconds from %v to "+
			"fifty years", every, shortest))
	}
	c := core.CoreOf(q).For(name)
	p := &Period{q: c, every: every}
	set := core.Override(c, "period.New", opts)
	for _, o := range opts {
		if o, ok := o.(own); ok {
			o.set(p)
		}
	}
	p.spec, p.err = c.NewSpec(core.Spec{Name: name, Kind: "period", Weight: 1, Capacity: 1, Set: set})
	if p.err != nil {
		p.spec = &core.Spec{Name: name}
		return p
	}
	p.reg = c.Register(p.spec)
	return p
}

// usable panics for the zero value, and returns what is wrong with the name.
func (p *Period) usable() error {
	if p == nil || p.q == nil {
		panic("quorate: the zero period.Period has no quorum; use period.New")
	}
	return p.err
}

// start returns when the period began that a moment lies in.
func (p *Period) start(t time.Time) time.Time {
	micros := t.UnixMicro()
	return time.UnixMicro(micros - micros%p.every.Microseconds()).UTC()
}

// now returns the start of this period. What Wait has returned for has begun,
// see begun: otherwise the Do that follows would be of the period before, and
// this one might have no run.
func (p *Period) now() time.Time {
	now := p.q.NodesTime()
	if waited := begun(p.waited.Load(), now, p.q.Skew()); waited.After(now) {
		return waited.UTC()
	}
	return p.start(now)
}

// begun returns the period that Wait has returned for last, if it has begun by
// the nodes' time now. A new reading of a node's clock may set that time
// back a little; the period has begun nevertheless. If it is set back by more
// than the skew, the clocks were ahead, and the period has not begun.
func begun(waited int64, now time.Time, skew time.Duration) time.Time {
	start := time.UnixMicro(waited)
	if start.Sub(now) > skew {
		return time.UnixMicro(0)
	}
	return start
}

// Wait waits until a period has begun for which Wait has not yet returned on
// this value. The first call returns at once. With [WithRetry] it also returns
// after a tenth of a period or a minute, whichever is less, so that a failed
// run is repeated. This loop runs f in one process of the fleet in each period:
//
//	for p.Wait(ctx) == nil {
//		if _, err := p.Do(ctx, f); err != nil {
//			log.Print(err)
//		}
//	}
//
// Wait sends no requests: once a majority has answered, this process knows what
// the nodes' clocks show. When ctx ends, Wait fails with an error that matches
// ctx's error. It also fails with [quorate.ErrClosed] or [quorate.ErrInvalid].
func (p *Period) Wait(ctx context.Context) error {
	if err := p.usable(); err != nil {
		return core.WrapError("wait", p.spec.Name, err)
	}
	again := time.Now().Add(min(p.every/10, time.Minute))
	for {
		pause, begun := p.pause(again)
		if err := p.ended(ctx); err != nil || begun {
			return core.WrapError("wait", p.spec.Name, err)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-p.q.Over:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// ended is why Wait waits for no further period.
func (p *Period) ended(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return &fault.Failure{Err: fault.ContextError(ctx)}
	case <-p.q.Over:
		return &fault.Failure{Err: fault.ErrClosed}
	default:
		return nil
	}
}

// pause reports whether a period has begun for which Wait has not returned, or
// how long to wait for that. Of goroutines that share the value one gets each
// period.
func (p *Period) pause(again time.Time) (pause time.Duration, done bool) {
	waited, now := p.waited.Load(), p.q.NodesTime()
	start, last := p.start(now), begun(waited, now, p.q.Skew())
	switch {
	case now.Before(epoch):
		return p.spec.Set.NodeTimeout, false
	case start.After(last) && p.waited.CompareAndSwap(waited, start.UnixMicro()):
		return 0, true
	case p.retry && !time.Now().Before(again):
		return 0, true
	}
	pause = min(last.Add(p.every).Sub(now), longestSleep)
	if p.retry {
		pause = min(pause, time.Until(again))
	}
	return pause, false
}

// longestSleep is how long Wait relies on its timer: that stands still while
// the machine is suspended, and the nodes' clocks may be set.
const longestSleep = time.Minute

// epoch is before what any node's clock shows. What the nodes' time is before
// a node has answered is near 1970.
var epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
