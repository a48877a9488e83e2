package quorate_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/lateness"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/quoratetest"
)

// warning is one call of what WithWarning has called.
type warning struct {
	lease quorate.Lease
	left  time.Duration
}

func warnings(before time.Duration) (chan warning, quorate.SharedOption) {
	got := make(chan warning, 16)
	return got, quorate.WithWarning(before,
		func(l quorate.Lease) { got <- warning{l, time.Until(l.ValidUntil())} })
}

// Each kind of hold is warned of once when its nodes stop, again when they have
// come back and stop once more, and not while all is well.
func TestWarning(t *testing.T) {
	for what, w := range wants {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, option := warnings(3 * time.Second)
				c := quoratetest.New(t, 3)
				q := c.Quorum(option)
				l, _ := w.hold(t, q, nil)
				time.Sleep(time.Hour)
				require.Empty(t, got, "all is well")
				for range 2 {
					c.Partition(q, 0, 1)
					warned := <-got
					for what == "group" && warned.lease.Token() != l.Token() {
						warned = <-got // of its other name
					}
					assert.Equal(t, l.Token(), warned.lease.Token())
					assert.InDelta(t, 3, warned.left.Seconds(), 0.1)
					require.NoError(t, l.Context().Err())
					time.Sleep(2 * time.Second)
					c.Partition(q)
					time.Sleep(time.Minute)
					require.NoError(t, l.Context().Err(), "it is renewed again")
				}
				if what != "group" {
					require.Empty(t, got, "once until a renewal succeeds")
				}
			})
		})
	}
}

// A hold that is not renewed is warned of before its end, and one that has been
// given back is not.
func TestWarningWithoutRenewal(t *testing.T) {
	for what, option := range map[string]quorate.SharedOption{"not renewed": quorate.WithoutRenewal(),
		"held for too long": quorate.WithMaxHold(time.Minute)} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, warn := warnings(time.Second)
				m := mutex.New(quoratetest.New(t, 3).Quorum(option, warn), "m")
				m.Lock()
				l := m.Lease()
				warned := <-got
				assert.Same(t, l, warned.lease)
				assert.InDelta(t, 1, warned.left.Seconds(), 0.1)
				<-l.Context().Done()
				require.Empty(t, got)
				m.Unlock()
				require.True(t, m.TryLock())
				m.Unlock()
				time.Sleep(time.Hour)
				assert.Empty(t, got)
			})
		})
	}
}

// A claim that lingers has no holder to warn.
func TestWarningOfAClaimThatLingers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got, warn := warnings(time.Second)
		c := quoratetest.New(t, 3)
		q := c.Quorum(warn, quorate.WithLinger(time.Hour))
		m := mutex.New(q, "m")
		require.True(t, m.TryLock())
		m.Unlock()
		c.Partition(q, 0, 1)
		time.Sleep(time.Minute)
		assert.Empty(t, got)
	})
}

func TestWarningThatWouldComeWhileAllIsWell(t *testing.T) {
	q := quoratetest.New(t, 1).Quorum()
	for _, before := range []time.Duration{-1, 0, 4*time.Second + 1, 6 * time.Second} {
		assert.PanicsWithValue(t,
			"quorate: mutex.New: WithWarning("+before.String()+
				"): must be above 0 and at most half of the TTL (8s); a longer one would warn before each renewal",
			func() {
				mutex.New(q, "m", quorate.WithWarning(before, func(quorate.Lease) {}))
			})
	}
	assert.NotPanics(t, func() {
		mutex.New(q, "m", quorate.WithWarning(4*time.Second, func(quorate.Lease) {}))
		mutex.New(q, "m", quorate.WithWarning(0, nil))
	})
}

// The same on servers, of which two stand still: the holder unlocks in time.
func TestWarningOnServers(t *testing.T) {
	t.Parallel()
	const ttl = 8 * time.Second
	late := lateness.Measure(t)
	c := redistest.Start(t, 3)
	type unlocked struct{ held, before error }
	told := make(chan unlocked, 1)
	var m *mutex.Mutex
	m = mutex.New(e2e.Open(t, c, e2e.Timing(ttl)), "m", quorate.WithWarning(ttl/2, func(l quorate.Lease) {
		held := l.Context().Err()
		m.Unlock()
		told <- unlocked{held, context.Cause(l.Context())}
	}))
	m.Lock()
	l := m.Lease()
	began := time.Now()
	require.NoError(t, c.Node(0).Stop())
	require.NoError(t, c.Node(1).Stop())
	u := e2e.Receive(t, told)
	require.NoError(t, u.held, "the machine stood still for %v", late.Most())
	require.ErrorIs(t, u.before, quorate.ErrReleased)
	assert.Greater(t, time.Since(began), ttl/6)
	assert.Less(t, time.Until(l.ValidUntil()), ttl/2+time.Second)
}
