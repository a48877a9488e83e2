package period

import (
	"context"
	"errors"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
)

// Do runs f unless this period has had its run or a run is in progress. It
// reports whether it called f. If a run is in progress elsewhere, Do returns
// false at once.
//
// The context of f ends when ctx ends or when the claim is lost. If the claim
// is lost, [context.Cause] returns [quorate.ErrLost], and the run of a later
// period may begin. Do returns f's error, joined with ErrLost or
// [quorate.ErrClosed] if the claim ended before f returned. If f panics, so
// does Do, and the run has failed.
//
// If f has not run, Do fails with a [*quorate.Error] that matches
//
//   - ctx's error and [quorate.ErrNoQuorum], or [quorate.ErrHeld] if another
//     Redlock client holds the name;
//   - ErrNoQuorum alone if waiting for nodes is pointless;
//   - [quorate.ErrLost] if the claim was lost before f began;
//   - [quorate.ErrClosed] or [quorate.ErrInvalid].
//
// In that case the period may have no run. With [WithRetry], Do also fails with
// ErrNoQuorum or ErrLost if f has returned nil but that could not be recorded.
// f may then run again.
//
// A call just before the hour counts for the previous hour. So a scheduler that
// calls Do at each full hour by its own clock may find that the current hour
// has already had its run, and then miss the next hour. Call Do more often, or
// use [Period.Wait].
func (p *Period) Do(ctx context.Context, f func(ctx context.Context) error) (ran bool, err error) {
	if f == nil {
		panic("quorate: period.Do: the function is nil")
	}
	if err := p.usable(); err != nil {
		return false, core.WrapError("do", p.spec.Name, err)
	}
	t, err := p.claim(ctx)
	if t == nil {
		return false, core.WrapError("do", p.spec.Name, err)
	}
	return p.run(ctx, t, f)
}

// claim returns the claim once it is held, or nil: an error, or there is
// nothing to run. Most calls end with the first look, without a claim.
//
// Note: Here is an incorrect version: a try, which gives up when another claim
// holds the name. That may be one that has only looked, a moment before this
// period began, so the period would have no run.
func (p *Period) claim(ctx context.Context) (*core.Lease, error) {
	rec, err := p.reg.Read(ctx)
	switch {
	case err == nil:
		if _, err = read(rec); err != nil || p.needless(rec) {
			return nil, err
		}
	case ctx.Err() != nil || errors.Is(err, fault.ErrClosed):
		return nil, err
	} // where the nodes cannot be asked, the claim waits for them
	t, _, err := p.reg.TurnUnless(ctx, p.needless)
	return t, err
}

// needless reports whether what is recorded leaves nothing to run now. What
// cannot be read is for the claim to tell.
func (p *Period) needless(rec core.Record) bool {
	last, err := read(rec)
	return err == nil && (last.Left > 0 || !p.due(last, p.now()))
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

// Start returns the start, in UTC, of the period that f runs for. ctx is the
// context that [Period.Do] passed to f; for any other context Start returns the
// zero time.
func Start(ctx context.Context) time.Time {
	s, _ := ctx.Value(scopeKey{}).(scope)
	return s.start
}

// run runs f under the claim, unless the period has had its run, and releases
// the claim however that ends.
//
// Invariant: a run begins only after a majority has recorded its period, under
// a claim whose Open found an earlier one. A claim that was lost in
// the meantime cannot overwrite a later record, and a later claim finds the
// earlier record.
func (p *Period) run(ctx context.Context, t *core.Lease,
	f func(context.Context) error) (ran bool, err error) {
	inner, stop := t.Derive(ctx)
	defer func() {
		stop()
		if lost := t.Release(); ran && lost != nil {
			err = errors.Join(err, core.WrapError("do", p.spec.Name, lost))
		}
	}()
	now, err := p.begin(inner, t)
	if err == nil && inner.Err() != nil {
		err = &fault.Failure{Err: fault.ContextError(inner)}
	}
	if err != nil {
		return false, core.WrapError("do", p.spec.Name, before(ctx, t, err))
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
	return ran, errors.Join(err, p.end(ctx, t, now))
}

// begin records that this period's run begins, unless it has had one: then the
// run that it returns has no state.
func (p *Period) begin(ctx context.Context, t *core.Lease) (Run, error) {
	rec, err := p.reg.Open(ctx, t.Hold())
	if err != nil {
		return Run{}, err
	}
	last, err := read(rec)
	now := Run{Start: p.now(), Token: t.Token(), State: Began}
	if err != nil || !p.due(last, now.Start) {
		return Run{}, err
	}
	return now, p.reg.Put(ctx, t.Hold(), 0, now.encode(), 0)
}

// due reports whether a period has had no run that counts.
//
// Invariant: recorded periods rise, so none comes twice. Starts are compared,
// not numbers of periods: another client may have another length.
func (p *Period) due(last Run, start time.Time) bool {
	return start.After(last.Start) || p.retry && start.Equal(last.Start) && last.State != Done
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
