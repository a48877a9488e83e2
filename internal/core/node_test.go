package core

import (
	"bytes"
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

	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// A connection whose handshake fails ends there: a guard time later another
// address may vote for the server.
func TestFailedHandshakeEndsTheConnection(t *testing.T) {
	t.Parallel()
	assert.True(t, failedHandshakeEnds(t))
}

// failedHandshakeEnds reports whether another address may vote for a server a
// guard time after the last handshake of the first address has failed. The
// address could not be dialed before, so the link has reported already that the
// node is down.
func failedHandshakeEnds(t *testing.T) bool {
	server := redistest.Start(t, 1).Node(0)
	run := server.Client().InfoMap(t.Context(), "server").Item("Server", "run_id")
	require.NotEmpty(t, run)
	require.NoError(t, server.Client().Do(t.Context(), "ACL", "SETUSER", "limited", "on", ">pw", "~*", "&*", "+@all", "-script|load").Err())

	var open atomic.Bool
	cut := errors.New("the network is cut")
	address := func(o redis.Options) redis.UniversalClient {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if !open.Load() || o.Username == "" {
				return nil, cut
			}
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		}
		c := redis.NewClient(&o)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	set := Defaults()
	set.Logger = slog.New(slog.DiscardHandler)
	q, err := New([]redis.UniversalClient{
		address(redis.Options{Addr: server.Addr(), Username: "limited", Password: "pw"}),
		address(redis.Options{Addr: strings.Replace(server.Addr(), "127.0.0.1", "localhost", 1)}),
	}, set)
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	n := q.nodes.at(0)
	<-n.ready
	open.Store(true)
	require.Eventually(t, func() bool { return strings.Contains(n.err().Error(), "NOPERM") }, 20*time.Second, time.Millisecond)
	open.Store(false)
	require.Eventually(t, func() bool { return errors.Is(n.err(), cut) }, 20*time.Second, time.Millisecond)

	other, _ := q.driver.client.Connect(q.now().Add(2*set.Guard), 1, run, 0)
	return other < 0
}

// The same where the node knows everything already, so the client has no first
// commands, but the last connection is to be killed first.
func TestFailedKillEndsTheConnection(t *testing.T) {
	t.Parallel()
	assert.True(t, failedKillEnds(t))
}

// killCut is a connection that breaks when it is to carry CLIENT KILL, if cut
// is set.
type killCut struct {
	net.Conn
	cut *atomic.Bool
	hit chan struct{}
}

func (c *killCut) Write(p []byte) (int, error) {
	if c.cut.Load() && bytes.Contains(p, []byte("KILL")) {
		select {
		case c.hit <- struct{}{}:
		default:
		}
		_ = c.Close()
		return 0, net.ErrClosed
	}
	return c.Conn.Write(p)
}

// failedKillEnds reports whether another address may vote for a server a guard
// time after the first address could not have the server kill its last
// connection.
func failedKillEnds(t *testing.T) bool {
	server := redistest.Start(t, 1).Node(0)
	run := server.Client().InfoMap(t.Context(), "server").Item("Server", "run_id")
	var cut atomic.Bool
	hit := make(chan struct{}, 1)
	first := redis.NewClient(&redis.Options{Addr: server.Addr(), Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if cut.Load() && len(hit) > 0 {
			return nil, net.ErrClosed
		}
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		return &killCut{c, &cut, hit}, err
	}})
	second := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { _, _ = first.Close(), second.Close() })
	set := Defaults()
	set.Logger = slog.New(slog.DiscardHandler)
	q, err := New([]redis.UniversalClient{first, second}, set)
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	n := q.nodes.at(0)
	<-n.ready
	require.NoError(t, n.err())
	require.Eventually(t, func() bool { _, err := n.do(t.Context(), "PING"); return err == nil }, 20*time.Second, time.Millisecond)

	require.NoError(t, server.Stop())
	n.send(&adminRequest{command: resp.AppendCommand(nil, "PING")}) // unanswered, so the connection may be read later
	cut.Store(true)
	n.link.Reconnect(errors.New("as the test wants it"))
	require.NoError(t, server.Cont())
	require.Eventually(t, func() bool { return len(hit) > 0 && errors.Is(n.err(), net.ErrClosed) }, 20*time.Second, time.Millisecond)

	other, _ := q.driver.client.Connect(q.now().Add(2*set.Guard), 1, run, 0)
	return other < 0
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
	q.driver.client.Connect(q.now(), 0, n.info().RunID, 0)
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
