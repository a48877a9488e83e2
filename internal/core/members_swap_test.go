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

// changesAddresses has the first and the last of three nodes change their
// addresses.
func changesAddresses(t *testing.T, c *redistest.Cluster, nodes ...int) {
	var swapped atomic.Bool
	var clients []redis.UniversalClient
	for k, i := range nodes {
		client := redis.NewClient(&redis.Options{Addr: c.Node(i).Addr(), MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}, Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
			to := i
			if swapped.Load() {
				to = nodes[2-k]
			}
			return (&net.Dialer{}).DialContext(ctx, network, c.Node(to).Addr())
		}})
		clients = append(clients, client)
		t.Cleanup(func() { _ = client.Close() })
	}
	q, err := New(clients, exchangeSettings())
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
}
