package quorate_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/once"
	"github.com/quorate/quorate/quoratetest"
	"github.com/quorate/quorate/rwmutex"
	"github.com/quorate/quorate/semaphore"
)

// journal keeps what a Tracer and an Observer are called with. It checks that
// each acquisition and each hold ends once.
type journal struct {
	t *testing.T

	mu     sync.Mutex
	next   int
	open   map[int]bool // by number: true once it is held
	ends   []quorate.AcquireResult
	holds  []quorate.HoldResult
	events []quorate.Event
}

type numberKey struct{}

func newJournal(t *testing.T) *journal { return &journal{t: t, open: map[int]bool{}} }

func (j *journal) AcquireStart(ctx context.Context, _ quorate.AcquireInfo) context.Context {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.next++
	j.open[j.next] = false
	return context.WithValue(ctx, numberKey{}, j.next)
}

func (j *journal) AcquireEnd(ctx context.Context, r quorate.AcquireResult) {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := ctx.Value(numberKey{}).(int)
	held, open := j.open[n]
	assert.True(j.t, open && !held, "%+v", r)
	if j.ends = append(j.ends, r); r.Err != nil || r.Shared {
		delete(j.open, n)
	} else {
		j.open[n] = true
	}
}

func (j *journal) HoldEnd(ctx context.Context, r quorate.HoldResult) {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := ctx.Value(numberKey{}).(int)
	assert.True(j.t, j.open[n], "%+v", r)
	delete(j.open, n)
	j.holds = append(j.holds, r)
}

func (j *journal) Observe(e quorate.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, e)
}

// take returns what came since take was called last, and checks that nothing is
// left open.
func (j *journal) take() ([]quorate.AcquireResult, []quorate.HoldResult) {
	synctest.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	assert.Empty(j.t, j.open)
	ends, holds := j.ends, j.holds
	j.ends, j.holds = nil, nil
	return ends, holds
}

// event waits for an event of a kind and returns it.
func (j *journal) event(kind quorate.EventKind) (e quorate.Event) {
	j.t.Helper()
	require.Eventually(j.t, func() bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		for _, e = range j.events {
			if e.Kind == kind {
				return true
			}
		}
		return false
	}, time.Hour, time.Second, "%s", kind)
	return e
}

// Each primitive reports its acquisitions and its holds.
func TestTracerOfEachPrimitive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal(t)
		q := quoratetest.New(t, 3).Quorum(quorate.WithTracer(j))
		ctx := t.Context()
		second := func() { time.Sleep(time.Second) }
		for kind, use := range map[string]func(){
			"mutex": func() {
				m := mutex.New(q, "mutex")
				m.Lock()
				second()
				m.Unlock()
			},
			"rwmutex": func() {
				m := rwmutex.New(q, "rwmutex")
				m.RLock()
				second()
				m.RUnlock()
			},
			"semaphore": func() {
				s := semaphore.NewWeighted(q, "semaphore", 2)
				require.NoError(t, s.Acquire(ctx, 2))
				second()
				s.Release(2)
			},
			"once": func() {
				require.NoError(t, once.New(q, "once").DoContext(ctx,
					func(context.Context) error { second(); return nil }))
			},
			"leader": func() {
				e := leader.New(q, "leader")
				require.NoError(t, e.Campaign(ctx, ""))
				second()
				require.NoError(t, e.Resign(ctx))
			},
		} {
			use()
			ends, holds := j.take()
			require.Len(t, ends, 1, kind)
			require.Len(t, holds, 1, kind)
			a, h := ends[0], holds[0]
			assert.Equal(t, []string{kind, kind, kind, kind}, []string{a.Kind, a.Name, h.Kind, h.Name})
			assert.False(t, a.Local || a.Shared || a.Contended || a.Try, kind)
			assert.Equal(t, 1, a.RoundTrips, kind)
			assert.GreaterOrEqual(t, a.Votes, 2, kind)
			assert.Equal(t, a.Token, h.Token, kind)
			assert.NotZero(t, a.Token, kind)
			assert.GreaterOrEqual(t, h.Held, time.Second, kind)
			require.NoError(t, a.Err)
			require.NoError(t, h.Err)
		}
		g := mutex.All(q, []string{"a", "b"})
		require.NoError(t, g.LockContext(ctx))
		g.Unlock()
		ends, holds := j.take()
		assert.Len(t, ends, 2)
		assert.Len(t, holds, 2)
	})
}

// The results tell waiting in the process from waiting at the nodes, and a hold
// that readers share ends once.
func TestTracerTellsHow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, c := newJournal(t), quoratetest.New(t, 3)
		q, other := c.Quorum(quorate.WithTracer(j)), c.Quorum()
		m := mutex.New(q, "m")

		theirs := mutex.New(other, "m")
		theirs.Lock()
		require.False(t, m.TryLock())
		ends, holds := j.take()
		require.Len(t, ends, 1)
		assert.Empty(t, holds)
		assert.True(t, ends[0].Try)
		require.ErrorIs(t, ends[0].Err, quorate.ErrHeld)
		var why *quorate.Error
		require.ErrorAs(t, ends[0].Err, &why)

		go func() {
			time.Sleep(time.Second)
			theirs.Unlock()
		}()
		m.Lock()
		next := make(chan struct{})
		go func() {
			m.Lock()
			close(next)
		}()
		synctest.Wait()
		m.Unlock()
		<-next
		m.Unlock()
		ends, holds = j.take()
		require.Len(t, ends, 2)
		assert.True(t, ends[0].Contended && !ends[0].Local)
		assert.Equal(t, []int{1, 0}, []int{ends[0].Queue, ends[1].Queue})
		assert.GreaterOrEqual(t, ends[0].Wait, time.Second)
		assert.True(t, ends[1].Local && !ends[1].Contended && !ends[1].Shared)
		assert.Zero(t, ends[1].RoundTrips)
		require.Len(t, holds, 2)
		assert.Equal(t, ends[0].Token+1, holds[1].Token)

		rw := rwmutex.New(q, "rw")
		rw.RLock()
		require.NoError(t, rw.RLockContext(t.Context()))
		rw.RUnlock()
		rw.RUnlock()
		ends, holds = j.take()
		require.Len(t, ends, 2)
		assert.False(t, ends[0].Shared)
		assert.True(t, ends[1].Shared && ends[1].Local)
		assert.Len(t, holds, 1)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		theirs.Lock()
		require.Error(t, m.LockContext(ctx))
		ends, _ = j.take()
		require.Len(t, ends, 1)
		require.ErrorIs(t, ends[0].Err, context.DeadlineExceeded)
		assert.Equal(t, time.Second, ends[0].Wait)
	})
}

// A hold that is lost ends with the reason, also if its caller never unlocks.
func TestTracerOfLosses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, c := newJournal(t), quoratetest.New(t, 3)
		q := c.Quorum(quorate.WithTracer(j), quorate.WithObserver(j))
		m, s := mutex.New(q, "m"), semaphore.NewWeighted(q, "s", 1)
		m.Lock()
		require.NoError(t, s.Acquire(t.Context(), 1))
		c.Stop(0)
		c.Stop(1)
		lost := j.event(quorate.EventLost)
		assert.Contains(t, []string{"m", "s"}, lost.Name)
		assert.NotZero(t, lost.Token)
		ends, holds := j.take()
		assert.Len(t, ends, 2)
		require.Len(t, holds, 2)
		for _, h := range holds {
			require.ErrorIs(t, h.Err, quorate.ErrLost)
			assert.InDelta(t, 8, h.Held.Seconds(), 0.5)
		}
		m.Unlock()
		s.Release(1)
		_, holds = j.take()
		assert.Empty(t, holds)
	})
}

// slowAtDown is an Observer that takes long for "node down".
type slowAtDown chan quorate.EventKind

func (s slowAtDown) Observe(e quorate.Event) {
	switch e.Kind {
	case quorate.EventNodeDown:
		time.Sleep(time.Minute)
		s <- e.Kind
	case quorate.EventLost:
		s <- e.Kind
	}
}

// An observer gets events in the order in which they happened.
func TestObserverGetsEventsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events, c := make(slowAtDown, 100), quoratetest.New(t, 3)
		mutex.New(c.Quorum(quorate.WithObserver(events)), "m").Lock()
		c.Stop(0)
		c.Stop(1)
		downs := 0
		for <-events != quorate.EventLost {
			downs++
		}
		assert.GreaterOrEqual(t, downs, 2)
	})
}

// A node that lost its data is reported, and so is that it has been repaired.
func TestObserverOfARecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, c := newJournal(t), quoratetest.New(t, 3)
		q := c.Quorum(quorate.WithObserver(j))
		mutex.New(q, "m").Lock()
		c.Stop(2)
		c.Forget(2)
		c.Start(2)
		e := j.event(quorate.EventNodeRecovering)
		assert.NotEmpty(t, e.Node)
		assert.Greater(t, e.Took, time.Second)
		assert.Equal(t, e.Node, j.event(quorate.EventNodeCaughtUp).Node)
	})
}

// Without a tracer a hand-over in the process allocates nothing.
func TestNoTracerAllocatesNothing(t *testing.T) {
	m := mutex.New(quoratetest.New(t, 1).Quorum(quorate.WithLinger(time.Hour)), "m")
	lock := func() {
		m.Lock()
		defer m.Unlock()
	}
	lock()
	assert.Zero(t, testing.AllocsPerRun(1000, lock))
}
