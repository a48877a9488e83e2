package transport_test

import (
	"bytes"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/internal/transport"
)

// blackHole is a network that loses all packets until a second dial is under
// way alongside one that goes on for two seconds more. A dial from before hangs
// also after that, as TCP sends its first packet again ever more rarely.
type blackHole struct {
	mu      sync.Mutex
	hanging int
	until   time.Time // the first of these hangs for so long
	most    int       // dials at once
	open    bool      // packets pass
	ended   error     // how the last one that hung has ended
}

func (b *blackHole) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	b.mu.Lock()
	b.open = b.open || b.hanging > 0 && time.Until(b.until) > 2*time.Second
	b.most = max(b.most, b.hanging+1)
	if b.open {
		b.mu.Unlock()
		return new(net.Dialer).DialContext(context.WithoutCancel(ctx), network, addr)
	}
	if b.hanging++; b.hanging == 1 {
		b.until, _ = ctx.Deadline()
	}
	b.mu.Unlock()
	<-ctx.Done()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hanging--
	b.ended = ctx.Err()
	return nil, ctx.Err()
}

// A network is cut for so long that attempts to connect have become patient.
// The first dial after the cut is not waited for behind the patient one.
func TestDialBesideAPatientOne(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t, 1).Node(0)
	hole := &blackHole{}
	client := redis.NewClient(&redis.Options{Addr: node.Addr(), Dialer: hole.dial})
	t.Cleanup(func() { client.Close() })
	var log events
	l, err := transport.NewOrdered(client, whole(log.config(transport.Config{Stall: 300 * time.Millisecond})))
	require.NoError(t, err)
	eventually(t, "up", func() bool { return log.count("up") == 1 })
	_, err = do(t, l, "PING")
	require.NoError(t, err)
	require.NoError(t, shut(l))
	hole.mu.Lock()
	defer hole.mu.Unlock()
	assert.Zero(t, hole.hanging, "dials that go on")
	assert.Equal(t, 2, hole.most, "dials at once")
	require.ErrorIs(t, hole.ended, context.Canceled)
}

// mute is a way to a node on which each connection can be made, and carries
// nothing, until one has been given more than two seconds for its handshake.
// Those from before carry nothing after that either.
type mute struct {
	mu   sync.Mutex
	open bool
	left time.Duration // how long the patient one would have been waited for when it was closed
}

func (m *mute) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	nc, err := new(net.Dialer).DialContext(ctx, network, addr)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil || m.open {
		return nc, err
	}
	return &muted{Conn: nc, m: m}, nil
}

// muted loses what is written to it.
type muted struct {
	net.Conn
	m     *mute
	until time.Time
}

func (c *muted) Write(p []byte) (int, error) { return len(p), nil }

func (c *muted) SetReadDeadline(t time.Time) error {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	c.until = t
	c.m.open = c.m.open || time.Until(t) > 2*time.Second
	return c.Conn.SetReadDeadline(t)
}

func (c *muted) Close() error {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	c.m.left = max(c.m.left, time.Until(c.until))
	return c.Conn.Close()
}

// What forwards connections accepts them while packets are lost. A handshake
// that hears nothing is not waited for when a later connection is answered.
func TestHandshakeBesideAPatientOne(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t, 1).Node(0)
	way := &mute{}
	client := redis.NewClient(&redis.Options{Addr: node.Addr(), Dialer: way.dial})
	t.Cleanup(func() { client.Close() })
	var log events
	l, err := transport.NewOrdered(client, whole(log.config(transport.Config{Stall: 300 * time.Millisecond})))
	require.NoError(t, err)
	eventually(t, "up", func() bool { return log.count("up") == 1 })
	_, err = do(t, l, "PING")
	require.NoError(t, err)
	require.NoError(t, shut(l))
	way.mu.Lock()
	defer way.mu.Unlock()
	assert.Positive(t, way.left, "the patient one was waited for to its end")
}

// A link that is closed while a patient dial and one alongside it are under way
// waits for neither.
func TestCloseDuringAPatientDial(t *testing.T) {
	t.Parallel()
	for range 50 {
		var hanging atomic.Int32
		both := make(chan struct{}, 1000)
		client := redis.NewClient(&redis.Options{Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
			if hanging.Add(1) == 2 {
				both <- struct{}{}
			}
			<-ctx.Done()
			hanging.Add(-1)
			return nil, ctx.Err()
		}})
		l, err := transport.NewOrdered(client, whole(transport.Config{Stall: 5 * time.Millisecond}))
		require.NoError(t, err)
		await(t, both)
		require.NoError(t, shut(l))
		require.NoError(t, client.Close())
	}
}

// late is a connection that sends what is written to it after a while.
type late struct {
	net.Conn
	by     time.Duration
	closed func()
}

func (c *late) Write(p []byte) (int, error) {
	p = bytes.Clone(p)
	time.AfterFunc(c.by, func() { _, _ = c.Conn.Write(p) })
	return len(p), nil
}

func (c *late) Close() error {
	c.closed()
	return c.Conn.Close()
}

// full answers a connection as a node does that has as many as it may.
func full() (net.Conn, error) {
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		_, _ = server.Read(make([]byte, 1000))
		_, _ = server.Write([]byte("-ERR max number of clients reached\r\n"))
	}()
	return client, nil
}

// A node that is slow, and takes one connection of this client, is used: those
// that are refused alongside it do not end a patient attempt.
func TestPatientAttemptWithTheOnlyConnection(t *testing.T) {
	t.Parallel()
	const stall = 200 * time.Millisecond
	for name, refuse := range map[string]func() (net.Conn, error){
		"by the way": func() (net.Conn, error) { return nil, syscall.ECONNREFUSED }, "by the node": full,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, func(*fakeConn, []string) string { return ":1\r\n" })
			var taken atomic.Bool
			client := redis.NewClient(&redis.Options{Addr: f.addr,
				Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
					if taken.Swap(true) {
						return refuse()
					}
					nc, err := new(net.Dialer).DialContext(ctx, network, addr)
					return &late{nc, 3 * stall / 2, sync.OnceFunc(func() { taken.Store(false) })}, err
				}})
			t.Cleanup(func() { client.Close() })
			var log events
			l, err := transport.NewOrdered(client, whole(log.config(transport.Config{Stall: stall})))
			require.NoError(t, err)
			eventually(t, "up", func() bool { return log.count("up") == 1 })
			require.NoError(t, shut(l))
		})
	}
}
