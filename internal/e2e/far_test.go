package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/lateness"
	"github.com/quorate/quorate/internal/testkit/memory"
	"github.com/quorate/quorate/internal/testkit/proxy"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/members"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/once"
	"github.com/quorate/quorate/semaphore"
)

// However far the nodes are, a client connects, and a free name is had by a
// try: here a round trip takes longer than the node timeout, and five of them
// longer than a node may be silent.
func TestFarNodes(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	near, err := quorate.Connect(t.Context(), c.URLs())
	require.NoError(t, err)
	require.NoError(t, near.Bootstrap(t.Context()))
	require.NoError(t, near.Close())
	for _, far := range []int{3, 2} {
		t.Run(fmt.Sprint(far, " of 3"), func(t *testing.T) {
			t.Parallel()
			_, urls := e2e.Proxies(t, c.URLs(), proxy.Fault{Delay: 250 * time.Millisecond})
			copy(urls, c.URLs()[:3-far])
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			q, err := quorate.Connect(ctx, urls, e2e.Through())
			require.NoError(t, err)
			defer func() { assert.NoError(t, q.Close()) }()
			lateness.Undisturbed(t, func() error { return farLock(ctx, mutex.New(q, fmt.Sprint("far", far))) })
		})
	}
}

// So do brand-new nodes record their set: the three round trips that this takes
// are longer than the pause after which a node without a vote is judged again.
func TestFarNodesRecordTheirSet(t *testing.T) {
	t.Parallel()
	_, urls := e2e.Proxies(t, redistest.Start(t, 3).URLs(), proxy.Fault{Delay: 250 * time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	q, err := quorate.Connect(ctx, urls, e2e.Through())
	require.NoError(t, err)
	defer func() { assert.NoError(t, q.Close()) }()
	_, err = members.Get(ctx, q)
	require.NoError(t, err)
}

// Each of the three questions may take as long as a connection may be silent, so
// nodes record their set however far they are, with an operator's word as well.
// A node timeout that is too short for them does not prevent it.
func TestVeryFarNodesRecordTheirSet(t *testing.T) {
	for _, c := range []struct {
		timeout  time.Duration
		declared bool
	}{{200 * time.Millisecond, false}, {200 * time.Millisecond, true}, {50 * time.Millisecond, false}} {
		synctest.Test(t, func(t *testing.T) {
			nodes := memory.NewNodes(3)
			for _, n := range nodes {
				n.Delay(1500 * time.Millisecond)
			}
			q, err := quorate.New(nodes.Clients(t), nodes.Option(), quorate.WithNodeTimeout(c.timeout))
			require.NoError(t, err)
			defer func() { assert.NoError(t, q.Close()) }()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if c.declared {
				require.NoError(t, q.Bootstrap(ctx))
			}
			_, err = members.Get(ctx, q)
			require.NoError(t, err)
		})
	}
}

// Calls that ask a node several questions, one after another, give each of them
// the time that the node needs: Check, a try of more permits than the caller knows
// of, and the repair of a node that has lost its data.
func TestQuestionsToVeryFarNodes(t *testing.T) {
	for _, timeout := range []time.Duration{200 * time.Millisecond, 50 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			nodes := memory.NewNodes(3)
			for _, n := range nodes {
				n.Delay(1500 * time.Millisecond)
			}
			q, err := quorate.New(nodes.Clients(t), nodes.Option(), quorate.WithNodeTimeout(timeout))
			require.NoError(t, err)
			defer func() { assert.NoError(t, q.Close()) }()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			_, err = members.Get(ctx, q)
			require.NoError(t, err)
			repaired := func(n int) bool {
				return e2e.EventuallyWithin(time.Minute, func() bool {
					report, err := q.Check(ctx)
					return err == nil && report.Nodes[n].Err == nil && report.Nodes[n].CaughtUp
				})
			}
			require.NoError(t, semaphore.NewWeighted(q, "s", 1).Resize(ctx, 2))
			for i := range nodes {
				require.True(t, repaired(i))
			}
			assert.True(t, semaphore.NewWeighted(q, "s", 1).TryAcquire(2))
			nodes[2].Stop()
			nodes[2].Start(false)
			require.True(t, repaired(2))
		})
	}
}

// Bootstrap of nodes that are too far away for its context says that, once it
// is connected, and not that the nodes need fixing.
func TestBootstrapInTooLittleTime(t *testing.T) {
	for within, says := range map[time.Duration]string{
		time.Second:     "the nodes record their set only when all of them answer; start those that are down",
		2 * time.Second: "the nodes are far away and have not recorded their set in time; allow more time",
		5 * time.Second: "the nodes are far away and have not recorded their set in time; allow more time",
	} {
		synctest.Test(t, func(t *testing.T) {
			nodes := memory.NewNodes(3)
			for _, n := range nodes {
				n.Delay(1500 * time.Millisecond)
			}
			q, err := quorate.New(nodes.Clients(t), nodes.Option())
			require.NoError(t, err)
			defer func() { assert.NoError(t, q.Close()) }()
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			err = q.Bootstrap(ctx)
			assert.ErrorIs(t, err, quorate.ErrNoQuorum)
			assert.ErrorContains(t, err, says)
			assert.ErrorContains(t, err, "memory:1")
		})
	}
}

// farLock has m twice, by a try and by a lock.
func farLock(ctx context.Context, m *mutex.Mutex) error {
	if err := m.TryLockContext(ctx); err != nil {
		return err
	}
	token := m.Lease().Token()
	h, err := m.Holder(ctx)
	if err == nil && h.Token != token {
		err = fmt.Errorf("held with token %d, and the nodes say %d", token, h.Token)
	}
	if err := errors.Join(err, m.UnlockContext(ctx)); err != nil {
		return err
	}
	if err := m.LockContext(ctx); err != nil {
		return err
	}
	return m.UnlockContext(ctx)
}

// What takes several questions to far nodes has the time for that: a leader is
// seen, work that is done is known to be done, and a node that lost its data is
// repaired, though the round trip is longer than two node timeouts.
func TestFarNodesAndRecords(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	near := e2e.Open(t, c, e2e.Timing(2*time.Second))
	require.NoError(t, once.New(near, "o").DoContext(t.Context(), func(context.Context) error { return nil }))
	e := leader.New(near, "e", leader.WithID("near"))
	require.NoError(t, e.Campaign(deadline(t), ""))

	_, urls := e2e.Proxies(t, c.URLs(), proxy.Fault{Delay: 60 * time.Millisecond})
	far := e2e.OpenAt(t, urls, e2e.Timing(2*time.Second), quorate.WithNodeTimeout(50*time.Millisecond))
	require.NoError(t, mutex.New(far, "m").LockContext(deadline(t)), "it knows now how far they are")
	for l, err := range leader.New(far, "e", leader.WithID("far")).Observe(deadline(t)) {
		require.NoError(t, err)
		require.Equal(t, "near", l.ID)
		break
	}
	var s once.Status
	var err error
	e2e.Eventually(func() bool { // a busy machine may be too slow at first
		s, err = once.New(far, "o").Status(deadline(t))
		return !errors.Is(err, quorate.ErrNoQuorum)
	})
	require.NoError(t, err)
	assert.Equal(t, once.Done, s.State)

	lateness.Undisturbed(t, func() error { return e.Resign(deadline(t)) })
	require.NoError(t, near.Close())
	require.NoError(t, c.Node(2).Client().FlushAll(t.Context()).Err())
	caughtUp(t, c.Node(2))
}
