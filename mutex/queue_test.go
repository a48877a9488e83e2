package mutex_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/mutex"
)

// lockAll has n goroutines lock m one after the other, in the order in which
// they came, and returns when all of them wait. Each calls in with its number
// while it holds the lock.
func lockAll(t *testing.T, m *mutex.Mutex, n int, in func(i int)) *sync.WaitGroup {
	t.Helper()
	var all sync.WaitGroup
	for i := range n {
		queued := e2e.NewQueued(context.Background())
		all.Go(func() {
			if assert.NoError(t, m.LockContext(queued)) {
				in(i)
				m.Unlock()
			}
		})
		e2e.Receive(t, queued.In())
	}
	return &all
}

// It runs by itself: on a machine that other tests keep busy a request is
// repeated whose answer is late.
func TestFirstComeFirstServedWithoutARoundTrip(t *testing.T) {
	c := cluster(t)
	q := e2e.Open(t, c, e2e.Timing(quiet))
	m := mutex.New(q, "m")
	before := commands(t, c)
	m.Lock()
	first := m.Lease().Token()

	const n = 100 // more than the hand-overs allowed while another process waits
	var order []int
	var tokens []uint64
	all := lockAll(t, m, n, func(i int) {
		order = append(order, i)
		tokens = append(tokens, m.Lease().Token())
	})
	m.Unlock()
	all.Wait()

	for i := range n {
		assert.Equal(t, i, order[i])
		assert.Equal(t, first+uint64(i)+1, tokens[i])
	}
	require.True(t, e2e.Eventually(func() bool { return commands(t, c)-before >= 2*c.Len() }))
	assert.Equal(t, 2*c.Len(), commands(t, c)-before, "one join and one leave at each node, for %d holds", n+1)
}

func TestTokensGoOnWhenAClaimHasServedAllItCan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := nodes(t).Quorum(e2e.Timing(quiet))
		m := mutex.New(q, "m")
		m.Lock()
		last := m.Lease().Token()
		all := lockAll(t, m, 1100, func(int) { // a claim has 1024 tokens
			token := m.Lease().Token()
			assert.Greater(t, token, last)
			last = token
		})
		m.Unlock()
		all.Wait()
	})
}

func TestRemoteWaiterGetsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = 4 * time.Second
		q := nodes(t).Quorum(e2e.Timing(ttl))
		local, remote := mutex.New(q, "m"), mutex.New(q, "m")
		local.Lock()
		var passes atomic.Int32
		served := make(chan struct{})
		all := lockAll(t, local, 30, func(int) {
			passes.Add(1)
			select { // the work that is done under the lock
			case <-time.After(ttl / 20):
			case <-served: // what comes later shows nothing
			}
		})
		waiting := lockLater(t.Context(), t, remote)
		waiters(t, local, 1)
		require.NoError(t, local.Extend(t.Context()))
		began := time.Now()
		local.Unlock()
		require.NoError(t, e2e.Receive(t, waiting))
		close(served)
		assert.LessOrEqual(t, passes.Load(), int32(2), "one turn, which lasts longer than a 256th of the ttl")
		assert.Less(t, time.Since(began), ttl, "well before thirty local turns, and before any lease would end")
		remote.Unlock()
		all.Wait()
	})
}

func TestTurnsAcrossValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := nodes(t).Quorum(e2e.Timing(quiet))
		holder := mutex.New(q, "m")
		holder.Lock()
		var order []int // guarded by the lock
		var all sync.WaitGroup
		for i := range 10 {
			m := mutex.New(q, "m")
			all.Go(func() {
				m.Lock()
				// Between values nothing but the nodes orders
				// memory: the race detector cannot know that,
				// so a lock orders the appends for it.
				orderMu.Lock()
				order = append(order, i)
				orderMu.Unlock()
				m.Unlock()
			})
			waiters(t, holder, i+1)
		}
		holder.Unlock()
		all.Wait()
		assert.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, order)
	})
}

var orderMu sync.Mutex

func TestPlaceInTheQueuePassesToTheNextLocalWaiter(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	q := e2e.Open(t, c, e2e.Timing(quiet))
	holder, early, late := mutex.New(q, "m"), mutex.New(q, "m"), mutex.New(q, "m")
	holder.Lock()

	ctx, cancel := context.WithCancel(t.Context())
	first := lockLater(ctx, t, early) // takes the place in the nodes' queue
	waiters(t, holder, 1)
	second := lockLater(t.Context(), t, early)
	third := lockLater(t.Context(), t, late)
	waiters(t, holder, 2)
	before := commands(t, c)
	cancel()
	require.ErrorIs(t, e2e.Receive(t, first), context.Canceled)
	assert.Equal(t, before, commands(t, c), "no command for the nodes")

	holder.Unlock()
	require.NoError(t, e2e.Receive(t, second), "ahead of every later waiter")
	select {
	case <-third:
		assert.Fail(t, "two holders")
	default:
	}
	early.Unlock()
	require.NoError(t, e2e.Receive(t, third))
	late.Unlock()
}

func TestCancelledWhileQueuedLocally(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := nodes(t).Quorum(e2e.Timing(quiet))
		m := mutex.New(q, "m")
		m.Lock()
		ctx, cancel := context.WithCancel(t.Context())
		first := lockLater(ctx, t, m)
		second := lockLater(t.Context(), t, m)
		cancel()
		err := e2e.Receive(t, first)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, quorate.ErrHeld)
		m.Unlock()
		require.NoError(t, e2e.Receive(t, second))
		m.Unlock()
	})
}
