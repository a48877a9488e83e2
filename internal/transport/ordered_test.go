package transport_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/testkit/proxy"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/internal/transport"
)

func TestHandshake(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t, 1, redistest.WithAOF("always"), redistest.WithPassword("secret")).Node(0)
	opts := *node.Client().Options()
	opts.DB, opts.ClientName, opts.Protocol = 3, "tester", 3
	client := redis.NewClient(&opts)
	defer client.Close()
	var log events
	var hello *call
	l := open(t, client, log.config(transport.Config{Hello: func(i transport.Info) ([]transport.Command, error) {
		assert.NotEmpty(t, i.RunID)
		hello = newCall("SET", "marker", i.Role)
		return []transport.Command{hello}, nil
	}}))
	require.NoError(t, l.State(time.Now()).Err)
	info := l.State(time.Now()).Info
	assert.Len(t, info.RunID, 40)
	assert.NotEmpty(t, info.Version)
	assert.Equal(t, "master", info.Role)
	assert.True(t, info.AOFEnabled)
	assert.True(t, info.FsyncAlways)
	assert.Equal(t, "noeviction", info.Eviction)
	v, err := do(t, l, "GET", "marker")
	assert.Equal(t, "master", v)
	assert.NoError(t, err)
	v, err = do(t, l, "CLIENT", "INFO")
	assert.NoError(t, err)
	assert.Contains(t, v, "name=tester")
	assert.Contains(t, v, " db=3 ")
	assert.Contains(t, v, " resp=3")
	assert.Zero(t, client.PoolStats().TotalConns, "the caller's client was used")
	assert.True(t, healthy(l))
	assert.NoError(t, shut(l))
	assert.Equal(t, []string{"up", "down"}, log.log)
	assert.NoError(t, client.Ping(t.Context()).Err(), "the caller's client was closed")
}

func TestErrorsOfTheNode(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t, 1, redistest.WithPassword("secret")).Node(0)
	for password, want := range map[string]string{"wrong": "WRONGPASS", "": "NOAUTH"} {
		client := redis.NewClient(&redis.Options{Addr: node.Addr(), Password: password})
		l := open(t, client, transport.Config{})
		assert.ErrorContains(t, l.State(time.Now()).Err, want)
		_, err := do(t, l, "PING")
		assert.ErrorIs(t, err, transport.ErrDown)
		assert.ErrorContains(t, err, want)
		assert.NoError(t, shut(l))
		client.Close()
	}

	l := open(t, node.Client(), transport.Config{})
	_, err := do(t, l, "EVALSHA", "0123456789012345678901234567890123456789", "0")
	var reply resp.Error
	require.ErrorAs(t, err, &reply)
	assert.Equal(t, "NOSCRIPT", reply.Code())
	_, err = do(t, l, "SET", "k", "v")
	assert.NoError(t, err)
	_, err = do(t, l, "LPUSH", "k", "v")
	assert.ErrorContains(t, err, "WRONGTYPE")

	bad := open(t, node.Client(), transport.Config{Hello: func(transport.Info) ([]transport.Command, error) {
		return []transport.Command{newCall("LPUSH", "k", "v"), newCall("SET", "later", "v")}, nil
	}})
	assert.ErrorContains(t, bad.State(time.Now()).Err, "WRONGTYPE",
		"a refused first command fails the connection")
	bad = open(t, node.Client(), transport.Config{Hello: func(transport.Info) ([]transport.Command, error) {
		return nil, errors.New("not this one")
	}})
	assert.ErrorContains(t, bad.State(time.Now()).Err, "not this one")
}

// Every caller gets its own answer, and one caller's commands are executed in
// the order sent.
func TestOrder(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t, 1).Node(0)
	l := open(t, node.Client(), transport.Config{Stall: time.Minute}) // however busy the machine is
	const callers, each = 64, 200
	var wg sync.WaitGroup
	for g := range callers {
		wg.Go(func() {
			key := fmt.Sprint("list", g)
			var calls []*call
			for i := range each {
				a, b := newCall("RPUSH", key, fmt.Sprint(i)), newCall("ECHO", fmt.Sprint(g, "-", i))
				if i%2 == 0 {
					send(l, a, b)
				} else {
					send(l, a)
					send(l, b)
				}
				calls = append(calls, a, b)
			}
			for i := range each {
				v, err := calls[2*i].wait(t)
				assert.NoError(t, err)
				assert.Equal(t, fmt.Sprint(i+1), v)
				v, err = calls[2*i+1].wait(t)
				assert.NoError(t, err)
				assert.Equal(t, fmt.Sprint(g, "-", i), v)
			}
			list := node.Client().LRange(t.Context(), key, 0, -1).Val()
			if assert.Len(t, list, each) {
				for i, x := range list {
					assert.Equal(t, fmt.Sprint(i), x)
				}
			}
		})
	}
	wg.Wait()
}

// chain sends the next command from within Reply, with a lock held around
// Append that Reply takes too.
type chain struct {
	mu   *sync.Mutex
	l    *transport.Ordered
	left int
	done chan error
}

func (c *chain) Append(dst []byte) []byte { return resp.AppendCommand(dst, "PING") }

func (c *chain) Reply(_ []resp.Value, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left == 0 || err != nil {
		c.done <- err
		return
	}
	send(c.l, c)
}

func TestSendFromReply(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t, 1).Node(0)
	l := open(t, node.Client(), transport.Config{})
	run := func() error {
		c := &chain{mu: new(sync.Mutex), l: l, left: 100, done: make(chan error, 1)}
		c.mu.Lock()
		send(l, c)
		c.mu.Unlock()
		return <-c.done
	}
	assert.NoError(t, run())
	require.NoError(t, node.Kill())
	eventually(t, "down", func() bool { return l.State(time.Now()).Err != nil })
	assert.ErrorIs(t, run(), transport.ErrDown)
}

func TestClose(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t, 1).Node(0)
	l := open(t, node.Client(), transport.Config{Channel: "ch"})
	var calls []*call
	for i := range 1000 {
		c := newCall("SET", "k", fmt.Sprint(i))
		calls = append(calls, c)
		send(l, c)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	require.NoError(t, l.Close(ctx))
	for _, c := range calls {
		assert.EqualValues(t, 1, c.replies.Load(), "answered when Close returns")
		assert.NoError(t, c.err)
	}
	assert.Equal(t, "999", node.Client().Get(ctx, "k").Val())
	_, err := do(t, l, "PING")
	assert.ErrorIs(t, err, transport.ErrClosed)
	assert.ErrorIs(t, l.State(time.Now()).Err, transport.ErrClosed)
	assert.False(t, healthy(l))
	assert.NoError(t, l.Close(ctx), "again")
	eventually(t, "no connection left", func() bool {
		return strings.Count(node.Client().ClientList(ctx).Val(), "\n") == 1 // the asker
	})
}

// again appends itself when it has its answer.
type again struct {
	*call
	l *transport.Ordered
}

func (a again) Reply(v []resp.Value, err error) {
	if err == nil {
		a.l.Append(a, transport.Certain)
	}
}

// Commands that come while Close waits are none that it has left unanswered.
func TestCloseWhileCommandsCome(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t, 1).Node(0)
	for range 50 {
		l := open(t, node.Client(), transport.Config{})
		l.Append(again{newCall("PING"), l}, transport.Certain)
		require.NoError(t, l.Close(context.Background()))
	}
}

func TestCloseWhileHung(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t, 1).Node(0)
	l := open(t, node.Client(), transport.Config{Channel: "ch"})
	require.NoError(t, node.Stop())
	a, b := newCall("PING"), lasting("DEL", "x")
	send(l, a, b)
	began := time.Now()
	err := shut(l)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorContains(t, err, "2 commands")
	assert.Less(t, time.Since(began), 600*time.Millisecond)
	for _, c := range []*call{a, b} {
		require.EqualValues(t, 1, c.replies.Load())
		assert.ErrorIs(t, c.err, transport.ErrClosed)
	}

	// Connecting to a node that accepts and says nothing is interrupted too.
	l, err = transport.NewOrdered(node.Client(), whole(transport.Config{Channel: "ch"}))
	require.NoError(t, err)
	c := lasting("DEL", "x")
	send(l, c)
	time.Sleep(50 * time.Millisecond)
	began = time.Now()
	assert.ErrorContains(t, shut(l), "1 commands")
	assert.Less(t, time.Since(began), 600*time.Millisecond)
	assert.ErrorIs(t, c.err, transport.ErrClosed)
}

// written counts the writes to a connection.
type written struct {
	net.Conn
	n *atomic.Int64
}

func (w written) Write(p []byte) (int, error) {
	w.n.Add(1)
	return w.Conn.Write(p)
}

// What one caller after another sends to a node that is far away goes out
// together.
func TestWriterGathersForANodeFarAway(t *testing.T) {
	t.Parallel()
	n := redistest.Start(t, 1).Node(0)
	far, err := proxy.Open(n.Addr())
	require.NoError(t, err)
	defer far.Close()
	far.Impose(proxy.Both, proxy.Any, proxy.Fault{Delay: 50 * time.Millisecond})
	var writes atomic.Int64
	client := redis.NewClient(&redis.Options{Addr: far.Addr(),
		Dialer: func(_ context.Context, network, addr string) (net.Conn, error) {
			nc, err := net.Dial(network, addr)
			return written{nc, &writes}, err
		}})
	defer client.Close()
	l := open(t, client, transport.Config{})
	_, err = do(t, l, "PING") // measures the way
	require.NoError(t, err)

	before, began := writes.Load(), time.Now()
	var calls []*call
	for range 500 {
		calls = append(calls, newCall("PING"))
		send(l, calls[len(calls)-1])
		runtime.Gosched()
	}
	took := time.Since(began)
	for _, c := range calls {
		_, err := c.wait(t)
		require.NoError(t, err)
	}
	// The first ones are a caller's own, as are those after all have been
	// answered.
	assert.LessOrEqual(t, writes.Load()-before, 30+int64(took/(4*time.Millisecond)))
}
