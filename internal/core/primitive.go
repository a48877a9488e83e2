package core

// What primitives use besides claims and records: access to the core, options,
// repeated calls, and the number of permits of a semaphore. The number has its
// own record next to the record of the semaphore, and is written under its own
// lock: a full semaphore admits no claim, so a Resize under a claim of the
// semaphore would wait for the holders. The nodes read the number with every
// request of the semaphore's claims, and return it with every answer.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/pprof"
	"strconv"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/flow"
	"github.com/quorate/quorate/internal/peers"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/setup"
)

// The root package sets these. Through them a primitive gets from a
// *quorate.Quorum to the core, and from a Failure to a *quorate.Error, although
// the core does not know the exported types and the exported types do not show
// the core.
var (
	// CoreOf returns the core of a *quorate.Quorum.
	CoreOf func(quorum any) *Quorum
	// Option makes a quorate.Option that users cannot make, for tests.
	Option func(setup.Setting) any
)

// NoCopy makes go vet report copies of a primitive that has it as a field. A
// copy would not know of the holds of the original.
type NoCopy struct{}

// go vet looks for Lock and Unlock.
func (*NoCopy) Lock() {}

func (*NoCopy) Unlock() {}

// Override returns the settings of the Quorum, changed by the options of a
// primitive. Without options it returns the Quorum's own settings, which must
// not be changed. It panics if an option is wrong or contradicts another one,
// which is a programming error.
func Override[O any](q *Quorum, constructor string, opts []O) *setup.Settings {
	if len(opts) == 0 {
		return &q.Set
	}
	set := q.Set
	err := setup.Apply(&set, opts)
	if err == nil {
		err = set.Check()
	}
	if err != nil {
		panic("quorate: " + constructor + ": " + err.Error())
	}
	return &set
}

// Retry paces the attempts of a call whose claim was lost, or superseded by a
// later run, before it was admitted. The next attempt gets a higher ticket than
// the run that superseded it, so one retry is usually enough.
type Retry struct{ n int }

const (
	// Longer than a round trip within a region, so the run that was in the way
	// has usually ended.
	firstRetry = 5 * time.Millisecond
	// Reached at the ninth failure in a row, which is the first one that is
	// logged.
	lastRetry = time.Second
)

// Wait waits before the next attempt, twice as long each time. The pause is a
// random time between half of that and all of it, so that clients do not retry
// in step.
func (r *Retry) Wait(ctx context.Context, q *Quorum, name string, why error) {
	pause := min(firstRetry<<min(r.n, 16), lastRetry)
	if r.n++; pause == lastRetry {
		q.Set.Logger.Warn("quorate: a waiting call keeps losing its place in the queue; compare the nodes' clocks "+
			"with quorate check", "name", name, "times", r.n, "error", why)
	}
	pauseFor(ctx, q, pause/2+rand.N(pause/2))
}

// pauseFor waits for d, or until ctx ends or the Quorum closes.
func pauseFor(ctx context.Context, q *Quorum, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-q.Over:
	}
}

// Enter waits for a turn that only one goroutine of this process has at a time.
// If ctx ends, it calls held to ask whether that goroutine already holds what
// the caller wants.
func Enter(ctx context.Context, q *Quorum, turn chan<- struct{}, held func() bool) error {
	if ctx.Err() != nil {
		return &fault.Failure{Err: fault.ContextError(ctx)}
	}
	select {
	case turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		if held() {
			return fault.CutShort(fault.ErrHeld, ctx)
		}
		return q.CutShort(ctx)
	case <-q.Over:
		return &fault.Failure{Err: fault.ErrClosed}
	}
}

// LogAndPause is for the loop of a caller that tries until it succeeds. It logs
// why a try has failed and waits a second, or until ctx ends or the Quorum
// closes. The caller then tries again. what names the call in the log.
func LogAndPause(ctx context.Context, q *Quorum, s *Spec, what string, err error) {
	s.Set.Logger.Error("quorate: "+what+" keeps trying", "name", s.Name, "error", err)
	pauseFor(ctx, q, time.Second)
}

// Must calls try until it succeeds. It panics if it can never succeed, and does
// not return if the Quorum is closed.
func Must(q *Quorum, s *Spec, what string, try func() error) {
	for {
		err := try()
		switch {
		case err == nil:
			return
		case errors.Is(err, fault.ErrClosed):
			s.Set.Logger.Error("quorate: a call that cannot return an error waits forever; end its goroutine before "+
				"Close, or use the variant with a context", "error", err)
			select {}
		case fault.Misuse(err):
			panic(err)
		}
		LogAndPause(context.Background(), q, s, what, err)
	}
}

// Labeled runs the function that a primitive's Do was given, with pprof labels.
func Labeled(ctx context.Context, kind, name string, f func(ctx context.Context) error) (err error) {
	pprof.Do(ctx, pprof.Labels("quorate_kind", kind, "quorate_name", name),
		func(ctx context.Context) { err = f(ctx) })
	return err
}

// Resize changes how many permits a semaphore has, for all clients. It returns
// when a majority has the number. From then on every quorum of votes contains a
// node that knows the number, so it applies to every claim that is admitted
// later. Repairs bring it to nodes that have missed it. A smaller number does
// not end claims that already hold: new claims wait until enough of them have
// left.
func Resize(ctx context.Context, q *Quorum, s *Spec, n uint64) error {
	r := number(&q.claims, s.Name, s.Set)
	var h Hold
	var err error
	for again := (Retry{}); ; again.Wait(ctx, q, s.Name, err) {
		if h, err = q.Acquire(ctx, r.spec, false, nil); err != nil {
			return err
		}
		if _, err = r.Open(ctx, h); err == nil {
			break
		}
		// A later run has superseded this one. The next claim gets a higher
		// ticket.
		if h.Release(); !errors.Is(err, fault.ErrLost) {
			return err
		}
	}
	defer h.Release()
	if err := r.Put(ctx, h, 0, strconv.AppendUint(nil, n, 10), 0); err != nil {
		return err
	}
	// Make every node admit the claims that fit now. Any request of the name
	// does that; without one the waiters would learn of a larger number only
	// with their next beat. A beat with an id that has no claim changes nothing
	// else.
	t := protocol.Terms{ID: peers.NewID(), Weight: 1, Capacity: s.Capacity, Counting: true, TTL: s.Set.TTL}
	for _, n := range q.Nodes.All() {
		n.Send(&flow.Request{Command: q.command(nil, s, &t, protocol.Request{Op: protocol.OpBeat})})
	}
	return nil
}

// Permits asks the nodes how many permits a semaphore has: as set by the last
// Resize, or as declared if there was none. resized reports which.
func Permits(ctx context.Context, q *Quorum, s *Spec) (n uint64, resized bool, err error) {
	rec, err := number(&q.claims, s.Name, s.Set).Read(ctx)
	if err == nil && rec.Undecided {
		err = &fault.Failure{Err: fmt.Errorf("%w: another Resize is running", fault.ErrHeld)}
	}
	if err != nil || !rec.Exists {
		return s.Capacity, false, err
	}
	n, err = strconv.ParseUint(string(rec.Value), 10, 53)
	return n, true, err
}
