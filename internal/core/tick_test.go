package core

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/internal/wake"
)

// The requests of claims that are due together are sent, and in one write.
func TestBeatsGoOutTogether(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q := idle(t, c)
	const claims = 100 // more than the scheduler collects
	var due []wake.Alarm[attempt]
	for i := range claims {
		s, err := q.NewSpec(Spec{Name: strconv.Itoa(i), Weight: 1, Capacity: 1, Set: &q.Set})
		require.NoError(t, err)
		h, err := q.Acquire(t.Context(), s, false, nil)
		require.NoError(t, err)
		due = append(due, wake.Alarm[attempt]{Of: &h.a.alarms})
	}
	renewed := func() (n int) {
		for _, d := range due {
			d.Sleeper().mu.Lock()
			if d.Sleeper().claim.Deadline() > due[0].At {
				n++
			}
			d.Sleeper().mu.Unlock()
		}
		return n
	}
	due[0].At = q.Now().Add(q.Set.TTL - lease.Drift(q.Set.TTL))
	for _, d := range due {
		d.Sleeper().mu.Lock()
		for i := range q.Nodes.All() {
			d.Sleeper().claim.Up(q.Now(), i) // has it ask, with the next tick
		}
		d.Sleeper().mu.Unlock()
	}
	require.Zero(t, renewed())
	// Nothing else is sent meanwhile that could flush a forgotten request.
	before := c.Calls(t, "evalsha")
	require.Positive(t, before)
	q.tick(due)
	require.Eventually(t, func() bool { return renewed() == claims }, 10*time.Second, time.Millisecond)
	requests := float64(c.Calls(t, "evalsha")-before) / float64(c.Len())
	assert.Less(t, requests, claims/4.0, "at each node, for %d claims", claims)
}

// idle is a Quorum that renews nothing while a test lasts.
func idle(t *testing.T, c *redistest.Cluster) *Quorum {
	t.Helper()
	return observed(t, c, nil)
}

// observed is idle with an observer.
func observed(t *testing.T, c *redistest.Cluster, observe func(setup.Event)) *Quorum {
	t.Helper()
	return declared(t, c, endless(observe))
}

// endless are settings by which nothing ends in the time of a test.
func endless(observe func(setup.Event)) setup.Settings {
	set := setup.Defaults()
	set.TTL, set.Guard, set.Retention, set.NodeTimeout = 20*time.Minute, time.Hour, 2*time.Hour, time.Minute
	set.Observe, set.Logger = observe, slog.New(slog.DiscardHandler)
	return set
}

// declared is a Quorum with these settings, whose nodes are a set and vote.
func declared(t *testing.T, c *redistest.Cluster, set setup.Settings) *Quorum {
	t.Helper()
	var clients []redis.UniversalClient
	for i := range c.Len() {
		clients = append(clients, c.Node(i).Client())
	}
	q, err := New(clients, set)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, q.Close(context.Background())) })
	require.NoError(t, q.Bootstrap(within(t)))
	connected(t, q)
	return q
}
