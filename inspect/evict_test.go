package inspect_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/inspect"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/once"
	"github.com/quorate/quorate/quoratetest"
	"github.com/quorate/quorate/rwmutex"
	"github.com/quorate/quorate/semaphore"
)

// events is an Observer.
type events func(quorate.Event)

func (f events) Observe(e quorate.Event) { f(e) }

// soon is a context that ends when a test has waited for too long.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), e2e.Patience)
	t.Cleanup(cancel)
	return ctx
}

// ended waits for the end of a hold, which was evicted.
func ended(t *testing.T, l quorate.Lease) {
	t.Helper()
	e2e.Receive(t, l.Context().Done())
	cause := context.Cause(l.Context())
	require.ErrorIs(t, cause, quorate.ErrEvicted)
	require.ErrorIs(t, cause, quorate.ErrLost)
}

// An evicted holder's context has ended when the next one gets in, long before
// its lease ends, also while a node is down.
func TestEvict(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	lost := make(chan quorate.Event, 10)
	holder := e2e.Open(t, c, e2e.Timing(quiet), quorate.WithObserver(events(func(e quorate.Event) {
		if e.Kind == quorate.EventLost {
			lost <- e
		}
	})))
	others, eye := e2e.Open(t, c, e2e.Timing(quiet)), e2e.Open(t, c, e2e.Timing(quiet))
	m, next := mutex.New(holder, "m"), mutex.New(others, "m")
	m.Lock()
	l := m.Lease()
	got := make(chan bool)
	go func() {
		next.Lock()
		got <- l.Context().Err() == nil
	}()
	r := until(t, eye, "m", func(r *inspect.Report) bool { return len(r.Waiters) == 1 && len(r.Holders) == 1 })
	err := inspect.Evict(soon(t), eye, "m", r.Waiters[0].Token)
	require.ErrorIs(t, err, quorate.ErrNotHeld, "it waits")
	require.ErrorIs(t, inspect.Evict(soon(t), eye, "m", 1<<40), quorate.ErrNotHeld)
	require.ErrorIs(t, inspect.Evict(soon(t), eye, "free", l.Token()), quorate.ErrNotHeld)
	require.ErrorIs(t, inspect.Evict(soon(t), eye, "", l.Token()), quorate.ErrInvalid)
	require.NoError(t, l.Context().Err())

	began := time.Now()
	require.NoError(t, inspect.Evict(soon(t), eye, "m", r.Holders[0].Token))
	t.Logf("evicted in %v", time.Since(began))
	assert.Less(t, time.Since(began), quiet/4)
	require.Error(t, l.Context().Err(), "it is over when Evict returns")
	ended(t, l)
	assert.False(t, e2e.Receive(t, got), "two holders")
	e := e2e.Receive(t, lost)
	require.ErrorIs(t, e.Err, quorate.ErrEvicted)
	assert.NotContains(t, e.Err.Error(), "votes")
	require.ErrorIs(t, m.UnlockContext(soon(t)), quorate.ErrEvicted)
	require.ErrorIs(t, inspect.Evict(soon(t), eye, "m", l.Token()), quorate.ErrNotHeld, "it is over")

	// The fence of one node is ahead, so that node has the holder at another
	// ticket than a majority.
	require.NoError(t, c.Node(0).Client().Set(t.Context(), "quorate:{ahead}",
		fmt.Sprint("R", time.Now().Add(time.Second).UnixMicro(), " 00"), quiet).Err())
	ahead := mutex.New(holder, "ahead")
	require.NoError(t, ahead.LockContext(soon(t)))
	r = until(t, eye, "ahead", func(r *inspect.Report) bool {
		return len(r.Holders) == 1 && len(r.Nodes[0].Tokens) == 1
	})
	assert.Equal(t, ahead.Lease().Token(), r.Holders[0].Token)
	h, err := ahead.Holder(soon(t))
	require.NoError(t, err)
	assert.Equal(t, ahead.Lease().Token(), h.Token)
	require.NoError(t, inspect.Evict(soon(t), eye, "ahead", r.Holders[0].Token))
	ended(t, ahead.Lease())

	require.NoError(t, c.Node(1).Stop())
	require.NoError(t, inspect.Evict(soon(t), eye, "m", next.Lease().Token()))
	ended(t, next.Lease())
	require.ErrorIs(t, next.UnlockContext(soon(t)), quorate.ErrEvicted)
	require.NoError(t, m.LockContext(soon(t)))

	require.NoError(t, c.Node(2).Stop())
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err = inspect.Evict(short, eye, "m", m.Lease().Token())
	require.ErrorIs(t, err, quorate.ErrNoQuorum, "%v", err)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, m.Lease().Context().Err(), "one node's word")
	require.NoError(t, c.Node(1).Cont())
	require.NoError(t, c.Node(2).Cont())
}

// A holder that renews and hears nothing holds on, and the error says what to
// do.
func TestEvictTheDeaf(t *testing.T) {
	t.Parallel()
	const ttl = time.Second
	c := redistest.Start(t, 3)
	var urls []string
	for i := range 3 {
		require.NoError(t, c.Node(i).Client().Do(t.Context(), "ACL", "SETUSER", "deaf", "on", ">secret", "~*",
			"+@all", "resetchannels").Err())
		urls = append(urls, strings.Replace(c.URLs()[i], "redis://", "redis://deaf:secret@", 1))
	}
	eye := e2e.Open(t, c, e2e.Timing(ttl))
	m := mutex.New(e2e.OpenAt(t, urls, e2e.Timing(ttl)), "m")
	require.NoError(t, m.LockContext(soon(t)))
	err := inspect.Evict(soon(t), eye, "m", m.Lease().Token())
	require.ErrorIs(t, err, quorate.ErrHeld)
	require.ErrorContains(t, err, "has not received the eviction")
	require.ErrorContains(t, err, "its holder is not subscribed")
	require.NoError(t, m.Lease().Context().Err())
	ctx, cancel := context.WithCancel(soon(t))
	cancel()
	require.ErrorIs(t, inspect.Evict(ctx, eye, "m", m.Lease().Token()), context.Canceled)
	m.Unlock()
}

// What holds can be evicted, and nothing else ends with it.
func TestEvictKinds(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q, p := e2e.Open(t, c, e2e.Timing(quiet)), e2e.Open(t, c, e2e.Timing(quiet))
	evict := func(name string, l quorate.Lease) {
		t.Helper()
		require.NoError(t, inspect.Evict(soon(t), p, name, l.Token()), name)
		ended(t, l)
	}

	rw, rp := rwmutex.New(q, "rw"), rwmutex.New(p, "rw")
	rw.RLock()
	rw.RLock()
	rp.RLock()
	evict("rw", rw.RLease())
	require.NoError(t, rp.RLease().Context().Err(), "the readers of another process")
	require.ErrorIs(t, rw.RUnlockContext(soon(t)), quorate.ErrEvicted)
	require.ErrorIs(t, rw.RUnlockContext(soon(t)), quorate.ErrEvicted)
	rp.RUnlock()
	rw.Lock()
	evict("rw", rw.Lease())
	require.ErrorIs(t, rw.UnlockContext(soon(t)), quorate.ErrEvicted)

	s := semaphore.NewWeighted(q, "sem", 5)
	var ls []*semaphore.Lease
	for range 2 {
		l, err := s.AcquireLease(soon(t), 2)
		require.NoError(t, err)
		ls = append(ls, l)
	}
	evict("sem", ls[0])
	require.NoError(t, ls[1].Context().Err(), "the other permits")
	require.NoError(t, s.Acquire(soon(t), 3), "they are free")

	began := make(chan quorate.Lease, 1)
	failed := make(chan error, 1)
	go func() {
		failed <- once.New(q, "once").DoContext(soon(t), func(ctx context.Context) error {
			began <- once.Lease(ctx)
			<-ctx.Done()
			return context.Cause(ctx)
		})
	}()
	evict("once", e2e.Receive(t, began))
	require.ErrorIs(t, e2e.Receive(t, failed), quorate.ErrEvicted)

	// A leader gets in line behind the others.
	ctx, cancel := context.WithCancel(t.Context())
	terms, stopped, over := make(chan quorate.Lease, 10), make(chan error, 10), make(chan struct{}, 2)
	run := func(q *quorate.Quorum) {
		go func() {
			_ = leader.New(q, "leader").Run(ctx, leader.Callbacks{
				OnStartedLeading: func(ctx context.Context, l quorate.Lease) { terms <- l; <-ctx.Done() },
				OnStoppedLeading: func(err error) { stopped <- err },
			})
			over <- struct{}{}
		}()
	}
	run(q)
	first := e2e.Receive(t, terms)
	run(p)
	until(t, p, "leader", func(r *inspect.Report) bool { return len(r.Waiters) == 1 })
	evict("leader", first)
	require.ErrorIs(t, e2e.Receive(t, stopped), quorate.ErrEvicted)
	second := e2e.Receive(t, terms)
	assert.Greater(t, second.Token(), first.Token())
	l, err := leader.New(p, "leader").Leader(soon(t))
	require.NoError(t, err)
	assert.Equal(t, second.Token(), l.Term)
	evict("leader", second)
	third := e2e.Receive(t, terms)
	assert.NoError(t, third.Context().Err())
	cancel()
	for range 2 {
		e2e.Receive(t, over)
	}
}

// A caller that waits no longer learns what it waited for, not that the nodes
// were cut off from it.
func TestEvictIsBrokenOff(t *testing.T) {
	for _, trip := range []time.Duration{0, 70 * time.Millisecond} {
		t.Run(trip.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := quoratetest.New(t, 3)
				q, eye := c.Quorum(), c.Quorum()
				m := mutex.New(q, "m")
				m.Lock()
				l := m.Lease()
				c.Partition(q, 0, 1, 2)
				for i := range 3 {
					c.Delay(i, trip)
				}
				for at := range 10 {
					ctx, cancel := context.WithTimeout(t.Context(),
						300*time.Millisecond+time.Duration(at)*10*time.Millisecond)
					err := inspect.Evict(ctx, eye, "m", l.Token())
					over, _ := ctx.Deadline()
					assert.Zero(t, time.Since(over), "at once, and no node is asked again")
					cancel()
					require.ErrorIs(t, err, quorate.ErrHeld, "at %d", at)
					require.ErrorIs(t, err, context.DeadlineExceeded)
				}
			})
		})
	}
}

// A node votes for a claim that waits, as it does not know of the holder any
// more. That the claim does not hold is known with the word of the third node,
// also when that comes late.
func TestEvictOfAWaiterWithAVote(t *testing.T) {
	for _, late := range []time.Duration{0, time.Second} {
		t.Run(late.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := quoratetest.New(t, 3)
				q, p, eye, other := c.Quorum(), c.Quorum(), c.Quorum(), c.Quorum()
				m := mutex.New(q, "m")
				m.Lock()
				defer m.Unlock()
				waits, stop := context.WithCancel(t.Context())
				defer stop()
				go func() { _ = mutex.New(p, "m").LockContext(waits) }()
				c.Partition(q, 0)
				// The waiter itself leaves the holder its place at node 0. A new claim does not.
				time.AfterFunc(10*time.Second, func() { mutex.New(other, "m").TryLock() })
				r := until(t, eye, "m", func(r *inspect.Report) bool {
					return len(r.Waiters) == 1 && r.Waiters[0].Votes == 1
				})
				if late > 0 {
					c.Partition(eye, 2)
					time.AfterFunc(late, func() { c.Partition(eye) })
				}
				began := time.Now()
				err := inspect.Evict(soon(t), eye, "m", r.Waiters[0].Token)
				require.ErrorIs(t, err, quorate.ErrNotHeld, "after %v", time.Since(began))
				assert.Less(t, time.Since(began), 3*time.Second, "no lease is waited for")
				require.NoError(t, m.Lease().Context().Err())
			})
		})
	}
}
