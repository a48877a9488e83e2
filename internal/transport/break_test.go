package transport_test

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/quorate/quorate/internal/transport"
)

// However much is sent to a node that does not read, no Send takes long, and
// the bound breaks the connection.
func TestHungNode(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t, 1).Node(0)
	var log events
	l := open(t, node.Client(),
		log.config(transport.Config{Stall: time.Minute, MaxBytes: 64 << 20, MaxPending: 90_000}))
	require.NoError(t, node.Stop())
	payload := strings.Repeat("x", 100)
	var calls []*call
	var worst time.Duration
	for range 100_000 {
		c := newCall("ECHO", payload)
		calls = append(calls, c)
		began := time.Now()
		send(l, c)
		worst = max(worst, time.Since(began))
	}
	t.Log("longest Send ", worst)
	assert.Less(t, worst, 5*time.Second, "a blocked write would last until Stall")
	_, err := calls[0].wait(t)
	assert.ErrorIs(t, err, transport.ErrBroken)
	assert.ErrorContains(t, err, "too many unanswered")
	_, err = calls[99_999].wait(t)
	assert.ErrorIs(t, err, transport.ErrDown)
	require.NoError(t, node.Cont())
	eventually(t, "up again", func() bool { return log.count("up") == 2 })
	_, err = do(t, l, "PING")
	assert.NoError(t, err)
}

// A short stop breaks nothing: it is noticed, and the answers come late.
func TestShortStop(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t, 1).Node(0)
	l := open(t, node.Client(), transport.Config{NodeTimeout: 50 * time.Millisecond})
	require.NoError(t, node.Stop())
	join, leave := newCall("SET", "claim", "id"), newCall("DEL", "claim")
	send(l, join)
	assert.True(t, healthy(l))
	time.Sleep(100 * time.Millisecond)
	assert.False(t, healthy(l))
	send(l, leave)
	require.NoError(t, node.Cont())
	_, err := join.wait(t)
	assert.NoError(t, err)
	v, err := leave.wait(t)
	assert.NoError(t, err)
	assert.Equal(t, "1", v)
	assert.True(t, healthy(l))
}

// Whatever a node sends, the link either understands it or connects again.
func TestBadAnswers(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]string{
		"garbage": "hello?\r\n", "huge": "$99999999999\r\n", "unasked": ":1\r\n:2\r\n:3\r\n",
		"half": "*2\r\n:1\r\n$5\r\nab", "closed": "",
	} {
		t.Run(name, func(t *testing.T) {
			var spoil atomic.Bool
			spoil.Store(true)
			f := newFake(t, func(c *fakeConn, words []string) string {
				if !spoil.Swap(false) {
					return "+fine\r\n"
				}
				c.Write([]byte(bad))
				if name == "half" || name == "closed" {
					c.Close()
				}
				return ""
			})
			var log events
			l := open(t, f.client(t), log.config(transport.Config{}))
			_, err := do(t, l, "FIRST")
			if name != "unasked" {
				assert.ErrorIs(t, err, transport.ErrBroken)
			}
			eventually(t, "up again", func() bool { return log.count("up") == 2 })
			v, err := do(t, l, "SECOND")
			assert.NoError(t, err)
			assert.Equal(t, "fine", v)
		})
	}
}

// layered is a connection inside another one, as of a proxy inside TLS.
type layered struct {
	net.Conn
	inner net.Conn
}

func (l layered) NetConn() net.Conn { return l.inner }

// lingering counts calls of SetLinger.
type lingering struct {
	*net.TCPConn
	calls *atomic.Int32
}

func (l lingering) SetLinger(sec int) error {
	l.calls.Add(1)
	return l.TCPConn.SetLinger(sec)
}

// However often a Dialer wraps its connection, a broken one is reset, so that
// nothing arrives late.
func TestResetOfAWrappedConnection(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(*fakeConn, []string) string { return "+fine\r\n" })
	var resets atomic.Int32
	client := redis.NewClient(&redis.Options{Addr: f.addr,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			nc, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			tcp := lingering{nc.(*net.TCPConn), &resets}
			return layered{nc, layered{nc, tcp}}, nil
		}})
	defer client.Close()
	var log events
	l := open(t, client, log.config(transport.Config{}))
	l.Reconnect(errors.New("as the test wants it"))
	eventually(t, "up again", func() bool { return log.count("up") == 2 })
	assert.EqualValues(t, 1, resets.Load())
	require.NoError(t, shut(l))
}

// Connections that are reset at any moment lose answers, never mix them up.
func TestResets(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(_ *fakeConn, words []string) string {
		return "+" + words[1] + "\r\n"
	})
	l := open(t, f.client(t), transport.Config{})
	stop := time.After(time.Second)
	var answered, lost, left int
	for i := 0; ; i++ {
		select {
		case <-stop:
			t.Log("answered ", answered, " lost ", lost, " left ", left)
			assert.Positive(t, answered)
			assert.Positive(t, lost)
			return
		default:
		}
		a, b, c := newCall("A", fmt.Sprint(i)), lasting("LEAVE", fmt.Sprint(i)), newCall("C", fmt.Sprint(i))
		send(l, a, b, c)
		if i%10 == 0 {
			f.drop()
		}
		for _, x := range []*call{a, b, c} {
			v, err := x.wait(t)
			switch {
			case err == nil:
				answered++
				require.Equal(t, fmt.Sprint(i), v)
			case x == b:
				t.Fatal("leave not delivered: ", err)
			default:
				lost++
			}
		}
		left++
	}
}

// A node that breaks each connection at its first command is given longer and
// longer pauses. That it answers the transport's own commands shortens none.
func TestPausesOfANodeThatBreaks(t *testing.T) {
	t.Parallel()
	began := make(chan time.Time, 1000)
	addr := redistest.Serve(t, func(nc net.Conn) {
		began <- time.Now()
		rd := resp.NewReader(nc)
		for {
			v, err := rd.Read()
			if err != nil {
				return
			}
			answer := "+OK\r\n"
			switch string(v[0].Str) {
			case "HELLO":
				answer = "%2\r\n+server\r\n+redis\r\n+proto\r\n:3\r\n"
			case "SUBSCRIBE":
				answer = ">3\r\n+subscribe\r\n+ch\r\n:1\r\n"
			case "X":
				return
			}
			if _, err := nc.Write([]byte(answer)); err != nil {
				return
			}
		}
	})
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	var l *transport.Ordered
	made := make(chan struct{})
	cfg := transport.Config{Channel: "ch", Subscribed: func() {
		<-made
		l.Append(newCall("X"), transport.Certain)
		l.Flush()
	}}
	l = open(t, client, cfg)
	close(made)
	first := await(t, began)
	var last time.Time
	for range 8 {
		last = await(t, began)
	}
	assert.Greater(t, last.Sub(first), time.Second, "10 + 20 + 40 + 80 + 160 + 320 + 500 + 500 ms at least")
}

// Answers that a node refuses to give during the handshake are not needed.
func TestSparseNode(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(*fakeConn, []string) string { return "+OK\r\n" })
	f.runID.Store("")
	l := open(t, f.client(t), transport.Config{})
	require.NoError(t, l.State(time.Now()).Err)
	info := *l.State(time.Now()).Info
	assert.Positive(t, info.RoundTrip)
	info.RoundTrip, info.Addr = 0, ""
	assert.Equal(t, transport.Info{Protocol: 2}, info)
	v, err := do(t, l, "X")
	assert.NoError(t, err)
	assert.Equal(t, "OK", v)
}

func TestNobodyThere(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	var log events
	l := open(t, client, log.config(transport.Config{Channel: "ch"}))
	assert.ErrorIs(t, l.State(time.Now()).Err, transport.ErrDown)
	time.Sleep(200 * time.Millisecond)
	assert.Equal(t, 1, log.count("down"), "told once")
	assert.Zero(t, log.count("push down"), "nothing was refused")
}
