package core

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// A node that enters the set is reached with the credentials of the first node,
// and with those that the function of WithDiscovery names if that fails.
func TestDiscoveryNamesTheCredentialsOfANodeThatEnters(t *testing.T) {
	t.Parallel()
	c, other := redistest.Start(t, 1), redistest.Start(t, 1, redistest.WithPassword("secret"))
	set := Defaults()
	set.TTL, set.Skew, set.Guard = time.Second, 10*time.Millisecond, 2100*time.Millisecond
	set.Discover = func(context.Context) ([]string, error) { return append(c.URLs(), other.URLs()...), nil }
	q, err := New([]redis.UniversalClient{c.Node(0).Client()}, set)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, q.Close(context.Background())) })
	require.NoError(t, q.BootstrapSet(within(t)))
	change := protocol.Change{Add: []protocol.Member{{Identity: "0123456789abcdef", Addr: other.Node(0).Addr()}}}
	next := q.members.config.Load().Begin(change, protocol.NewBallot(time.Now(), chance(), ""))
	q.members.change(-1, func(m *protocol.Membership) { m.Decide(next) })
	require.Eventually(t, func() bool { return q.nodes.at(1).err() == nil }, 30*time.Second, time.Millisecond)
}
