package core

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// A connection whose handshake fails has ended: what it has shown no longer
// counts.
func TestFailedHandshakeEndsTheConnection(t *testing.T) {
	t.Parallel()
	assert.True(t, failedHandshakeEnds(t))
}

// failedHandshakeEnds reports whether the blank nodes of a list do not begin to
// record their set when the handshake with one of them has failed. The node
// could not be dialed before, so the link has reported already that it is down.
func failedHandshakeEnds(t *testing.T) bool {
	server := redistest.Start(t, 1).Node(0)
	require.NoError(t, server.Client().Do(t.Context(), "ACL", "SETUSER", "limited", "on", ">pw", "~*", "&*",
		"+@all", "-script|load").Err())
	var open atomic.Bool
	cut := errors.New("the network is cut")
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "limited", Password: "pw",
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if !open.Load() {
				return nil, cut
			}
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		}})
	t.Cleanup(func() { _ = client.Close() })
	set := setup.Defaults()
	set.Logger = slog.New(slog.DiscardHandler)
	// A blank node is judged again after a quarter of the node timeout, and
	// until then nothing is due: that must not come before the test has looked.
	set.TTL = 10 * time.Minute
	set.Guard, set.Retention, set.NodeTimeout = 3*set.TTL, 3*set.TTL, set.TTL/4
	q, err := New([]redis.UniversalClient{client}, set)
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	n := q.Node(nodeset.Seed)
	<-n.Attempted
	open.Store(true)
	require.Eventually(t, func() bool { return strings.Contains(n.Err().Error(), "NOPERM") },
		20*time.Second, time.Millisecond)
	open.Store(false)
	require.Eventually(t, func() bool { return errors.Is(n.Err(), cut) }, 20*time.Second, time.Millisecond)
	ended := false
	q.Members.Change(-1, func(m *nodeset.Membership) {
		m.Again(nodeset.Seed) // ends the connection, if there is one
		ended = len(m.Out) == 0
	})
	return ended
}
