// Package once is sync.Once across processes. One process runs the work, and
// all others wait until it is done.
//
//	o := once.New(q, "migrate to v7")
//	err := o.DoContext(ctx, migrate)
//
// A majority of the nodes of a [quorate.Quorum] records that the work is done.
//
// # Errors
//
// Methods that take a context return a [*quorate.Error]. Check for its kind
// with [errors.Is]:
//
//   - [quorate.ErrHeld]: another process is running the work, or another
//     Redlock client holds the name;
//   - [quorate.ErrNoQuorum]: too few nodes answered. A waiting call returns it
//     early if so many nodes refuse permanently that waiting is pointless;
//   - [quorate.ErrLost]: the claim was lost while the work was running;
//   - [ErrNotRecorded]: the function returned, but recording that failed;
//   - [ErrNotDurable]: see [WithDurable]; the function has not been run;
//   - [quorate.ErrClosed]: the Quorum has been closed;
//   - [quorate.ErrInvalid]: the name is empty, longer than 1024 bytes or
//     contains braces, or another kind of primitive uses it.
//
// If the context ends first, the error matches the context's error and also
// ErrHeld or ErrNoQuorum, depending on what the call was waiting for.
//
// All types and functions in this package are safe for concurrent use.
package once

import (
	"context"
	"errors"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
)

// A Once is a piece of work that is done once across all processes. It must be
// created with [New] and must not be copied.
//
// The work is done once its function has returned without an error and a
// majority of the nodes has recorded that. They keep the record forever, unless
// [KeepFor] says otherwise. While the function runs, its process holds a claim
// on the name, like the holder of a mutex. If the process dies, the next
// process runs the function once the lease has expired.
//
// Two runs are never both recorded, and no call returns before one is. But the
// function may start more than once: a process can die in the middle of the
// function, or after it but before the result is recorded, and other processes
// cannot tell the difference. Write the function so that it is safe to run
// again, or fence its writes with the token of [Lease].
//
// If goroutines share a value, one of them asks the nodes and the others wait
// for it. Once the work is known to be done, a call costs one atomic load.
//
// In the terminology of the Go memory model, the return from f "synchronizes
// before" the return from any call of [Once.Do] on the same value. Processes
// share no memory.
//
// Do not use the same name for a mutex, because both use the same claim.
type Once struct {
	_ core.NoCopy
	runner
}

// New returns the Once with the given name. All values with the same name share
// the work, across all processes.
//
// Options: [KeepFor], [WithDurable], [quorate.WithTTL],
// [quorate.WithNodeTimeout], [quorate.WithMaxHold], [quorate.WithoutRenewal]
// and [quorate.WithWarning]. The last five default to the settings of q. New
// panics if an option is invalid or nil. If the name is invalid, every call
// returns an error.
func New(q *quorate.Quorum, name string, opts ...quorate.OnceOption) *Once {
	c := core.CoreOf(q).For(name)
	o := &Once{runner: runner{q: c, set: apply(c, opts), turn: make(chan struct{}, 1)}}
	o.spec, o.err = c.NewSpec(core.Spec{Name: name, Kind: "once", Weight: 1, Capacity: 1, Set: o.set.Settings})
	if o.err != nil {
		o.spec = &core.Spec{Name: name}
		return o
	}
	o.reg = c.Register(o.spec)
	return o
}

// Do runs f unless the work is already done, and returns when it is done, like
// [sync.Once.Do]. It waits for its turn, even through outages, and once f has
// returned it waits until that is recorded. If nodes refuse permanently, Do
// logs the error and keeps trying, but does not run f again because of it. Do
// panics if waiting is pointless, because the name is invalid or the nodes keep
// too little on disk for [WithDurable]. If the Quorum is closed, Do never
// returns; see [quorate.Quorum.Close].
//
// If f panics or calls [runtime.Goexit], so does Do, and the work does not
// count as done: the next caller runs it. (sync.Once counts a panic as done.
// But here the next caller may be on another machine, and would carry on as if
// the work had been done.)
//
// f must not call Do on this value or on another one with the same name,
// because it would wait for itself.
func (o *Once) Do(f func()) {
	// Note: Here is an incorrect implementation, of which sync.Once warns too:
	//
	//	if m.TryLock() { f(); record() }
	//
	// A caller that is not the first would return before f has.
	if c := o.done.Load(); c == nil || c.expires {
		o.doSlow(f)
	}
}

func (o *Once) doSlow(f func()) {
	if f == nil {
		panic("quorate: once.Do: the function is nil")
	}
	o.usable()
	o.must("do", func() error {
		_, err := o.do(context.Background(), work{insist: true, f: func(context.Context) ([][]byte, error) {
			f()
			return nil, nil
		}})
		return err
	})
}

// DoContext runs f unless the work is already done, and returns nil when it is
// done. If f returns an error, DoContext returns it too, and the work does not
// count as done: the next waiter runs it.
//
// The context passed to f ends when ctx does or when the claim is lost. In the
// latter case, [context.Cause] returns [quorate.ErrLost], and another process
// may already have started the work. After f has returned nil, DoContext tries
// for at least one node timeout to record that, even if ctx is done.
//
// f must not call DoContext on this value or on another one with the same name,
// because it would wait for itself until ctx is done.
func (o *Once) DoContext(ctx context.Context, f func(ctx context.Context) error) error {
	if f == nil {
		panic("quorate: once.DoContext: the function is nil")
	}
	o.usable()
	_, err := o.do(ctx, work{f: func(ctx context.Context) ([][]byte, error) {
		if err := f(ctx); err != nil {
			return nil, &failed{err: err}
		}
		return nil, nil
	}})
	return o.wrapError("do", err)
}

// Func returns a function that calls [Once.Do] with f, as [sync.OnceFunc] does.
// If f panics, the next call runs it again; sync.OnceFunc would panic again.
func Func(q *quorate.Quorum, name string, f func(), opts ...quorate.OnceOption) func() {
	o := New(q, name, opts...)
	return func() { o.Do(f) }
}

// must tries until it succeeds, and panics where that cannot be.
func (o *Once) must(op string, try func() error) {
	core.Must(o.q, o.spec, "once", func() error {
		err := o.wrapError(op, try())
		if errors.Is(err, ErrNotDurable) {
			panic(err)
		}
		return err
	})
}

// wrapError makes the exported error of what went wrong with the nodes; f's own
// errors are the caller's.
func (o *Once) wrapError(op string, err error) error {
	own, ok := err.(*failed)
	switch {
	case !ok:
		return core.WrapError(op, o.spec.Name, err)
	case own.lost != nil:
		return errors.Join(own.err, core.WrapError(op, o.spec.Name, own.lost))
	}
	return own.err
}

func (o *Once) usable() {
	if o == nil || o.q == nil {
		panic("quorate: the zero once.Once has no quorum; use once.New")
	}
}
