package leader

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
)

// Callbacks are the functions that [Election.Run] calls. OnNewLeader is called
// from a separate goroutine.
type Callbacks struct {
	// OnStartedLeading does the leader's work. It is required. Its context ends
	// when Run's context does, when TransferTo is called, or when the term is lost,
	// no later than a lock's context would. If the term is lost, [context.Cause]
	// returns [quorate.ErrLost] or [quorate.ErrClosed]. The token of lease is the
	// term. Run never gives up the leadership before OnStartedLeading has returned.
	OnStartedLeading func(ctx context.Context, lease quorate.Lease)

	// OnStoppedLeading is called once for each OnStartedLeading, after
	// OnStartedLeading has returned or panicked and the leadership has been given
	// up. err is nil if this participant resigned; otherwise it matches
	// [quorate.ErrLost] or [quorate.ErrClosed]. To react to a loss while
	// OnStartedLeading is still running, use [context.AfterFunc] with its context.
	OnStoppedLeading func(err error)

	// OnNewLeader is called for each new term that this participant sees,
	// including its own. Like [Election.Observe], it may skip terms that are
	// already over. While Run is running, the calls are made one after another.
	OnNewLeader func(Leader)
}

// Run campaigns and calls OnStartedLeading when this participant becomes the
// leader. When the term ends, because it was lost or because OnStartedLeading
// has returned, Run goes to the back of the queue. It keeps going, even through
// outages, until ctx is done or the Quorum is closed. If nodes refuse
// permanently, Run logs the error and keeps trying. If OnStartedLeading returns
// immediately and nobody else is waiting, Run calls it again right away.
//
// Run returns an error that matches ctx's error when ctx is done, or
// [quorate.ErrClosed] when the Quorum is closed. It returns
// [quorate.ErrInvalid] if OnStartedLeading is nil, if the name, the ID or the
// value is invalid, or if this participant is already running, campaigning or
// leading. With [WithOneTerm], it returns the error that was passed to
// OnStoppedLeading.
//
// By the time Run returns or panics, all callbacks have returned and the
// leadership has been given up. Run does not wait for the nodes to confirm
// that. If it names who is to lead next ([WithPriority], [Election.TransferTo]),
// it first reads the queue and records the choice, which takes two node timeouts
// at most.
func (e *Election) Run(ctx context.Context, cb Callbacks) error {
	e.usable()
	return core.WrapError("run", e.name, e.run(ctx, cb))
}

func (e *Election) run(ctx context.Context, cb Callbacks) error {
	if e.err != nil {
		return e.err
	}
	if cb.OnStartedLeading == nil {
		return fmt.Errorf("%w: OnStartedLeading is nil", fault.ErrInvalid)
	}
	if err := e.startRun(); err != nil {
		return err
	}
	defer e.endRun()
	ctx, cancel := context.WithCancelCause(ctx)
	defer e.announce(ctx, cancel, cb.OnNewLeader)()
	again := core.Retry{}
	for {
		if ctx.Err() != nil {
			return &fault.Failure{Err: fault.ContextError(ctx)}
		}
		t, err := e.win(ctx, e.set.value)
		if errors.Is(err, fault.ErrLost) {
			again.Wait(ctx, e.q, e.name, err)
		}
		if err == nil {
			again = core.Retry{}
			if err = e.lead(ctx, t, cb); e.set.oneTerm {
				return err
			}
		}
		switch {
		case errors.Is(err, fault.ErrClosed), fault.Misuse(err):
			return err
		case err == nil, errors.Is(err, fault.ErrLost), ctx.Err() != nil:
			continue
		}
		core.LogAndPause(ctx, e.q, e.spec, "leader", core.WrapError("run", e.name, err))
	}
}

// startRun gives Run the election for itself.
func (e *Election) startRun() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.running:
		return fmt.Errorf("%w: Run is already running; create another Election for another participant",
			fault.ErrInvalid)
	case e.term != nil && e.term.lease.Lost() == nil:
		return fmt.Errorf("%w: Campaign has already won the election; call Resign before Run", fault.ErrInvalid)
	}
	select {
	case e.turn <- struct{}{}:
	default:
		return fmt.Errorf("%w: Campaign is still running; cancel its context before Run", fault.ErrInvalid)
	}
	e.running, e.term = true, nil
	return nil
}

// endRun undoes startRun. The Election has no term by then: see lead.
func (e *Election) endRun() {
	e.mu.Lock()
	e.running = false
	e.mu.Unlock()
	<-e.turn
}

// lead is one term under Run. What follows the callback is deferred, so that it
// happens also when that panics.
func (e *Election) lead(ctx context.Context, t *term, cb Callbacks) (err error) {
	inner, stop := t.lease.Derive(ctx)
	t.drain = stop
	e.become(t)
	defer func() {
		if cb.OnStoppedLeading != nil {
			cb.OnStoppedLeading(core.WrapError("lead", e.name, err))
		}
	}()
	defer func() {
		stop()
		e.become(nil)
		err = e.handOver(context.WithoutCancel(ctx), t)
	}()
	cb.OnStartedLeading(inner, t.lease)
	return nil
}

// announce calls f for each new term until ctx ends. The function that it
// returns ends ctx, waits for the last call, and panics if f has.
func (e *Election) announce(ctx context.Context, cancel context.CancelCauseFunc, f func(Leader)) func() {
	var all sync.WaitGroup
	var panicked any
	if f != nil {
		call := func(l Leader) {
			defer func() {
				// A panic of this goroutine would end the process at once, the
				// leadership still held. So it ends Run first, and then is
				// Run's. It is the last call: Observe ends with its context.
				if panicked = recover(); panicked != nil {
					cancel(errors.New("OnNewLeader panicked"))
				}
			}()
			f(l)
		}
		all.Go(func() {
			var last uint64
			for l, err := range e.Observe(ctx) {
				if err == nil && l.Term != last {
					last = l.Term
					var one sync.WaitGroup
					one.Go(func() { call(l) }) // f may call runtime.Goexit
					one.Wait()
				}
			}
		})
	}
	return func() {
		cancel(nil)
		all.Wait()
		if panicked != nil {
			panic(panicked)
		}
	}
}

// Campaign waits its turn until this participant is the leader, and then until
// a majority of the nodes has recorded that along with the value.
// [Election.Lease] then returns the term. If this participant is already the
// leader, Campaign only replaces the value.
//
// Cancelling ctx ends the waiting, not the term. Campaign returns
// [quorate.ErrInvalid] while [Election.Run] is running, and if the value is
// longer than [MaxValue] or not UTF-8.
func (e *Election) Campaign(ctx context.Context, value string) error {
	e.usable()
	return core.WrapError("campaign", e.name, e.campaign(ctx, value))
}

func (e *Election) campaign(ctx context.Context, value string) error {
	if err := e.check(value); err != nil {
		return err
	}
	if err := e.notRunning(); err != nil && ctx.Err() == nil {
		return err
	}
	if err := core.Enter(ctx, e.q, e.turn, func() bool { return false }); err != nil {
		return err
	}
	defer func() { <-e.turn }()
	if t := e.current(); t != nil && t.lease.Lost() == nil {
		err := e.write(ctx, t, value)
		// The context may belong to another hold, and end when that hold is lost.
		if ctx.Err() != nil || !errors.Is(err, fault.ErrLost) && !errors.Is(err, fault.ErrNotHeld) {
			return err
		}
		if e.take(t) {
			_ = e.end(ctx, t, nil)
		}
	}
	e.become(nil)
	for again := (core.Retry{}); ; {
		t, err := e.win(ctx, value)
		switch {
		case err == nil:
			e.become(t)
			return nil
		case !errors.Is(err, fault.ErrLost), ctx.Err() != nil:
			return err
		}
		again.Wait(ctx, e.q, e.name, err)
	}
}

// Proclaim replaces the value while this participant is the leader, and waits
// until a majority of the nodes has recorded it. The term stays the same. If
// ctx is done before enough nodes have confirmed, Proclaim returns ctx's error
// joined with [quorate.ErrNoQuorum], and observers may see either value until
// the next Proclaim.
func (e *Election) Proclaim(ctx context.Context, value string) error {
	e.usable()
	return core.WrapError("proclaim", e.name, e.proclaim(ctx, value))
}

func (e *Election) proclaim(ctx context.Context, value string) error {
	if err := e.check(value); err != nil {
		return err
	}
	t := e.current()
	if t == nil {
		return &fault.Failure{Err: fault.ErrNotHeld}
	}
	return e.write(ctx, t, value)
}

// Resign ends the term and waits until a majority of the nodes has confirmed
// that. The next in line does not have to wait for the confirmation: each node
// notifies it as soon as the release arrives.
//
// Resign returns [quorate.ErrInvalid] while [Election.Run] is running. It
// returns [quorate.ErrNoQuorum] if too few nodes confirmed within the node
// timeout or before ctx was done, but even then the participant has resigned.
// With [WithPriority] and a waiting candidate, Resign first reads the queue and
// records who is to lead next, which takes two node timeouts at most, whether or
// not ctx is done.
func (e *Election) Resign(ctx context.Context) error {
	e.usable()
	return core.WrapError("resign", e.name, e.resign(ctx))
}

func (e *Election) resign(ctx context.Context) error {
	if e.err != nil {
		return e.err
	}
	lasting := context.WithoutCancel(ctx) // panics for a nil ctx, so it must come before the term is taken
	t, err := e.takeTerm()
	if err != nil {
		return err
	}
	if err := e.handOver(lasting, t); err != nil {
		return err
	}
	return t.lease.Hold().Released(ctx)
}

// takeTerm returns the term and leaves the Election without one. It fails while
// Run is running, because the term is Run's then.
func (e *Election) takeTerm() (*term, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running {
		return nil, errRunning
	}
	t := e.term
	if e.term = nil; t == nil {
		return nil, &fault.Failure{Err: fault.ErrNotHeld}
	}
	return t, nil
}
