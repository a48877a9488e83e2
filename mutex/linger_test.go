package mutex_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/mutex"
)

func TestLingerCostsNoCommand(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	q := e2e.Open(t, c, e2e.Timing(quiet), quorate.WithLinger(quiet))
	m := mutex.New(q, "m")
	m.Lock()
	token := m.Lease().Token()
	before := commands(t, c)
	m.Unlock()
	for i := range 100 {
		require.True(t, m.TryLock())
		assert.Equal(t, token+uint64(i)+1, m.Lease().Token())
		m.Unlock()
		m.Lock()
		token++
		m.Unlock()
	}
	assert.Equal(t, before, commands(t, c))

	before = commands(t, c)
	require.NoError(t, q.Close(), "gives up what lingers")
	assert.Equal(t, before+c.Len(), commands(t, c))
}

func TestLingerEndsWhenSomebodyElseAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := nodes(t)
		q := c.Quorum(e2e.Timing(quiet), quorate.WithLinger(quiet))
		p := c.Quorum(e2e.Timing(quiet))
		a, b := mutex.New(q, "m"), mutex.New(p, "m")
		for range 10 {
			require.True(t, e2e.Eventually(a.TryLock))
			a.Unlock()
			require.NoError(t, e2e.ReceiveWithin(t, quiet/6, lockLater(t.Context(), t, b)))
			b.Unlock()
		}
		// While it is held, a waiter waits for Unlock, and not for the
		// lingering.
		a.Lock()
		waiting := lockLater(t.Context(), t, b)
		waiters(t, b, 1)
		select {
		case <-waiting:
			require.Fail(t, "two holders")
		default:
		}
		a.Unlock()
		require.NoError(t, e2e.ReceiveWithin(t, quiet/6, waiting))
		b.Unlock()
	})
}

func TestLingerEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := nodes(t).Quorum(e2e.Timing(quiet))
		m := mutex.New(q, "m", quorate.WithLinger(300*time.Millisecond))
		require.True(t, m.TryLock())
		m.Unlock()
		_, err := m.Holder(t.Context())
		require.NoError(t, err, "lingers")
		require.True(t, e2e.Eventually(func() bool {
			_, err = m.Holder(t.Context())
			return err != nil
		}))
		require.ErrorIs(t, err, quorate.ErrNotHeld)
	})
}

func TestLingeringClaimIsLost(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	var seen observer
	q := e2e.Open(t, c, e2e.Timing(400*time.Millisecond), quorate.WithLinger(quiet), quorate.WithObserver(&seen))
	m := mutex.New(q, "m")
	m.Lock()
	token := m.Lease().Token()
	m.Unlock()
	for i := range c.Len() {
		require.NoError(t, c.Node(i).Restart()) // without their data: the guard time passes first
	}
	require.True(t, e2e.Eventually(func() bool { return slices.Contains(seen.kinds(), quorate.EventLost) }))
	m.Lock()
	assert.Greater(t, m.Lease().Token(), token+1024, "by a new claim")
	m.Unlock()
}
