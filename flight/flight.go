// Package flight is singleflight over a fleet: of all callers that want one
// thing at one time, in whatever processes, one loads it, and the others get
// its result.
//
//	rates := flight.New[Rates](q, "rates:")
//	r, err := rates.Do(ctx, "EUR", time.Minute, load)
//
// A result is shared for as long as the callers take it for fresh. It is
// recorded on a majority of the nodes of a [quorate.Quorum].
package flight

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
)

// A Group is a set of things that can be loaded, by their keys. It must be made
// by [New] and must not be copied. The zero value has no quorum, and its
// methods panic. It is safe for concurrent use.
//
// The process that loads holds a claim, as the holder of a mutex does. When it
// dies, another caller loads after the lease. It is not guaranteed that one
// load has ended when another begins: a process may sleep through its lease. So
// a load should read, and write nothing.
//
// A name is claimed as a mutex's is. Do not use it for another primitive too.
type Group[T any] struct {
	_      core.NoCopy
	q      *core.Quorum
	opts   []quorate.SharedOption
	prefix string

	mu    sync.Mutex
	calls map[wanted]*call[T] // of this process, under way
}

// wanted is what callers of one process can share. With a shorter fresh a
// caller may want a newer result.
type wanted struct {
	key   string
	fresh time.Duration
}

// call is what the callers of one process share.
type call[T any] struct {
	cancel  context.CancelCauseFunc
	waiters int       // guarded by Group.mu, as called and loading are
	called  time.Time // by the last of them
	loading bool      // the function runs here, or has

	done     chan struct{} // closed when what follows is set
	v        T
	err      error
	panicked any
	exited   bool // the function has ended its goroutine
}

// MaxValue is how long a result may be as JSON, in bytes.
const MaxValue = 512 << 10

// New returns a Group of the things whose names are prefix and key. T must be a
// type that encoding/json can encode and decode. Options are those of every
// primitive.
//
// A wrong or nil option, and a type whose zero value cannot be encoded, are
// programmer's errors: New panics and names the remedy.
func New[T any](q *quorate.Quorum, prefix string, opts ...quorate.SharedOption) *Group[T] {
	_, err := json.Marshal(new(T))
	if unfit, is := errors.AsType[*json.UnsupportedTypeError](err); is {
		panic(fmt.Sprintf("quorate: flight.New: a result cannot be recorded: %v; choose a type that encoding/json can encode", unfit))
	}
	c := core.CoreOf(q)
	_ = core.Override(c, "flight.New", opts) // panics if one is wrong
	return &Group[T]{q: c, opts: slices.Clone(opts), prefix: prefix, calls: map[wanted]*call[T]{}}
}

// Do returns the recorded result of the key if it is younger than fresh, by the
// nodes' clocks, or that of a load which was under way when Do was called.
// Otherwise it calls f, unless another caller does: then it waits for that. So
// a fresh of 0 shares a result with those alone that wait for it. A negative
// one is a programmer's error, and Do panics. Processes that reach other nodes
// may be apart by the difference of these clocks, see [quorate.WithSkew]: by so
// much a result may be older, or its load over before Do was called.
//
// Callers of one process act as one. They get one result, error or panic of f,
// which runs in a goroutine of its own, with a context that has the values of
// one of them and ends when none of them waits any more, or when the claim is
// lost. An error is not recorded: another process calls its own f.
//
// A value that f has returned is the result, also where it could not be
// recorded, which is logged; but one that cannot be encoded, or is longer than
// [MaxValue], is an error that matches [quorate.ErrInvalid]. A record that
// cannot be decoded as a T is replaced.
//
// Otherwise Do fails with a [*quorate.Error]: when ctx ends, one that matches
// the context's error, and [quorate.ErrHeld] while a caller loads, this one or
// another, or [quorate.ErrNoQuorum] while nodes are missing; ErrNoQuorum at
// once when waiting for nodes cannot help; [quorate.ErrClosed]; or ErrInvalid
// for a name that is unusable (empty, longer than 1024 bytes, or with braces).
//
// It costs a round trip where a fresh result is recorded: a Group keeps none in
// the process. The nodes keep it for an hour at least.
func (g *Group[T]) Do(ctx context.Context, key string, fresh time.Duration, f func(ctx context.Context) (T, error)) (T, error) {
	switch {
	case g == nil || g.q == nil:
		panic("quorate: the zero flight.Group has no quorum; use flight.New")
	case f == nil:
		panic("quorate: flight.Do of a nil function")
	case fresh < 0:
		panic(fmt.Sprintf("quorate: flight.Do: fresh %v: cannot be negative; 0 shares a result with those alone that wait for it", fresh))
	case ctx.Err() != nil:
		return *new(T), core.WrapError("do", g.prefix+key, &fault.Failure{Err: fault.ContextError(ctx)})
	}
	w := wanted{key, fresh}
	g.mu.Lock()
	c := g.calls[w]
	if c == nil {
		c = g.begin(ctx, w, f)
	}
	c.waiters++
	c.called = time.Now()
	g.mu.Unlock()
	select {
	case <-c.done:
	case <-ctx.Done():
		switch loading, last := g.leave(w, c, ctx); {
		case loading:
			return *new(T), core.WrapError("do", g.prefix+key, fault.CutShort(fault.ErrHeld, ctx))
		case !last:
			return *new(T), core.WrapError("do", g.prefix+key, g.q.For(g.prefix+key).CutShort(ctx))
		}
		<-c.done // which does not wait: its context has ended, and f does not run
		if c.err != nil {
			return *new(T), core.WrapError("do", g.prefix+key, short(c.err, ctx))
		}
	}
	switch {
	case c.panicked != nil:
		panic(c.panicked)
	case c.exited:
		runtime.Goexit()
	}
	return c.v, c.err
}

// leave takes a caller away from a call, and ends that with the last one.
func (g *Group[T]) leave(w wanted, c *call[T], ctx context.Context) (loading, last bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.waiters--; c.waiters == 0 {
		g.forget(w, c)
		c.cancel(context.Cause(ctx))
	}
	return c.loading, c.waiters == 0
}

// forget has the next caller begin another call. Called with g.mu held.
func (g *Group[T]) forget(w wanted, c *call[T]) {
	if g.calls[w] == c {
		delete(g.calls, w)
	}
}

// short says what the end of a caller's context has cut short.
func short(err error, ctx context.Context) error {
	var e *quorate.Error
	if !errors.As(err, &e) {
		return err
	}
	sentinel := fault.ErrHeld
	if errors.Is(err, fault.ErrNoQuorum) {
		sentinel = fault.ErrNoQuorum
	}
	f := fault.CutShort(sentinel, ctx)
	f.Votes, f.Needed = e.Votes, e.Needed
	for _, n := range e.Nodes {
		f.Nodes = append(f.Nodes, fault.NodeFailure{Addr: n.Node, Err: n.Err})
	}
	return f
}

// begin begins a call. Called with g.mu held.
func (g *Group[T]) begin(ctx context.Context, w wanted, f func(context.Context) (T, error)) *call[T] {
	c := &call[T]{done: make(chan struct{}), exited: true}
	ctx, c.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	g.calls[w] = c
	go func() {
		defer func() {
			if p := recover(); p != nil {
				c.panicked = p
			}
			c.cancel(nil)
			g.mu.Lock()
			g.forget(w, c)
			g.mu.Unlock()
			close(c.done)
		}()
		c.v, c.err = g.load(ctx, w, c, f)
		c.exited = false
	}()
	return c
}
