package core

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/testkit/redistest"
)

// Two servers change their addresses with each other while a client runs. It
// uses both again, at the latest a guard time later. Before, each was refused
// for good because of the other.
func TestServersChangeAddressesUnderAClient(t *testing.T) {
	t.Parallel()
	t.Run("of an exchanged set", func(t *testing.T) {
		t.Parallel()
		c := redistest.Start(t, 4)
		operator, _ := gives(t, c, 3)
		require.NoError(t, operator.Exchange(minute(t), Exchange{Add: c.URLs()[3:], Remove: c.URLs()[2:3]}))
		changesAddresses(t, c, 0, 1, 3)
	})
	t.Run("of a first set", func(t *testing.T) {
		t.Parallel()
		c := redistest.Start(t, 3)
		gives(t, c, 3)
		changesAddresses(t, c, 0, 1, 2)
	})
}

// errAddressDown is what a dial fails with where no server is at the address.
var errAddressDown = errors.New("no server is at this address")

// routed returns clients of nodes, of which leads says at each dial which
// server the k-th address leads to, -1 for none.
func routed(t *testing.T, c *redistest.Cluster, nodes []int, leads func(k int) int) (clients []redis.UniversalClient) {
	for k, i := range nodes {
		client := redis.NewClient(&redis.Options{Addr: c.Node(i).Addr(), MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}, Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
			to := leads(k)
			if to < 0 {
				return nil, errAddressDown
			}
			return (&net.Dialer{}).DialContext(ctx, network, c.Node(to).Addr())
		}})
		clients = append(clients, client)
		t.Cleanup(func() { _ = client.Close() })
	}
	return clients
}

// changesAddresses has the first and the last of three nodes change their
// addresses. They change back as the first one crashes: the last one is used at
// its own address.
func changesAddresses(t *testing.T, c *redistest.Cluster, nodes ...int) {
	var swapped, down atomic.Bool
	q, err := New(routed(t, c, nodes, func(k int) int {
		switch {
		case down.Load() && k == 0:
			return -1
		case swapped.Load():
			return nodes[2-k]
		}
		return nodes[k]
	}), exchangeSettings())
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	require.NoError(t, q.Ready(within(t)))
	held(t, q, "first").Release()
	used := func() bool {
		return !slices.ContainsFunc(q.nodes.live(), func(n *node) bool { return n.err() != nil })
	}
	require.Eventually(t, used, time.Minute, time.Millisecond)
	swapped.Store(true)
	for _, i := range []int{0, 2} {
		q.nodes.at(i).link.Reconnect(errors.New("as the test wants it"))
	}
	require.Eventually(t, func() bool { return !used() }, time.Minute, time.Millisecond)
	require.Eventually(t, used, 2*time.Minute, time.Millisecond)
	held(t, q, "second").Release()
	down.Store(true)
	swapped.Store(false)
	for _, i := range []int{0, 2} {
		q.nodes.at(i).link.Reconnect(errors.New("as the test wants it"))
	}
	spec, err := q.NewSpec(Spec{Name: "third", Weight: 1, Capacity: 1, Set: &q.set})
	require.NoError(t, err)
	h, err := q.Acquire(minute(t), spec, false, nil)
	require.NoError(t, err)
	h.Release()
}

// D has replaced C, and its server comes back with a copy of A's data of
// before. A client that starts meets the copy first, and B afterwards. A itself
// is not reached: the client gets no lock by the copy and B, which another
// client may have by A and D.
func TestOldCopyAtTheAddressOfANewMember(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4)
	operator, _ := gives(t, c, 3)
	copied := map[string]string{}
	a, d := c.Node(0).Client(), c.Node(3).Client()
	for _, key := range a.Keys(t.Context(), "*").Val() {
		copied[key] = a.Dump(t.Context(), key).Val()
	}
	require.NoError(t, operator.Exchange(minute(t), Exchange{Add: c.URLs()[3:], Remove: c.URLs()[2:3]}))
	require.NoError(t, operator.Close(within(t))) // it would give D its place back
	require.NoError(t, d.FlushAll(t.Context()).Err())
	for key, dump := range copied {
		require.NoError(t, d.Restore(t.Context(), key, 0, dump).Err())
	}
	nodes := []int{0, 1, 3}
	var met atomic.Bool
	q, err := New(routed(t, c, nodes, func(k int) int {
		if k == 0 || k == 1 && !met.Load() {
			return -1
		}
		return nodes[k]
	}), exchangeSettings())
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	require.Eventually(t, func() bool { return q.members.config.Load() != nil }, time.Minute, time.Millisecond)
	require.Equal(t, uint64(1), q.members.config.Load().Stamp.Epoch(), "the copy shows the set of before")
	met.Store(true)
	require.Eventually(t, func() bool { return q.members.config.Load().Stamp.Epoch() > 1 }, time.Minute, time.Millisecond)
	spec, err := q.NewSpec(Spec{Name: "first", Weight: 1, Capacity: 1, Set: &q.set})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err = q.Acquire(ctx, spec, false, nil)
	require.ErrorIs(t, err, ErrNoQuorum)
	require.Equal(t, uint64(1), keepsOf(t, c.Node(3)).Config.Stamp.Epoch(), "the copy was not moved to the set")
}

// A leaves the set of A and B, and a client follows that. While it reaches no
// node, A enters again, and B leaves and is stopped. The client's list has A,
// so it goes on with A.
func TestClientWithoutAQuorumAsksItsWholeList(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 2)
	operator, _ := gives(t, c, 2)
	var apart atomic.Bool
	q, err := New(routed(t, c, []int{0, 1}, func(k int) int {
		if apart.Load() {
			return -1
		}
		return k
	}), exchangeSettings())
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	require.NoError(t, q.Ready(within(t)))
	held(t, q, "first").Release()
	require.NoError(t, operator.Exchange(minute(t), Exchange{Remove: c.URLs()[:1]}))
	held(t, q, "first").Release() // it learns of the set by what its nodes refuse
	require.Eventually(t, func() bool { return len(nodesOf(q)) == 1 }, time.Minute, time.Millisecond)
	apart.Store(true)
	q.nodes.at(1).link.Reconnect(errors.New("as the test wants it"))
	require.NoError(t, c.Node(0).Client().FlushAll(t.Context()).Err())
	require.NoError(t, operator.Exchange(minute(t), Exchange{Add: c.URLs()[:1], Remove: c.URLs()[1:]}))
	require.NoError(t, c.Node(1).Kill())
	apart.Store(false)
	spec, err := q.NewSpec(Spec{Name: "second", Weight: 1, Capacity: 1, Set: &q.set})
	require.NoError(t, err)
	h, err := q.Acquire(minute(t), spec, false, nil)
	require.NoError(t, err)
	h.Release()
	require.Equal(t, []string{c.Node(0).Addr()}, nodesOf(q))
}
