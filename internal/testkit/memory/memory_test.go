package memory_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/testkit/memory"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/once"
	"github.com/quorate/quorate/rwmutex"
	"github.com/quorate/quorate/semaphore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute // only against hanging

func open(t *testing.T, nodes memory.Nodes, opts ...quorate.Option) *quorate.Quorum {
	t.Helper()
	q, err := quorate.New(nodes.Clients(t), append(opts, nodes.Option(), quorate.WithLogger(nil))...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, q.Close()) })
	require.NoError(t, q.Bootstrap(soon(t)))
	return q
}

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// All primitives work on nodes in memory, and leave nothing behind.
func TestLibraryWithoutServers(t *testing.T) {
	t.Parallel()
	nodes := memory.NewNodes(3)
	a, b := open(t, nodes), open(t, nodes)
	t.Run("mutex", func(t *testing.T) {
		m, n := mutex.New(a, "m"), mutex.New(b, "m")
		require.NoError(t, m.LockContext(soon(t)))
		require.ErrorIs(t, n.TryLockContext(soon(t)), quorate.ErrHeld)
		first := m.Lease().Token()
		got := make(chan error, 1)
		go func() { got <- n.LockContext(soon(t)) }()
		m.Unlock()
		require.NoError(t, <-got, "the waiter's turn")
		assert.Greater(t, n.Lease().Token(), first)
		require.NoError(t, n.UnlockContext(soon(t)))
	})
	t.Run("contended", func(t *testing.T) {
		count := 0
		var all sync.WaitGroup
		for _, q := range []*quorate.Quorum{a, b, a, b} {
			m := mutex.New(q, "c")
			all.Go(func() {
				for range 50 {
					if assert.NoError(t, m.LockContext(soon(t))) {
						count++
						m.Unlock()
					}
				}
			})
		}
		all.Wait()
		assert.Equal(t, 200, count)
	})
	t.Run("rwmutex", func(t *testing.T) {
		r, s, w := rwmutex.New(a, "rw"), rwmutex.New(b, "rw"), rwmutex.New(b, "rw")
		require.NoError(t, r.RLockContext(soon(t)))
		require.NoError(t, s.RLockContext(soon(t)))
		got := make(chan error, 1)
		go func() { got <- w.LockContext(soon(t)) }()
		r.RUnlock()
		s.RUnlock()
		require.NoError(t, <-got)
		w.Unlock()
	})
	t.Run("semaphore", func(t *testing.T) {
		s, u := semaphore.NewWeighted(a, "s", 3), semaphore.NewWeighted(b, "s", 3)
		require.NoError(t, s.Acquire(soon(t), 2))
		require.NoError(t, u.Acquire(soon(t), 1))
		assert.False(t, u.TryAcquire(1))
		got := make(chan error, 1)
		go func() { got <- u.Acquire(soon(t), 2) }()
		s.Release(2)
		require.NoError(t, <-got)
		u.Release(3)
		require.NoError(t, s.Resize(soon(t), 5))
		require.NoError(t, u.Acquire(soon(t), 5))
		u.Release(5)
	})
	t.Run("once and leader", func(t *testing.T) {
		runs := 0
		for _, q := range []*quorate.Quorum{a, b} {
			require.NoError(t, once.New(q, "o").DoContext(soon(t), func(context.Context) error { runs++; return nil }))
		}
		assert.Equal(t, 1, runs)
		e := leader.New(a, "l", leader.WithID("me"))
		require.NoError(t, e.Campaign(soon(t), "here"))
		l, err := leader.New(b, "l").Leader(soon(t))
		require.NoError(t, err)
		assert.Equal(t, "me", l.ID)
		require.NoError(t, e.Resign(soon(t)))
	})
	for i, n := range nodes {
		require.Eventually(t, func() bool { return n.Size() == 0 }, patience,
			time.Millisecond, "claims at node %d", i)
	}
}

// A minority that stops, hangs or loses its data keeps no call waiting, and a
// hold lives on.
func TestNodesInTrouble(t *testing.T) { synctest.Test(t, nodesInTrouble) }

func nodesInTrouble(t *testing.T) {
	nodes := memory.NewNodes(3)
	q := open(t, nodes)
	m := mutex.New(q, "held")
	require.NoError(t, m.LockContext(soon(t)))
	lock := func() {
		t.Helper()
		n := mutex.New(q, "other")
		require.NoError(t, n.LockContext(soon(t)))
		n.Unlock()
	}
	nodes[0].Freeze()
	lock()
	nodes[0].Thaw()
	nodes[1].Cut()
	lock()
	require.NoError(t, m.Extend(soon(t)))
	nodes[2].Stop()
	lock()
	nodes[2].Start(false) // it does not vote for a guard time
	lock()
	require.NoError(t, m.Extend(soon(t)))
	m.Unlock()
}
