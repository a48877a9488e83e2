// Package flight is singleflight across a fleet. When several callers, in any
// number of processes, want the same thing at the same time, one of them loads
// it and the others get its result.
//
//	rates := flight.New[Rates](q, "rates:")
//	r, err := rates.Do(ctx, "EUR", time.Minute, load)
//
// The result is recorded on a majority of the nodes of a [quorate.Quorum], and
// is shared for as long as it is fresh enough for the caller.
//
// All types in this package are safe for concurrent use.
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

// A Group is a set of things to load, each identified by a key. It must be
// created with [New] and must not be copied.
//
// While a process is loading, it holds a claim, like the holder of a mutex. If
// the process dies, another caller starts loading once the lease has expired.
// Because a process can sleep through its lease, one load may still be running
// when another one starts. So a load should only read, never write.
//
// Do not use the names of a Group for another primitive.
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

// MaxValue is the maximum size of a result as JSON, in bytes.
const MaxValue = 512 << 10

// New returns a Group. The name of each thing is prefix followed by its key.
// encoding/json must be able to encode and decode T.
//
// Options: [quorate.WithTTL], [quorate.WithNodeTimeout], [quorate.WithMaxHold],
// [quorate.WithoutRenewal] and [quorate.WithWarning]. The defaults are the
// settings of q. New panics if an option is invalid or nil, or if the zero value
// of T cannot be encoded.
func New[T any](q *quorate.Quorum, prefix string, opts ...quorate.SharedOption) *Group[T] {
	_, err := json.Marshal(new(T))
	if unfit, is := errors.AsType[*json.UnsupportedTypeError](err); is {
		panic(fmt.Sprintf("quorate: flight.New: cannot record a result: %v; choose a type that "+
			"encoding/json can encode", unfit))
	}
	c := core.CoreOf(q)
	_ = core.Override(c, "flight.New", opts) // panics if one is wrong
	return &Group[T]{q: c, opts: slices.Clone(opts), prefix: prefix, calls: map[wanted]*call[T]{}}
}

// Do returns the recorded result for key if it is younger than fresh, or the
// result of a load that was in progress when Do was called. Otherwise it calls
// f, unless another caller is already loading; then Do waits for that load.
// With fresh = 0, only callers that are already waiting share the result. Do
// panics if fresh is negative. Ages are measured by the nodes' clocks, which
// may differ by up to [quorate.WithSkew], so a result may be that much older
// than fresh.
//
// Callers in the same process share a single result, error or panic of f. f
// runs in its own goroutine. Its context has the values of one caller's
// context, and ends when no caller is waiting any more or when the claim is
// lost. Errors are not recorded: other processes call their own f.
//
// If the result cannot be recorded, Do logs that and returns the result anyway.
// A record that cannot be decoded into a T is replaced. A Group does not cache
// results in the process, so a call takes a round trip even if a fresh result
// is recorded. The nodes keep a result for at least an hour.
//
// Besides f's error, Do returns a [*quorate.Error] that matches
//
//   - ctx's error, and [quorate.ErrHeld] while another caller is loading or
//     [quorate.ErrNoQuorum] while nodes are missing;
//   - ErrNoQuorum alone if waiting for nodes is pointless;
//   - [quorate.ErrClosed];
//   - [quorate.ErrInvalid] if the name is empty, longer than 1024 bytes or
//     contains braces, if the value cannot be encoded or is longer than
//     [MaxValue], or if f, or what it starts with its context, calls Do for the
//     key that it loads and no fresh result is recorded: it would wait for itself.
func (g *Group[T]) Do(ctx context.Context, key string, fresh time.Duration,
	f func(ctx context.Context) (T, error)) (T, error) {
	switch {
	case g == nil || g.q == nil:
		panic("quorate: the zero flight.Group has no quorum; use flight.New")
	case f == nil:
		panic("quorate: flight.Do: the function is nil")
	case fresh < 0:
		panic(fmt.Sprintf("quorate: flight.Do: fresh %v: cannot be negative; 0 shares a result only "+
			"with callers that are already waiting", fresh))
	case ctx.Err() != nil:
		return *new(T), core.WrapError("do", g.prefix+key, &fault.Failure{Err: fault.ContextError(ctx)})
	}
	w := wanted{key, fresh}
	g.mu.Lock()
	c := g.calls[w]
	switch {
	case c == nil:
		c = g.begin(ctx, w, f)
	case g.loadedBy(ctx, key):
		g.mu.Unlock()
		return *new(T), core.WrapError("do", g.prefix+key, errItself)
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

// errItself is the error of a caller that would wait for its own load. As it
// counts as a caller that waits, the load would not end with its other callers,
// and the key would stay claimed.
var errItself = fmt.Errorf("%w: the function that loads this key has called Do for it, "+
	"and would wait for itself", fault.ErrInvalid)

// loadOf is the key under which f's context has a channel that is closed when f
// has returned. A load of another key that f starts has it, too.
type loadOf struct {
	q    *core.Quorum
	name string
}

// loadedBy reports whether ctx comes from a running load of the key.
func (g *Group[T]) loadedBy(ctx context.Context, key string) bool {
	returned, is := ctx.Value(loadOf{g.q, g.prefix + key}).(chan struct{})
	if !is {
		return false
	}
	select {
	case <-returned: // f has kept its context for later
		return false
	default:
		return true
	}
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
