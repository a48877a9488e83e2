package period

import (
	"context"
	"errors"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
)

// Do runs f unless this period has already had its run or a run is in progress.
// It reports whether it called f. If a run is in progress elsewhere, Do returns
// false immediately.
//
// The context passed to f ends when ctx does or when the claim is lost. In the
// latter case, [context.Cause] returns [quorate.ErrLost], and the run of a
// later period may begin. Do returns f's error, joined with ErrLost or
// [quorate.ErrClosed] if the claim ended before f returned. If f panics, so
// does Do, and the run counts as failed.
//
// If f could not be run, Do returns a [*quorate.Error] that matches
//
//   - ctx's error and [quorate.ErrNoQuorum], or [quorate.ErrHeld] if another
//     Redlock client holds the name;
//   - ErrNoQuorum alone if waiting for nodes is pointless;
//   - [quorate.ErrLost] if the claim was lost before f began;
//   - [quorate.ErrClosed] or [quorate.ErrInvalid].
//
// In that case the period may end without a run. With [WithRetry], Do also
// returns ErrNoQuorum or ErrLost if f returned nil but this could not be
// recorded. f may then run again.
//
// The caller's clock may be fast. If there is nothing left to run in this
// period and the next one starts within the skew ([quorate.WithSkew]), Do waits
// for it. So a scheduler that calls Do on the hour by its own clock does not
// miss an hour.
func (p *Period) Do(ctx context.Context, f func(ctx context.Context) error) (ran bool, err error) {
	if f == nil {
		panic("quorate: period.Do: the function is nil")
	}
	if err := p.usable(); err != nil {
		return false, core.WrapError("do", p.spec.Name, err)
	}
	c := call{p, time.Now()}
	t, err := c.claim(ctx)
	if t == nil {
		return false, core.WrapError("do", p.spec.Name, err)
	}
	return c.run(ctx, t, f)
}

// call is one call of Do.
type call struct {
	*Period
	at time.Time // when it came, by this process's clock
}

// claim returns the claim once it is held, or nil: an error, or there is
// nothing to run. Most calls end with the first look, without a claim.
//
// Note: It would be incorrect to try the claim and give up if another claim
// holds the name. The other one may only have looked at the record just before
// this period began, and then the period would have no run.
func (c *call) claim(ctx context.Context) (*core.Lease, error) {
	for early := true; ; early = false {
		rec, err := c.reg.Read(ctx)
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, fault.ErrClosed) {
				return nil, err
			}
			break // the nodes cannot be asked, and the claim waits for them
		}
		last, err := read(rec)
		if err != nil {
			return nil, err
		}
		if !c.needless(rec) {
			break
		}
		if !early || last.Left > 0 || !c.awaitNext(ctx) {
			return nil, c.ended(ctx)
		}
	}
	t, _, err := c.reg.TurnUnless(ctx, c.needless)
	return t, err
}

// awaitNext waits for the next period if it begins within the skew, and
// reports whether it has begun.
func (c *call) awaitNext(ctx context.Context) bool {
	next := c.cal.next(c.q.NodesTime())
	for {
		early := next.Sub(c.q.NodesTime())
		if next.IsZero() || early > c.q.Skew() || c.ended(ctx) != nil {
			return false
		}
		if early <= 0 {
			break
		}
		c.sleep(ctx, early)
	}
	for { // it has begun, also if a clock is set back a little: see begun
		waited := c.waited.Load()
		if waited >= next.UnixMicro() || c.waited.CompareAndSwap(waited, next.UnixMicro()) {
			return true
		}
	}
}

// needless reports whether what is recorded leaves nothing to run now. What
// cannot be read is for the claim to tell.
func (c *call) needless(rec core.Record) bool {
	last, err := read(rec)
	return err == nil && (last.Left > 0 || !c.due(last, c.now()))
}

// scope is what f's context has of its run.
type scope struct {
	lease *core.Lease
	start time.Time
}

type scopeKey struct{}

// Lease returns the hold under which f runs. ctx is the context that
// [Period.Do] passed to f; for any other context Lease returns nil. Use the
// token of the hold to fence what f writes to.
func Lease(ctx context.Context) quorate.Lease {
	if s, ok := ctx.Value(scopeKey{}).(scope); ok {
		return s.lease
	}
	return nil
}

// Start returns the start of the period that f runs for, in UTC. ctx is the
// context that [Period.Do] passed to f; for any other context, Start returns
// the zero time.
func Start(ctx context.Context) time.Time {
	s, _ := ctx.Value(scopeKey{}).(scope)
	return s.start
}

// run runs f under the claim, unless the period has already had its run, and
// releases the claim no matter how that ends.
//
// Invariant: a run begins only after a majority has recorded its period, under
// a claim whose Open found an earlier one. A claim that was lost in
// the meantime cannot overwrite a later record, and a later claim finds the
// earlier record.
func (c *call) run(ctx context.Context, t *core.Lease,
	f func(context.Context) error) (ran bool, err error) {
	inner, stop := t.Derive(ctx)
	defer func() {
		stop()
		if lost := t.Release(); ran && lost != nil {
			err = errors.Join(err, core.WrapError("do", c.spec.Name, lost))
		}
	}()
	now, err := c.begin(inner, t)
	if err == nil && inner.Err() != nil {
		err = &fault.Failure{Err: fault.ContextError(inner)}
	}
	if err != nil {
		return false, core.WrapError("do", c.spec.Name, before(ctx, t, err))
	}
	if now.State != Began {
		return false, nil
	}
	ran = true // also if f does not return
	if err = f(context.WithValue(inner, scopeKey{}, scope{t, now.Start})); err != nil {
		now.State = Failed
	} else {
		now.State = Done
	}
	return ran, errors.Join(err, c.end(ctx, t, now))
}

// begin records that this period's run begins, unless it has had one: then the
// run that it returns has no state.
func (c *call) begin(ctx context.Context, t *core.Lease) (Run, error) {
	rec, err := c.reg.Open(ctx, t.Hold())
	if err != nil {
		return Run{}, err
	}
	last, err := read(rec)
	now := Run{Start: c.now(), Token: t.Token(), State: Began}
	if err != nil || !c.due(last, now.Start) {
		return Run{}, err
	}
	return now, c.reg.Put(ctx, t.Hold(), 0, now.encode(), 0)
}

// due reports whether a period has had no run that counts, and may have one.
//
// Invariant: recorded periods rise, so none comes twice. Starts are compared,
// not numbers of periods: another client may have another length.
func (c *call) due(last Run, start time.Time) bool {
	switch {
	case start.IsZero(): // a schedule whose first time is to come
		return false
	case start.Equal(last.Start):
		return c.retry && last.State != Done
	}
	return start.After(last.Start) && !c.missed(last, start)
}

// missed reports whether the call came too late for a period, and nothing asks
// for its run all the same. How long the call has waited for nodes does not
// count.
func (c *call) missed(last Run, start time.Time) bool {
	if !c.onTime || c.catch && !last.Start.IsZero() {
		return false
	}
	came := c.q.NodesTime().Add(-time.Since(c.at))
	return came.Sub(start) > latest
}

// before translates a failure that happened under the claim, before f was
// called. The context in use also ends with the claim.
func before(ctx context.Context, t *core.Lease, err error) error {
	if lost := t.Lost(); lost != nil && ctx.Err() == nil {
		return &fault.Failure{Err: lost}
	}
	return err
}

// end records how a run has ended, also when ctx has. Only a retry rests on
// that: without one it is for [Period.Last].
func (p *Period) end(ctx context.Context, t *core.Lease, now Run) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.q.Rounds(p.spec.Set, 2))
	defer cancel()
	err := p.reg.Put(ctx, t.Hold(), 1, now.encode(), 0)
	if err == nil || !p.retry || now.State == Failed {
		return nil
	}
	return core.WrapError("record", p.spec.Name, fault.Uncut(err))
}
