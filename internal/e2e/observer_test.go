package e2e_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/once"
	"github.com/quorate/quorate/rwmutex"
	"github.com/quorate/quorate/semaphore"
)

// wild ends the goroutine that calls it, one way or the other, at one kind of
// event.
type wild struct {
	at   string
	name string
	how  func()
}

func (w *wild) Observe(e quorate.Event) { w.call(string(e.Kind), e.Name) }

func (w *wild) call(at, name string) {
	if at == w.at && name == w.name {
		w.how()
	}
}

func (w *wild) AcquireStart(ctx context.Context, a quorate.AcquireInfo) context.Context {
	w.call("start", a.Name)
	return ctx
}

func (w *wild) AcquireEnd(_ context.Context, r quorate.AcquireResult) { w.call("acquired", r.Name) }
func (w *wild) HoldEnd(_ context.Context, r quorate.HoldResult)       { w.call("released", r.Name) }

// A tracer that panics, or ends the goroutine as t.FailNow does, leaves no lock
// behind that nothing releases, and no waiter that nothing wakes.
func TestTracerThatDoesNotReturn(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	w := &wild{}
	q, plain := e2e.Open(t, c, quorate.WithTracer(w)), e2e.Open(t, c)
	uses := map[string]func(ctx context.Context, name string){
		"mutex": func(ctx context.Context, name string) {
			m := mutex.New(q, name)
			_ = m.LockContext(ctx)
			m.Unlock()
		},
		"rwmutex": func(ctx context.Context, name string) {
			m := rwmutex.New(q, name)
			_ = m.RLockContext(ctx)
			m.RUnlock()
		},
		"semaphore": func(ctx context.Context, name string) {
			s := semaphore.NewWeighted(q, name, 2)
			_, _ = s.Acquire(ctx, 1), s.Acquire(ctx, 1)
			s.Release(2)
		},
		"leader": func(ctx context.Context, name string) {
			_ = leader.New(q, name, leader.WithOneTerm()).Run(ctx,
				leader.Callbacks{OnStartedLeading: func(context.Context, quorate.Lease) {}})
		},
		"once": func(ctx context.Context, name string) {
			_ = once.New(q, name).DoContext(ctx, func(context.Context) error { return nil })
		},
	}
	free := map[string]func(name string) bool{
		"mutex":     func(name string) bool { return mutex.New(plain, name).TryLock() },
		"rwmutex":   func(name string) bool { return rwmutex.New(plain, name).TryLock() },
		"semaphore": func(name string) bool { return semaphore.NewWeighted(plain, name, 2).TryAcquire(2) },
		"leader":    func(name string) bool { return mutex.New(plain, name).TryLock() },
		"once":      func(name string) bool { return mutex.New(plain, name).TryLock() },
	}
	for how, f := range map[string]func(){"panics": func() { panic("tracer") }, "exits": runtime.Goexit} {
		for _, at := range []string{"start", "acquired", "released"} {
			for what, use := range uses {
				name := what + " " + how + " " + at
				t.Run(name, func(t *testing.T) {
					*w = wild{at: at, name: name, how: f}
					done := make(chan struct{})
					go func() {
						defer close(done)
						defer func() { _ = recover() }()
						use(t.Context(), name)
						assert.Fail(t, "the tracer was not called")
					}()
					e2e.Receive(t, done)
					require.True(t, e2e.Eventually(func() bool { return free[what](name) }))
				})
			}
		}
	}

	// The value itself goes on, and so do those that wait in this process.
	*w = wild{at: "released", name: "m", how: func() { panic("tracer") }}
	m := mutex.New(q, "m", quorate.WithoutRenewal()) // so that each hold is a claim of its own
	require.NoError(t, m.LockContext(t.Context()))
	queued := e2e.NewQueued(t.Context())
	next := make(chan error, 1)
	go func() { next <- m.LockContext(queued) }()
	e2e.Receive(t, queued.In())
	assert.Panics(t, m.Unlock)
	err := e2e.Receive(t, next)
	require.NoError(t, err)
	*w = wild{}
	m.Unlock()
	require.NoError(t, m.LockContext(t.Context()))
	m.Unlock()
}

// An observer that ends the goroutine ends none of the library's: a node that
// was down comes back.
func TestObserverThatExitsAsANodeGoes(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	q := e2e.Open(t, c, quorate.WithObserver(&wild{at: string(quorate.EventNodeDown), how: runtime.Goexit}))
	m := mutex.New(q, "m")
	require.NoError(t, m.LockContext(t.Context()))
	m.Unlock()
	require.NoError(t, c.Node(0).Client().ClientKillByFilter(t.Context(), "SKIPME", "yes").Err())
	ctx, cancel := context.WithTimeout(t.Context(), e2e.Patience)
	defer cancel()
	require.NoError(t, m.LockContext(ctx))
	m.Unlock()
}

// exiting is a handler that ends the goroutine at each line, or before it.
type exiting struct {
	slog.Handler
	before bool
}

func (e exiting) Enabled(context.Context, slog.Level) bool {
	if e.before {
		runtime.Goexit()
	}
	return true
}

func (exiting) Handle(context.Context, slog.Record) error {
	runtime.Goexit()
	return nil
}

// A logger that ends the goroutine at each line ends none of the library's: a
// node that was down comes back, a lost hold ends, and Close returns.
func TestLoggerThatExits(t *testing.T) {
	t.Parallel()
	for _, before := range []bool{false, true} {
		t.Run(fmt.Sprint(before), func(t *testing.T) {
			t.Parallel()
			loggerThatExits(t, exiting{slog.DiscardHandler, before})
		})
	}
}

func loggerThatExits(t *testing.T, h slog.Handler) {
	c := redistest.Start(t, 1)
	q := e2e.Open(t, c, e2e.Timing(2*time.Second), quorate.WithLogger(slog.New(h)))
	m := mutex.New(q, "m")
	require.NoError(t, m.LockContext(deadline(t)))
	require.NoError(t, c.Node(0).Client().ClientKillByFilter(t.Context(), "SKIPME", "yes").Err())
	m.Unlock()
	require.NoError(t, m.LockContext(deadline(t)))
	require.NoError(t, c.Node(0).Client().FlushAll(t.Context()).Err())
	e2e.Receive(t, m.Lease().Context().Done())
	closed := make(chan error, 1)
	go func() { closed <- q.Close() }()
	e2e.Receive(t, closed)
}

// Close may be called in the observer: it waits for no call of that.
func TestCloseInsideTheObserver(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	w := &closer{errs: make(chan error, 1)}
	q := e2e.Open(t, c, quorate.WithObserver(w))
	w.arm(quorate.EventNodeDown, q)
	require.NoError(t, c.Node(0).Client().ClientKillByFilter(t.Context(), "SKIPME", "yes").Err())
	require.NoError(t, e2e.Receive(t, w.errs))
}

// closer is an observer that closes a Quorum at the next event of a kind.
type closer struct {
	mu   sync.Mutex
	at   quorate.EventKind
	q    *quorate.Quorum
	errs chan error
}

func (c *closer) arm(at quorate.EventKind, q *quorate.Quorum) {
	c.mu.Lock()
	c.at, c.q = at, q
	c.mu.Unlock()
}

func (c *closer) Observe(e quorate.Event) {
	c.mu.Lock()
	q := c.q
	if c.at != e.Kind {
		q = nil
	}
	if q != nil {
		c.q = nil
	}
	c.mu.Unlock()
	if q != nil {
		c.errs <- q.Close()
	}
}
