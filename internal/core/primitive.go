package core

// This file owns what all primitives have: how they get to the core, what they
// ask the nodes for, their options, and calls that are made again.
//
// Invariant: all claims of one value share one process.Name, because the clock
// of its tickets is there: a claim of this process must be above the claims
// that it has seen.

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime/pprof"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
)

// Spec is what a primitive asks for; one Spec serves many attempts. It is safe
// for concurrent use: NewSpec sets its fields.
type Spec struct {
	Name       string
	Kind       string // of the primitive, for the tracer
	Weight     uint64
	Capacity   uint64
	Counting   bool // a semaphore: votes alone do not suffice
	Notify     bool // push to the holder when a claim begins to wait
	ShortHold  bool // often given back at once: see lease.Fanout
	BoundLater bool // it is renewed without a bound until Hold.Bound
	Set        *setup.Settings
	shared     *process.Name // what all claims at the name share
	succession bool          // it is the register that decides which configuration follows
	side       string        // of the name: a lock, queue and record of its own, beside those of the name; empty: the name itself
}

// keys are the keys of a spec's name, with the marker of the configuration that
// this client counts on.
// Invariant: the Quorum says which configuration that is, whatever settings the
// spec has.
func (q *Quorum) keys(s *Spec) script.Keys {
	return script.NewKeysBeside(s.Set.Prefix, s.Name, s.side).At(q.Members.Home())
}

// command appends a request. Invariant: the configuration that it names and the
// settings that it has are read at one moment. A node goes by these.
func (q *Quorum) command(dst []byte, s *Spec, t *protocol.Terms, r protocol.Request) []byte {
	n := q.Members.Named.Load()
	k := script.NewKeysBeside(s.Set.Prefix, s.Name, s.side).At(n.Home)
	return script.AppendCommand(dst, k, t, q.Channel, n.Guard, n.Retention, r)
}

// WithWeight returns a copy that asks for another weight.
func (s *Spec) WithWeight(weight uint64) *Spec {
	c := *s
	c.Weight = weight
	return &c
}

// quiet reports whether no other claim has been met at the name of late.
func (s *Spec) quiet() bool { return !s.shared.Contended() }

// NewSpec fails for a name that cannot be used, before any node is asked.
func (q *Quorum) NewSpec(s Spec) (*Spec, error) {
	if err := setup.CheckName(s.Name); err != nil {
		return nil, err
	}
	made := &struct { // the two are used together
		spec Spec
		name process.Name
	}{spec: s}
	made.name.Name, made.name.Counting = s.Name, s.Counting
	made.spec.shared = &made.name
	return &made.spec, nil
}

// The root package sets these: primitives get from a *quorate.Quorum to the
// core, and from a Failure to a *quorate.Error, without the core knowing the
// exported types or the exported types showing the core.
var (
	// CoreOf returns the core of a *quorate.Quorum.
	CoreOf func(quorum any) *Quorum
	// WrapError makes the exported error of a failed operation.
	WrapError = func(_, _ string, err error) error { return err }
	// Option makes a quorate.Option that users cannot make, for tests.
	Option func(setup.Setting) any
)

// NoCopy has go vet report copies of a primitive that has it as a field. A copy
// would not know of the holds of the original.
type NoCopy struct{}

// Lock and Unlock are what go vet looks for.
func (*NoCopy) Lock() {}

func (*NoCopy) Unlock() {}

// Override returns the Quorum's settings as a primitive's options change them.
// Without options it returns the Quorum's own, which must not be changed. It
// panics when an option is wrong or contradicts another: a programmer's error.
// The copy is made once for each value of a primitive, so an option costs
// nothing at a Lock.
func Override[O any](q *Quorum, primitive string, opts []O) *setup.Settings {
	if len(opts) == 0 {
		return &q.Set
	}
	set := q.Set
	err := setup.Change(&set, opts)
	if err == nil {
		err = set.Check()
	}
	if err != nil {
		panic("quorate: " + primitive + ": " + err.Error())
	}
	return &set
}

// Retry paces attempts after one whose claim was lost, or superseded by a later
// run, before it was admitted. The next attempt is above what overtook it, so
// one retry is mostly enough.
type Retry struct{ n int }

const (
	// Longer than a round trip in one region: the run that was in the way is
	// mostly over.
	firstRetry = 5 * time.Millisecond
	// The ninth failure in a row reaches it, and is the first that is logged.
	lastRetry = time.Second
)

// Wait waits before the next attempt: twice as long each time, and not as long
// as others. The pauses are random between a half and the whole.
func (r *Retry) Wait(ctx context.Context, q *Quorum, name string, why error) {
	pause := min(firstRetry<<min(r.n, 16), lastRetry)
	if r.n++; pause == lastRetry {
		q.Set.Logger.Warn("quorate: a claim was lost again before it was admitted; see Check for clocks that are wrong", "name", name, "times", r.n, "error", why)
	}
	pauseFor(ctx, q, pause/2+rand.N(pause/2))
}

// pauseFor waits for d, but not longer than ctx lasts, or until Close.
func pauseFor(ctx context.Context, q *Quorum, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-q.Over:
	}
}

// TryAgain logs why a call that keeps trying has failed, and waits before it is
// tried again.
func TryAgain(ctx context.Context, q *Quorum, s *Spec, what string, err error) {
	s.Set.Logger.Error("quorate: "+what+" keeps trying", "name", s.Name, "error", err)
	pauseFor(ctx, q, time.Second)
}

// Must calls try until it succeeds. It panics where that cannot be, and does
// not return when the Quorum is closed.
func Must(q *Quorum, s *Spec, what string, try func() error) {
	for {
		err := try()
		switch {
		case err == nil:
			return
		case errors.Is(err, fault.ErrClosed):
			s.Set.Logger.Error("quorate: a call that cannot return an error waits forever; end its goroutine before Close, or use the variant with a context", "error", err)
			select {}
		case fault.Misuse(err):
			panic(err)
		}
		TryAgain(context.Background(), q, s, what, err)
	}
}

// Labeled runs what a primitive's Do is given, with labels for profiles.
func Labeled(ctx context.Context, kind, name string, f func(ctx context.Context) error) (err error) {
	pprof.Do(ctx, pprof.Labels("quorate_kind", kind, "quorate_name", name), func(ctx context.Context) { err = f(ctx) })
	return err
}
