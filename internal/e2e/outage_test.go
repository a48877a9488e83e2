package e2e_test

import (
	"context"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// took is how long n locks and unlocks in a row took each, sorted.
func took(t *testing.T, m *mutex.Mutex, n int) []time.Duration {
	t.Helper()
	var all []time.Duration
	for range n {
		began := time.Now()
		require.NoError(t, m.LockContext(t.Context()))
		require.NoError(t, m.UnlockContext(t.Context()))
		all = append(all, time.Since(began))
	}
	slices.Sort(all)
	return all
}

func TestOneServerStopped(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 5} {
		c := redistest.Start(t, n)
		const ttl = 8 * time.Second
		q := e2e.Open(t, c, e2e.Timing(ttl), quorate.WithNodeTimeout(ttl/4))
		m := mutex.New(q, "m")
		const rounds = 300
		before := took(t, m, rounds)
		for i := range n / 2 {
			require.NoError(t, c.Node(i).Stop())
		}
		after := took(t, m, rounds)
		median, p99 := rounds/2, rounds*99/100
		t.Logf("lock and unlock, %d servers: median %v, 99%% %v; %d of them stopped: median %v, 99%% %v, max %v",
			n, before[median], before[p99], n/2, after[median], after[p99], after[rounds-1])
		assert.Less(t, after[rounds-1], ttl/4, "none has waited for the node timeout")
		assert.Less(t, after[median], 10*before[median]+5*time.Millisecond)
		for i := range n / 2 {
			require.NoError(t, c.Node(i).Cont())
		}
		e2e.Clean(t, c)
	}
}

func TestMajorityGone(t *testing.T) {
	t.Parallel()
	for _, how := range []struct {
		name       string
		away, back func(*redistest.Server) error
		says       error // each node's own
	}{
		{"stopped", (*redistest.Server).Stop, (*redistest.Server).Cont, nil},
		{"killed", (*redistest.Server).Kill, (*redistest.Server).Restart, syscall.ECONNREFUSED},
	} {
		t.Run(how.name, func(t *testing.T) {
			c := redistest.Start(t, 3)
			q := e2e.Open(t, c, e2e.Timing(500*time.Millisecond))
			m := mutex.New(q, "m")
			require.NoError(t, m.LockContext(deadline(t)))
			m.Unlock()
			for i := range 2 {
				require.NoError(t, how.away(c.Node(i)))
			}

			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			err := m.LockContext(ctx)
			assert.GreaterOrEqual(t, time.Since(began), 300*time.Millisecond)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorIs(t, err, quorate.ErrNoQuorum)
			assert.NotErrorIs(t, err, quorate.ErrHeld)
			var e *quorate.Error
			require.ErrorAs(t, err, &e)
			assert.Equal(t, 1, e.Votes)
			assert.Equal(t, 2, e.Needed)
			require.Len(t, e.Nodes, 2)
			for i, n := range e.Nodes {
				assert.Equal(t, c.Node(i).Addr(), n.Node)
				assert.ErrorContains(t, err, n.Node)
				require.Error(t, n.Err)
				if how.says != nil {
					assert.ErrorIs(t, n.Err, how.says)
					assert.ErrorIs(t, err, how.says)
				} else {
					assert.ErrorContains(t, n.Err, "has not answered")
				}
			}
			assert.ErrorIs(t, m.TryLockContext(t.Context()), quorate.ErrNoQuorum)

			waiting := make(chan error, 1)
			queued := e2e.NewQueued(t.Context())
			go func() { waiting <- m.LockContext(queued) }()
			e2e.Receive(t, queued.In())
			for i := range 2 {
				require.NoError(t, how.back(c.Node(i)))
			}
			err = e2e.Receive(t, waiting)
			require.NoError(t, err)
			m.Unlock()
			e2e.Clean(t, c)
		})
	}
}

// A server that has stopped while many locks are held and wanted is asked
// again when it comes back, and heals.
func TestStoppedServerComesBack(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c, e2e.Timing(5*time.Second))
	m := mutex.New(q, "m")
	m.Lock()
	lease := m.Lease()
	require.NoError(t, c.Node(0).Stop())
	until := lease.ValidUntil()
	require.True(t, e2e.Eventually(func() bool { return lease.ValidUntil().After(until.Add(time.Second)) }),
		"renewed by the others")
	require.NoError(t, c.Node(0).Cont())
	require.True(t, e2e.Eventually(func() bool {
		left, err := e2e.Leftovers(t.Context(), c.Node(0))
		return err == nil && len(left) > 0 && strings.Contains(strings.Join(left, ""), "quorate:{m}")
	}), "the claim is back on the first")
	require.NoError(t, c.Node(1).Stop())
	until = lease.ValidUntil()
	require.True(t, e2e.Eventually(func() bool { return lease.ValidUntil().After(until.Add(time.Second)) }),
		"and the first counts again")
	require.NoError(t, c.Node(1).Cont())
	assert.NoError(t, lease.Context().Err())
	m.Unlock()
	e2e.Clean(t, c)
}
