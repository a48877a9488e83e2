// Package once is sync.Once across processes: of all callers, one runs the
// work, and the others wait until it has completed. That it has is recorded on
// a majority of the nodes of a [quorate.Quorum].
//
//	o := once.New(q, "migrate to v7")
//	err := o.DoContext(ctx, migrate)
package once

import (
	"context"
	"errors"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
)

// A Once is one piece of work that all processes share. It must be made by
// [New] and must not be copied. The zero value has no quorum, and its methods
// panic. It is safe for concurrent use.
//
// The work is done when its function has returned, without an error where it
// can return one, and that has been recorded on a majority of the nodes. The
// record is kept forever unless [KeepFor] says otherwise. The process that
// runs the work holds a claim on the name, as the holder of a mutex does. When
// that process dies, the next one runs the work after the lease. A process that
// lost its claim cannot record over a run that began later.
//
// It is guaranteed that the work completes: two runs are never both recorded,
// and no call returns before one is. It is not guaranteed that the function
// begins only once. A process may die in the middle of it, or before it is
// recorded, and other processes cannot tell the difference. So the function
// should be fit to be run again, or be fenced at the resource with the token of
// [Lease].
//
// Goroutines of a process that share a value act as one: one of them asks the
// nodes, the others wait for it, each with its own context. Once the work is
// known to be done, a call costs an atomic load and asks no node.
//
// In the terminology of the Go memory model, the return from f "synchronizes
// before" the return from any call of [Once.Do] on the same value. Across
// processes there is no shared memory: what f has written to a resource,
// another process sees as far as the resource itself promises.
//
// The name is claimed as a mutex's is. Do not use it for a mutex too. A call
// waits for another Redlock client that holds the key of that name.
type Once struct {
	_ core.NoCopy
	runner
}

// New returns the Once of the given name. All values of the name share the
// work, in every process. Options are those of every primitive
// ([quorate.SharedOption]), and [KeepFor] and [WithDurable].
//
// A wrong or nil option is a programmer's error: New panics and names the
// remedy. An unusable name (empty, longer than 1024 bytes, or with braces) is
// reported by every call, with [quorate.ErrInvalid].
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

// Do runs f unless the work is done, and returns when it is done: as
// [sync.Once.Do] does, over all processes. It waits for its turn and through
// outages, with f done also until that is recorded. It panics where waiting
// cannot help: an unusable name, or nodes that keep too little on disk for
// [WithDurable]. When the [quorate.Quorum] is closed, Do does not return, see
// [quorate.Quorum.Close]. A node that refuses for good (a wrong password, a key
// of another type) is logged and asked again; f is not run again for that.
//
// If f panics, or ends its goroutine with [runtime.Goexit], that goes on as if
// f had been called directly, and the work is not done: the next caller runs
// it. (To sync.Once a panic is a completion. Here the next caller may be a
// process on another machine, which has seen no panic and would go on as if the
// work had been done.) f runs again as well when a later run began before f
// could be recorded, and that run failed.
//
// As with sync.Once, f must not call Do on the same value, nor on another value
// of that name: it would wait for itself.
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
		panic("quorate: once.Do of a nil function")
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

// DoContext runs f unless the work is done, and returns nil when it is done.
//
// The context of f ends with ctx, and when the claim is lost; [context.Cause]
// then is [quorate.ErrLost], and another process may have begun. If f returns
// an error, so does DoContext, and the work is not done: the next waiter runs
// it. For a panic see [Once.Do].
//
// Otherwise it fails with a [*quorate.Error]:
//
//   - when the context ends, one that matches the context's error and says what was missing: [quorate.ErrHeld], the end of another run, or [quorate.ErrNoQuorum], nodes;
//   - ErrNoQuorum at once when so many nodes refuse for good that waiting cannot help, or cannot be asked for [WithDurable];
//   - [ErrNotDurable] before f is run;
//   - [ErrNotRecorded] when f has returned and that could not be recorded;
//   - [quorate.ErrClosed] or [quorate.ErrInvalid].
//
// When f has returned nil, recording it is tried for one node timeout at least,
// also when ctx has ended: work that is done should not be done again.
//
// f must not call DoContext on the same value or another of the same name: it
// would wait for itself until its context ends.
func (o *Once) DoContext(ctx context.Context, f func(ctx context.Context) error) error {
	if f == nil {
		panic("quorate: once.DoContext of a nil function")
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
// It is safe for concurrent use. If f panics, the next call runs it again;
// sync.OnceFunc would panic again.
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
