package leader_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/mutex"
)

// run calls Run in a goroutine; a panic of it comes as an error.
func run(ctx context.Context, e *leader.Election, cb leader.Callbacks) <-chan error {
	done := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- panicked{p}
			}
		}()
		done <- e.Run(ctx, cb)
	}()
	return done
}

type panicked struct{ value any }

func (panicked) Error() string { return "panicked" }

// stage is callbacks that a test leads step by step.
type stage struct {
	started chan term
	stopped chan error
}

type term struct {
	ctx   context.Context
	lease quorate.Lease
	leave chan struct{} // close it, and OnStartedLeading returns

	panics chan struct{} // close it, and OnStartedLeading panics
}

func newStage() *stage { return &stage{started: make(chan term, 100), stopped: make(chan error, 100)} }

func (s *stage) callbacks() leader.Callbacks {
	return leader.Callbacks{
		OnStartedLeading: func(ctx context.Context, lease quorate.Lease) {
			tm := term{ctx, lease, make(chan struct{}), make(chan struct{})}
			s.started <- tm
			select {
			case <-tm.leave:
			case <-tm.panics:
				panic("boom")
			}
		},
		OnStoppedLeading: func(err error) { s.stopped <- err },
	}
}

func TestRunUntilTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := nodes(t)
		es, m := fleet(t, c, e2e.Timing(quiet), "b")
		a, b := leader.New(c.Quorum(e2e.Timing(quiet)), "e", leader.WithID("a"), leader.WithValue("v")), es[0]
		type key struct{}
		ctx, cancel := context.WithCancelCause(context.WithValue(soon(t), key{}, "value"))
		s := newStage()
		done := run(ctx, a, s.callbacks())
		tm := e2e.Receive(t, s.started)
		require.NoError(t, tm.ctx.Err())
		require.Equal(t, "value", tm.ctx.Value(key{}))
		deadline, _ := ctx.Deadline()
		got, _ := tm.ctx.Deadline()
		require.Equal(t, deadline, got)
		require.Equal(t, a.Lease(), tm.lease)
		l, err := b.Leader(soon(t))
		require.NoError(t, err)
		require.Equal(t, "v", l.Value)
		require.Equal(t, tm.lease.Token(), l.Term)

		next := campaign(soon(t), b, "")
		waiters(t, m, 1)
		over := errors.New("enough")
		cancel(over)
		e2e.Receive(t, tm.ctx.Done())
		require.Equal(t, over, context.Cause(tm.ctx))
		// It has not returned, so it leads on.
		require.NoError(t, tm.lease.Context().Err())
		l, err = b.Leader(soon(t))
		require.NoError(t, err)
		require.Equal(t, "a", l.ID)
		require.Empty(t, s.stopped)
		require.Empty(t, next)

		close(tm.leave)
		require.NoError(t, e2e.Receive(t, s.stopped), "it has resigned")
		err = e2e.Receive(t, done)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, over)
		require.NoError(t, e2e.Receive(t, next))
		require.ErrorIs(t, context.Cause(tm.lease.Context()), quorate.ErrReleased)
		require.Empty(t, s.stopped, "once for each start")
		require.Empty(t, s.started)

		// A candidate whose context ends in the queue has never started, so it
		// never stops.
		ctx, cancel = context.WithCancelCause(soon(t))
		done = run(ctx, a, s.callbacks())
		waiters(t, m, 1)
		cancel(nil)
		require.ErrorIs(t, e2e.Receive(t, done), context.Canceled)
		waiters(t, m, 0)
		require.Empty(t, s.started)
		require.Empty(t, s.stopped)
		require.NoError(t, b.Resign(soon(t)))
	})
}

// A function that returns from leading is queued again, behind all waiters.
func TestRunCampaignsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := nodes(t)
		es, m := fleet(t, c, e2e.Timing(quiet), "a")
		a, b := newStage(), newStage()
		ctx, cancel := context.WithCancel(soon(t))
		ran := run(ctx, es[0], a.callbacks())
		first := e2e.Receive(t, a.started)
		ranOnce := run(ctx, leader.New(c.Quorum(e2e.Timing(quiet)), "e", leader.WithOneTerm()), b.callbacks())
		waiters(t, m, 1)
		close(first.leave)
		require.NoError(t, e2e.Receive(t, a.stopped))
		second := e2e.Receive(t, b.started)
		require.Greater(t, second.lease.Token(), first.lease.Token())
		waiters(t, m, 1)
		close(second.leave)
		require.NoError(t, e2e.Receive(t, b.stopped))
		require.NoError(t, e2e.Receive(t, ranOnce), "WithOneTerm")
		third := e2e.Receive(t, a.started)
		require.Greater(t, third.lease.Token(), second.lease.Token())
		cancel()
		close(third.leave)
		require.NoError(t, e2e.Receive(t, a.stopped))
		require.ErrorIs(t, e2e.Receive(t, ran), context.Canceled)
	})
}

func TestRunLoses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = 800 * time.Millisecond
		c := nodes(t)
		es, _ := fleet(t, c, e2e.Timing(ttl), "a")
		a := es[0]
		s := newStage()
		ctx, cancel := context.WithCancel(soon(t))
		ran := run(ctx, a, s.callbacks())
		tm := e2e.Receive(t, s.started)
		child, end := context.WithCancel(tm.ctx) // the callback's own contexts end with it, too
		defer end()
		thaw := freeze(c, 2)
		e2e.Receive(t, tm.ctx.Done())
		require.ErrorIs(t, context.Cause(tm.ctx), quorate.ErrLost)
		e2e.Receive(t, child.Done())
		require.ErrorIs(t, context.Cause(child), quorate.ErrLost)
		require.False(t, time.Now().Before(tm.lease.ValidUntil()))
		require.Error(t, tm.lease.Context().Err())
		require.Empty(t, s.stopped, "it has not returned")
		require.NoError(t, a.HealthCheck(time.Hour))
		time.Sleep(time.Millisecond)
		require.ErrorIs(t, a.HealthCheck(0), quorate.ErrLost, "it acts as if it led")
		close(tm.leave)
		err := e2e.Receive(t, s.stopped)
		require.ErrorIs(t, err, quorate.ErrLost)
		require.ErrorContains(t, err, `lead "e"`)
		require.NoError(t, a.HealthCheck(0))
		thaw()
		again := e2e.Receive(t, s.started)
		require.Greater(t, again.lease.Token(), tm.lease.Token())
		require.NoError(t, a.HealthCheck(0))
		require.Empty(t, s.stopped)
		cancel()
		close(again.leave)
		require.NoError(t, e2e.Receive(t, s.stopped))
		require.ErrorIs(t, e2e.Receive(t, ran), context.Canceled)

		// With WithOneTerm, the loss is what Run returns.
		short := leader.New(c.Quorum(e2e.Timing(ttl)), "e", leader.WithID("s"),
			leader.WithOneTerm(), quorate.WithoutRenewal())
		ran = run(soon(t), short, s.callbacks())
		tm = e2e.Receive(t, s.started)
		e2e.Receive(t, tm.ctx.Done())
		close(tm.leave)
		require.ErrorIs(t, e2e.Receive(t, s.stopped), quorate.ErrLost)
		require.ErrorIs(t, e2e.Receive(t, ran), quorate.ErrLost)
	})
}

// The health check knows when Close has ended a term, long before its lease
// would have ended: another process may lead from then on.
func TestHealthAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := nodes(t).Quorum()
		a := leader.New(q, "e", leader.WithID("a"))
		require.NoError(t, a.Campaign(soon(t), ""))
		require.NoError(t, q.Close())
		time.Sleep(time.Second)
		require.NoError(t, a.HealthCheck(time.Second))
		require.ErrorIs(t, a.HealthCheck(time.Second-1), quorate.ErrLost)
	})
}

// The health check knows when a claim that the nodes have forgotten ended.
func TestHealthAfterTheNodesForget(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c, e2e.Timing(2*time.Second))
	a := leader.New(q, "e", leader.WithID("a"))
	require.NoError(t, a.Campaign(soon(t), ""))
	lease := a.Lease()
	for i := range 2 {
		require.NoError(t, c.Node(i).Client().FlushAll(t.Context()).Err())
	}
	e2e.Receive(t, lease.Context().Done())
	require.NoError(t, a.HealthCheck(time.Minute), "not since the beginning of time")
	require.ErrorIs(t, a.HealthCheck(0), quorate.ErrLost)
	require.ErrorIs(t, a.Resign(soon(t)), quorate.ErrLost)
}

func TestRunHasTheElectionToItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := nodes(t)
		q := c.Quorum(e2e.Timing(quiet))
		a, b := leader.New(q, "e", leader.WithID("a")), leader.New(q, "e", leader.WithID("b"))
		s := newStage()
		refused := func(err error, why string) {
			t.Helper()
			require.ErrorIs(t, err, quorate.ErrInvalid)
			require.ErrorContains(t, err, why)
		}
		ctx, cancel := context.WithCancel(soon(t))
		ran := run(ctx, a, s.callbacks())
		tm := e2e.Receive(t, s.started)
		refused(a.Run(soon(t), s.callbacks()), "Run is already running")
		refused(a.Campaign(soon(t), ""), "Run is already running")
		refused(a.Resign(soon(t)), "Run is already running")
		require.NoError(t, a.Proclaim(soon(t), "proclaimed"))
		l, err := a.Leader(soon(t))
		require.NoError(t, err)
		require.Equal(t, "proclaimed", l.Value)

		bctx, stop := context.WithCancel(soon(t))
		waiting := campaign(bctx, b, "")
		waiters(t, mutex.New(q, "e"), 1)
		refused(b.Run(soon(t), s.callbacks()), "Campaign is still running")
		stop()
		require.ErrorIs(t, e2e.Receive(t, waiting), context.Canceled)

		cancel()
		close(tm.leave)
		require.ErrorIs(t, e2e.Receive(t, ran), context.Canceled)
		require.NoError(t, a.Campaign(soon(t), ""))
		refused(a.Run(soon(t), s.callbacks()), "Resign before Run")
		require.NoError(t, a.Resign(soon(t)))

		// Close ends it.
		require.NoError(t, e2e.Receive(t, s.stopped))
		ran = run(soon(t), a, s.callbacks())
		tm = e2e.Receive(t, s.started)
		require.NoError(t, q.Close())
		e2e.Receive(t, tm.ctx.Done())
		require.ErrorIs(t, context.Cause(tm.ctx), quorate.ErrClosed)
		close(tm.leave)
		require.ErrorIs(t, e2e.Receive(t, s.stopped), quorate.ErrClosed)
		require.ErrorIs(t, e2e.Receive(t, ran), quorate.ErrClosed)
		require.ErrorIs(t, a.Run(soon(t), s.callbacks()), quorate.ErrClosed)
		require.Empty(t, s.started)
	})
}

func TestOnNewLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		es, m := fleet(t, nodes(t), e2e.Timing(quiet), "a", "b")
		a, b := es[0], es[1]
		require.NoError(t, b.Campaign(soon(t), ""))
		terms := make(chan leader.Leader, 100)
		s := newStage()
		cb := s.callbacks()
		cb.OnNewLeader = func(l leader.Leader) {
			if terms <- l; l.ID == "b" {
				runtime.Goexit() // the next term is announced all the same
			}
		}
		ctx, cancel := context.WithCancel(soon(t))
		ran := run(ctx, a, cb)
		first := e2e.Receive(t, terms)
		require.Equal(t, "b", first.ID)
		waiters(t, m, 1)
		require.NoError(t, b.Proclaim(soon(t), "another value is not another leader"))
		require.NoError(t, b.Resign(soon(t)))
		tm := e2e.Receive(t, s.started)
		second := e2e.Receive(t, terms)
		require.Equal(t, "a", second.ID, "itself, too")
		require.Equal(t, tm.lease.Token(), second.Term)
		cancel()
		close(tm.leave)
		require.ErrorIs(t, e2e.Receive(t, ran), context.Canceled)
		require.Empty(t, terms)
	})
}
