package e2e_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/proxy"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// jumps counts the clock jumps that an observer gets.
type jumps struct {
	mu   sync.Mutex
	seen []quorate.Event
}

func (j *jumps) Observe(e quorate.Event) {
	if e.Kind == quorate.EventClockJumped {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.seen = append(j.seen, e)
	}
}

func (j *jumps) all() []quorate.Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.seen
}

// A holder has two nodes of three, and the clock of one of them jumps ahead:
// its lease has ended there. A waiter with the third node's vote must not have
// the lock before the holder has lost it.
func TestClockThatEndsALease(t *testing.T) {
	t.Parallel()
	const ttl = 2 * time.Second
	for name, waits := range map[string]bool{"waits already": true, "comes then": false} {
		t.Run(name, func(t *testing.T) {
			c := redistest.Start(t, 3, redistest.WithClock())
			e2e.Open(t, c, e2e.Timing(ttl))
			urls := c.URLs()
			var seen jumps // by either: the first to see it has the node begin a guard time
			proxies, via := e2e.Proxies(t, urls, proxy.Fault{})
			proxies[2].Hold()
			m := mutex.New(e2e.OpenAt(t, via, e2e.Timing(ttl), quorate.WithObserver(&seen)), "m")
			q := e2e.OpenAt(t, urls, e2e.Timing(ttl), quorate.WithObserver(&seen))
			require.NoError(t, m.LockContext(deadline(t)))
			lease := m.Lease()
			other := mutex.New(q, "m")
			// It knows the time of each node before it hears of the second once more.
			require.True(t, e2e.Eventually(func() bool {
				r, err := q.Check(deadline(t))
				return err == nil && r.Ready == 3
			}))
			require.True(t, e2e.Eventually(func() bool {
				err := other.TryLockContext(deadline(t))
				// A client that connects after the jump cannot see it.
				return errors.Is(err, quorate.ErrHeld) &&
					strings.Contains(err.Error(), c.Node(1).Addr()+" others are ahead")
			}))
			locked := make(chan error, 1)
			lock := func() { locked <- other.LockContext(deadline(t)) }
			if waits {
				go lock()
				require.True(t, e2e.Eventually(func() bool { return waiting(t, c, "m", 2) }))
			}
			require.NoError(t, c.Node(1).SetClock(time.Minute, 1))
			if !waits {
				go lock()
			}
			require.NoError(t, <-locked)
			assert.Error(t, lease.Context().Err(), "the first holder's context has ended before")
			other.Unlock()

			// A client that has only just connected may be unable to tell whose
			// clock it was. Then it has doubted itself, and there is no event.
			for _, e := range seen.all() {
				assert.Equal(t, c.Node(1).Addr(), e.Node)
				assert.InDelta(t, time.Minute, e.Took, float64(5*time.Second))
			}
		})
	}
}

// waiting: so many claims of name are queued at one of the nodes.
func waiting(t *testing.T, c *redistest.Cluster, name string, claims int64) bool {
	for i := range 3 {
		n, err := c.Node(i).Client().ZCard(t.Context(), "quorate:{"+name+"}:q").Result()
		require.NoError(t, err)
		if n >= claims {
			return true
		}
	}
	return false
}

// A clock that is set costs its own node a guard time, and no holder its lock.
// The observer and Check report it. One that only runs fast or slow costs
// nothing.
func TestClockThatJumps(t *testing.T) {
	t.Parallel()
	const ttl = 4 * time.Second // a machine may stand still for seconds
	const guard = 2*ttl + 20*time.Millisecond
	c := redistest.Start(t, 3, redistest.WithClock())
	var seen jumps
	q := e2e.Open(t, c, e2e.Guarded(ttl, guard), quorate.WithObserver(&seen))
	m := mutex.New(q, "m")
	require.NoError(t, m.LockContext(deadline(t)))
	lease := m.Lease()

	require.NoError(t, c.Node(0).SetClock(0, 1.002))
	require.NoError(t, c.Node(1).SetClock(0, 0.998))
	time.Sleep(ttl / 2) // some renewals
	assert.Empty(t, seen.all(), "they run fast and slow")
	for i := range 2 { // or they would be further apart in the end than clocks may be
		require.NoError(t, c.Node(i).ShiftClock(0, 1))
	}

	for i, by := range []time.Duration{time.Minute, -time.Minute} {
		require.NoError(t, c.Node(2).SetClock(by, 1))
		require.True(t, e2e.Eventually(func() bool { return len(seen.all()) > i }), "%v", by)
		assert.Equal(t, c.Node(2).Addr(), seen.all()[i].Node)
		var r quorate.Report
		require.True(t, e2e.Eventually(func() bool {
			var err error
			r, err = q.Check(deadline(t))
			require.NoError(t, err)
			return r.Nodes[2].Recovering > 0
		}), "it is within its guard time")
		assert.LessOrEqual(t, r.Nodes[2].Recovering, guard)
		assert.Equal(t, 2, r.Ready)
		assert.NotZero(t, r.Nodes[2].Jumped)
		assert.WithinDuration(t, time.Now(), r.Nodes[2].JumpedAt, e2e.Patience)
		assert.Contains(t, r.Nodes[2].Warnings[0]+r.Nodes[2].Warnings[1], "jumped")
		require.True(t, e2e.Eventually(func() bool {
			r, err := q.Check(deadline(t))
			require.NoError(t, err)
			return r.Ready == 3
		}), "and then votes again")
		assert.NoError(t, lease.Context().Err(), "no holder has lost anything")
	}
	m.Unlock()
	require.NoError(t, m.LockContext(deadline(t)))
	m.Unlock()
	assert.Len(t, seen.all(), 2)
}

// When all nodes seem to have jumped it is the client's own clock that stood
// still, as on a machine that was asleep. That is nothing to punish the nodes
// for.
func TestClockThatStoodStill(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3, redistest.WithClock())
	var seen jumps
	q := e2e.Open(t, c, e2e.Timing(8*time.Second), quorate.WithObserver(&seen))
	m := mutex.New(q, "m")
	lock := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), e2e.Patience)
		defer cancel()
		return m.LockContext(ctx)
	}
	require.NoError(t, lock())
	m.Unlock()
	e2e.Clean(t, c) // nothing is on its way that would see one of them jump before the others
	for i := range 3 {
		require.NoError(t, c.Node(i).SetClock(time.Hour, 1))
	}
	require.NoError(t, lock())
	m.Unlock()
	assert.Empty(t, seen.all())
	r, err := q.Check(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 3, r.Ready)
}
