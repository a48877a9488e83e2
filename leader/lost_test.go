package leader_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/mutex"
)

func TestLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = 800 * time.Millisecond
		c := nodes(t)
		es, _ := fleet(t, c, e2e.Timing(ttl), "a", "b")
		a, b := es[0], es[1]
		require.NoError(t, a.Campaign(soon(t), "old"))
		lease := a.Lease()
		thaw := freeze(c, 2)
		require.NoError(t, a.HealthCheck(0))
		require.NoError(t, a.HealthCheck(-time.Hour), "none below 0")
		e2e.Receive(t, lease.Context().Done())
		require.ErrorIs(t, context.Cause(lease.Context()), quorate.ErrLost)
		require.ErrorIs(t, a.Proclaim(soon(t), "x"), quorate.ErrLost)
		require.Equal(t, lease, a.Lease(), "the lost one")
		require.NoError(t, a.HealthCheck(time.Hour))
		time.Sleep(time.Millisecond)
		err := a.HealthCheck(0)
		require.ErrorIs(t, err, quorate.ErrLost)
		require.ErrorContains(t, err, "the term ended")
		require.ErrorIs(t, a.Resign(soon(t)), quorate.ErrLost)
		require.NoError(t, a.HealthCheck(0))
		require.ErrorIs(t, a.Resign(soon(t)), quorate.ErrNotHeld)
		thaw()

		require.NoError(t, b.Campaign(soon(t), "new"))
		require.Greater(t, b.Lease().Token(), lease.Token())
		l, err := a.Leader(soon(t))
		require.NoError(t, err)
		assert.Equal(t, "new", l.Value)
		require.NoError(t, b.Resign(soon(t)))
		require.NoError(t, a.Campaign(soon(t), "again"), "it can be used again")
		require.NoError(t, a.Resign(soon(t)))
	})
}

// A loss that the caller has not looked at does not keep it from campaigning
// again.
func TestCampaignAfterALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = time.Second
		q := nodes(t).Quorum(e2e.Timing(ttl))
		a := leader.New(q, "e", leader.WithID("a"), quorate.WithoutRenewal())
		require.NoError(t, a.Campaign(soon(t), ""))
		first := a.Lease()
		e2e.Receive(t, first.Context().Done())
		require.NoError(t, a.Campaign(soon(t), ""))
		require.Greater(t, a.Lease().Token(), first.Token())
		require.NoError(t, a.Resign(soon(t)))
	})
}

func TestClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := nodes(t)
		es, m := fleet(t, c, e2e.Timing(quiet), "b")
		q := c.Quorum(e2e.Timing(quiet))
		a, waiting := leader.New(q, "e", leader.WithID("a")), leader.New(q, "e", leader.WithID("w"))
		require.NoError(t, a.Campaign(soon(t), ""))
		done := campaign(soon(t), waiting, "")
		waiters(t, m, 1)
		behind := campaign(soon(t), waiting, "")
		require.NoError(t, q.Close())
		require.ErrorIs(t, e2e.Receive(t, done), quorate.ErrClosed)
		require.ErrorIs(t, e2e.Receive(t, behind), quorate.ErrClosed)
		require.ErrorIs(t, context.Cause(a.Lease().Context()), quorate.ErrClosed)
		require.NoError(t, es[0].Campaign(soon(t), ""), "closing leaves")
		require.NoError(t, es[0].Resign(soon(t)))

		require.ErrorIs(t, a.Proclaim(soon(t), ""), quorate.ErrClosed)
		require.ErrorIs(t, a.Resign(soon(t)), quorate.ErrClosed)
		require.ErrorIs(t, a.Campaign(soon(t), ""), quorate.ErrClosed)
		_, err := a.Leader(soon(t))
		require.ErrorIs(t, err, quorate.ErrClosed)
		require.ErrorIs(t, a.Run(soon(t),
			leader.Callbacks{OnStartedLeading: func(context.Context, quorate.Lease) {}}), quorate.ErrClosed)
		for range a.Observe(soon(t)) {
			require.Fail(t, "nothing is to be seen after Close")
		}
	})
}

// Resign does not wait for a Proclaim that cannot be confirmed, and ends it.
func TestResignDuringProclaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := nodes(t)
		es, _ := fleet(t, c, e2e.Timing(4*time.Second), "a", "b")
		a, b := es[0], es[1]
		require.NoError(t, a.Campaign(soon(t), "one"))
		thaw := freeze(c, 2)
		done := make(chan error, 1)
		queued := e2e.NewQueued(soon(t))
		go func() { done <- a.Proclaim(queued, "two") }()
		e2e.Receive(t, queued.In())
		require.ErrorIs(t, a.Resign(soon(t)), quorate.ErrNoQuorum, "so few have confirmed it")
		require.ErrorIs(t, e2e.Receive(t, done), quorate.ErrNotHeld)
		thaw()
		require.NoError(t, b.Campaign(soon(t), "three"), "it has resigned all the same")
		l, err := a.Leader(soon(t))
		require.NoError(t, err)
		require.Equal(t, "three", l.Value)
		require.NoError(t, b.Resign(soon(t)))
	})
}

// spoil puts something in the place of the record on two servers.
func spoil(t *testing.T, c *redistest.Cluster) (repair func()) {
	t.Helper()
	const key = "quorate:{e}:r"
	for i := range 2 {
		require.NoError(t, c.Node(i).Client().Del(t.Context(), key).Err())
		require.NoError(t, c.Node(i).Client().LPush(t.Context(), key, "x").Err())
	}
	return func() {
		for i := range 2 {
			require.NoError(t, c.Node(i).Client().Del(t.Context(), key).Err())
		}
	}
}

// A candidate that no majority can record does not lead.
func TestLeaderThatCannotBeRecorded(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	q := e2e.Open(t, c, e2e.Timing(quiet))
	a, m := leader.New(q, "e", leader.WithID("a")), mutex.New(q, "e")
	repair := spoil(t, c)
	err := a.Campaign(soon(t), "")
	require.ErrorIs(t, err, quorate.ErrNoQuorum)
	require.ErrorContains(t, err, "WRONGTYPE")
	require.Nil(t, a.Lease())
	require.True(t, e2e.Eventually(m.TryLock), "it has left the line")
	m.Unlock()
	repair()
	require.NoError(t, a.Campaign(soon(t), ""))
	require.NoError(t, a.Resign(soon(t)))
}

// Run says so, and keeps trying.
func TestRunThatCannotBeRecorded(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	var log e2e.Log
	a := leader.New(e2e.Open(t, c, e2e.Timing(quiet), log.Option()), "e", leader.WithOneTerm())
	repair := spoil(t, c)
	s := newStage()
	cb := s.callbacks()
	ran := run(soon(t), a, cb)
	require.True(t, e2e.Eventually(func() bool { return len(log.Lines("leader keeps trying")) > 0 }))
	require.Empty(t, s.started)
	repair()
	tm := e2e.Receive(t, s.started)
	close(tm.leave)
	require.NoError(t, e2e.Receive(t, ran))
	require.NoError(t, e2e.Receive(t, s.stopped))

	// It does not try again when its context ends, or the Quorum is closed.
	repair = spoil(t, c)
	ctx, cancel := context.WithCancel(soon(t))
	before := len(log.Lines("leader keeps trying"))
	ran = run(ctx, a, cb)
	require.True(t, e2e.Eventually(func() bool { return len(log.Lines("leader keeps trying")) > before }))
	cancel()
	require.ErrorIs(t, e2e.Receive(t, ran), context.Canceled)
	repair()
}
