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
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// A connection whose handshake fails has ended: what it has shown counts no
// more.
func TestFailedHandshakeEndsTheConnection(t *testing.T) {
	t.Parallel()
	assert.True(t, failedHandshakeEnds(t))
}

// failedHandshakeEnds reports whether the blank nodes of a list do not begin to
// record their set when the handshake with one of them has failed. The node
// could not be dialed before, so the link has reported already that it is down.
func failedHandshakeEnds(t *testing.T) bool {
	server := redistest.Start(t, 1).Node(0)
	require.NoError(t, server.Client().Do(t.Context(), "ACL", "SETUSER", "limited", "on", ">pw", "~*", "&*", "+@all", "-script|load").Err())
	var open atomic.Bool
	cut := errors.New("the network is cut")
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "limited", Password: "pw", Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if !open.Load() {
			return nil, cut
		}
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}})
	t.Cleanup(func() { _ = client.Close() })
	set := Defaults()
	set.Logger = slog.New(slog.DiscardHandler)
	q, err := New([]redis.UniversalClient{client}, set)
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	n := q.node(nodeset.Seed)
	<-n.ready
	open.Store(true)
	require.Eventually(t, func() bool { return strings.Contains(n.err().Error(), "NOPERM") }, 20*time.Second, time.Millisecond)
	open.Store(false)
	require.Eventually(t, func() bool { return errors.Is(n.err(), cut) }, 20*time.Second, time.Millisecond)
	q.members.mu.Lock()
	defer q.members.mu.Unlock()
	q.members.known.Want()
	return !q.members.known.Due()
}

// What a node pushes before its incarnation is known is not lost.
func TestPushBeforeTheIncarnationIsKnown(t *testing.T) {
	t.Parallel()
	assert.True(t, earlyPushCounts(t))
}

// earlyPushCounts has a node give its vote to a waiter while the node's
// incarnation is not known, as on a connection that began with a marker which
// could not be read. It reports whether the waiter hears of the vote when the
// incarnation becomes known. The waiter would ask the node by itself only
// minutes later.
func earlyPushCounts(t *testing.T) bool {
	c := redistest.Start(t, 1)
	q := idle(t, c)
	n := q.nodes.at(0)
	first := held(t, q, "n")
	s, err := q.NewSpec(Spec{Name: "n", Weight: 1, Capacity: 1, Set: &q.set})
	require.NoError(t, err)
	waiter, err := q.Begin(s, false, nil)
	require.NoError(t, err)
	t.Cleanup(waiter.Cancel)
	_, err = n.do(t.Context(), "PING") // the join has arrived
	require.NoError(t, err)

	pushes := c.Node(0).Client().Subscribe(t.Context(), q.channel)
	t.Cleanup(func() { _ = pushes.Close() })
	_, err = pushes.Receive(t.Context())
	require.NoError(t, err)
	inc := q.driver.client.Voting(0)
	q.driver.client.Connect(q.now(), 0, 0)
	first.Release()
	m, err := pushes.ReceiveMessage(t.Context())
	require.NoError(t, err)
	n.push(m.Payload) // its own connection may not have delivered it yet

	// Every claim is asked about in show, so the waiter's request is before the
	// PING.
	n.show(inc)
	_, err = n.do(t.Context(), "PING")
	require.NoError(t, err)
	select {
	case <-waiter.a.done:
		waiter.a.done <- struct{}{}
		return true
	default:
		return false
	}
}
