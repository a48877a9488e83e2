package leader_test

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/leader"
)

// seen is one state or error that an observer got.
type seen struct {
	l   leader.Leader
	err error
}

// observe observes in a goroutine that is never slow.
func observe(t *testing.T, e *leader.Election) <-chan seen {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	all, over := make(chan seen, 1000), make(chan struct{})
	go func() {
		defer close(over)
		for l, err := range e.Observe(ctx) {
			all <- seen{l, err}
		}
	}()
	t.Cleanup(func() {
		cancel()
		e2e.Receive(t, over)
	})
	return all
}

// A push brings each change: the observer's next poll is later than this test.
func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := nodes(t)
		es, m := fleet(t, c, e2e.Timing(quiet), "a", "b", "watches")
		a, b := es[0], es[1]
		all := observe(t, es[2])
		require.ErrorIs(t, e2e.Receive(t, all).err, leader.ErrNoLeader, "the present state comes first")

		require.NoError(t, a.Campaign(soon(t), "one"))
		s := e2e.Receive(t, all)
		require.NoError(t, s.err)
		assert.Equal(t, "a", s.l.ID)
		assert.Equal(t, "one", s.l.Value)
		assert.Equal(t, a.Lease().Token(), s.l.Term)
		assert.Positive(t, s.l.Left)

		require.NoError(t, a.Proclaim(soon(t), "two"))
		s = e2e.Receive(t, all)
		require.NoError(t, s.err)
		assert.Equal(t, "two", s.l.Value)
		assert.Equal(t, a.Lease().Token(), s.l.Term)

		done := campaign(soon(t), b, "three")
		waiters(t, m, 1)
		require.NoError(t, a.Resign(soon(t)))
		require.NoError(t, e2e.Receive(t, done))
		s = e2e.Receive(t, all)
		if errors.Is(s.err, leader.ErrNoLeader) { // it may have been seen in between
			s = e2e.Receive(t, all)
		}
		require.NoError(t, s.err)
		assert.Equal(t, "b", s.l.ID)
		assert.Equal(t, b.Lease().Token(), s.l.Term)

		late := observe(t, a)
		s = e2e.Receive(t, late)
		require.NoError(t, s.err)
		assert.Equal(t, "three", s.l.Value, "a later observer sees the present state first")

		require.NoError(t, b.Resign(soon(t)))
		for _, all := range []<-chan seen{all, late} {
			s = e2e.Receive(t, all)
			require.ErrorIs(t, s.err, leader.ErrNoLeader)
			require.ErrorContains(t, s.err, `observe "e": no leader`)
			assert.Zero(t, s.l)
			require.Empty(t, all, "once per change")
		}
	})
}

// A leader that ends without resigning is seen to be gone when its lease has
// ended.
func TestObserveALeaseThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = 600 * time.Millisecond
		c := nodes(t)
		es, _ := fleet(t, c, e2e.Timing(ttl), "watches")
		a := leader.New(c.Quorum(e2e.Timing(ttl)), "e", leader.WithID("a"), quorate.WithoutRenewal())
		all := observe(t, es[0])
		require.ErrorIs(t, e2e.Receive(t, all).err, leader.ErrNoLeader)
		for range 2 {
			require.NoError(t, a.Campaign(soon(t), ""))
			lease := a.Lease()
			s := e2e.Receive(t, all)
			require.NoError(t, s.err)
			require.Equal(t, lease.Token(), s.l.Term)
			e2e.Receive(t, lease.Context().Done())
			s = e2e.Receive(t, all)
			require.ErrorIs(t, s.err, leader.ErrNoLeader)
		}
		require.ErrorIs(t, a.Resign(soon(t)), quorate.ErrLost)
	})
}

// A slow observer gets the newest state, and never an old one after a newer
// one.
func TestObserveSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const values = 50
		es, _ := fleet(t, nodes(t), e2e.Timing(quiet), "a", "watches")
		a := es[0]
		require.NoError(t, a.Campaign(soon(t), "0"))
		next, stop := iter.Pull2(es[1].Observe(soon(t)))
		defer stop()
		l, err, _ := next()
		require.NoError(t, err)
		require.Equal(t, "0", l.Value)
		for i := range values {
			require.NoError(t, a.Proclaim(soon(t), strconv.Itoa(i+1)))
		}
		last, reported := 0, 0
		for ; last < values; reported++ {
			l, err, ok := next()
			require.True(t, ok)
			require.NoError(t, err)
			n, err := strconv.Atoi(l.Value)
			require.NoError(t, err)
			require.Greater(t, n, last, "never an old one")
			last = n
		}
		require.LessOrEqual(t, reported, 3, "most are left out")

		require.NoError(t, a.Resign(soon(t)))
		require.NoError(t, a.Campaign(soon(t), "again"))
		require.True(t, e2e.Eventually(func() bool {
			l, err, _ = next()
			return err == nil && l.Value == "again"
		}))
		require.Equal(t, a.Lease().Token(), l.Term)
		require.NoError(t, a.Resign(soon(t)))
	})
}

// An observer gets one error while the nodes cannot be reached, and the state
// when they can be again.
func TestObserveWithoutQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = 800 * time.Millisecond
		c := nodes(t)
		es, _ := fleet(t, c, e2e.Timing(ttl), "a", "watches")
		a := es[0]
		require.NoError(t, a.Campaign(soon(t), ""))
		all := observe(t, es[1])
		require.NoError(t, e2e.Receive(t, all).err)
		for range 2 {
			thaw := freeze(c, 2)
			lease := a.Lease()
			s := e2e.Receive(t, all)
			require.ErrorIs(t, s.err, quorate.ErrNoQuorum)
			require.NotErrorIs(t, s.err, context.DeadlineExceeded, "the context of Observe goes on")
			require.NotErrorIs(t, s.err, leader.ErrNoLeader)
			require.Zero(t, s.l)
			e2e.Receive(t, lease.Context().Done())
			require.Empty(t, all, "once, however long it lasts")
			thaw()
			require.ErrorIs(t, a.Resign(soon(t)), quorate.ErrLost)
			require.NoError(t, a.Campaign(soon(t), ""))
			// The nodes may still have the old term for a moment,
			// before they come to what was sent to them meanwhile.
			for s = e2e.Receive(t, all); s.l.Term != a.Lease().Token(); s = e2e.Receive(t, all) {
				if s.err != nil {
					require.ErrorIs(t, s.err, leader.ErrNoLeader)
				} else {
					require.Equal(t, lease.Token(), s.l.Term)
				}
			}
		}
		require.NoError(t, a.Resign(soon(t)))
	})
}

// However an observation ends, it leaves nothing behind: TestMain sees to the
// goroutines and cluster to the keys.
func TestObserveEnds(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	q := e2e.Open(t, c, e2e.Timing(300*time.Millisecond)) // nodes keep the watch of a closed observer as long
	e := leader.New(q, "e", leader.WithID("a"))
	seq := e.Observe(soon(t))
	for range 3 { // a new watch each time
		for _, err := range seq {
			require.ErrorIs(t, err, leader.ErrNoLeader)
			break
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	for _, err := range e.Observe(ctx) {
		require.ErrorIs(t, err, leader.ErrNoLeader)
		n++
		cancel()
	}
	require.Equal(t, 1, n, "the context's end is not reported")
	require.Panics(t, func() {
		for range e.Observe(soon(t)) {
			panic("in the loop")
		}
	})
	first, over := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for range e.Observe(soon(t)) {
			n++
			close(first)
		}
		over <- n
	}()
	e2e.Receive(t, first)
	require.NoError(t, q.Close())
	require.Equal(t, 1, e2e.Receive(t, over), "nor is Close")
}
