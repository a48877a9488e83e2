package core

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/peers"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/testkit/lateness"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// exchangeSettings make an exchange take about ten seconds: the guard time is
// four and a half.
func exchangeSettings() setup.Settings {
	set := setup.Defaults()
	set.TTL, set.Skew, set.Guard, set.NodeTimeout = 2*time.Second, 100*time.Millisecond,
		4500*time.Millisecond, 500*time.Millisecond
	return set
}

// patient returns settings with the longest node timeout that the ttl allows,
// because Bootstrap waits for twenty node timeouts and a busy machine answers
// late.
func patient() setup.Settings {
	set := setup.Defaults()
	set.NodeTimeout = set.TTL / 4
	return set
}

func opened(t *testing.T, set setup.Settings, nodes ...*redistest.Server) *Quorum {
	t.Helper()
	var clients []redis.UniversalClient
	for _, n := range nodes {
		clients = append(clients, n.Client())
	}
	q, err := New(clients, set)
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	require.NoError(t, q.Ready(within(t)))
	return q
}

// keeps returns a check that h is not lost until it is called.
func keeps(t *testing.T, h Hold) func() {
	late := watched(t, h.a.q.Peers)
	return func() {
		t.Helper()
		mustLast(t, late, h)
	}
}

// watched measures how late the machine and the nodes are.
func watched(t *testing.T, ps *peers.Peers) *lateness.Lateness {
	late := lateness.Measure(t)
	for i := range ps.Count() {
		client := redis.NewClient(&redis.Options{Addr: ps.Addr(i), MaxRetries: -1,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}})
		t.Cleanup(func() { _ = client.Close() })
		late.Watch(t, func(ctx context.Context) error { return client.Ping(ctx).Err() })
	}
	return late
}

// mustLast fails the test if a hold is lost, unless the machine stood still for
// so much of the last lease that a renewal failed because of that.
func mustLast(t *testing.T, late *lateness.Lateness, h Hold) {
	t.Helper()
	if !h.Valid() {
		excused(t, late, h.ValidUntil(), h.a.spec.Set.TTL)
	}
}

// excused is mustLast for a hold that was lost at end.
func excused(t *testing.T, late *lateness.Lateness, end time.Time, ttl time.Duration) {
	t.Helper()
	assert.Greater(t, late.Within(end.Add(-ttl), end), ttl/5, "a hold is lost, %v ago", time.Since(end))
}

// gives is a set of the first nodes of a cluster, recorded, and two of its
// clients.
func gives(t *testing.T, c *redistest.Cluster, members int) (operator, q *Quorum) {
	t.Helper()
	var list []*redistest.Server
	for i := range members {
		list = append(list, c.Node(i))
	}
	operator = opened(t, exchangeSettings(), list...)
	require.NoError(t, operator.Bootstrap(within(t)))
	return operator, opened(t, exchangeSettings(), list...)
}

func nodesOf(q *Quorum) []string { return q.Members.Config.Load().Addrs() }

// finds checks that a client sees that another client holds a name.
func finds(t *testing.T, q *Quorum, name string, by Hold) {
	t.Helper()
	s, err := q.NewSpec(Spec{Name: name, Weight: 1, Capacity: 1, Set: &q.Set})
	require.NoError(t, err)
	var h Hold
	require.Eventually(t, func() bool { // the nodes of a busy machine may answer too late
		h, err = q.Acquire(within(t), s, true, nil)
		return !errors.Is(err, fault.ErrNoQuorum)
	}, time.Minute, time.Millisecond)
	if by.Valid() {
		assert.ErrorIs(t, err, fault.ErrHeld)
	} else if err == nil {
		h.Release()
	}
}
