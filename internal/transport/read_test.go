package transport_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/internal/transport"
)

// ownCall is a command whose caller reads the answer, where it can.
type ownCall struct {
	*call
	came chan struct{}
	own  bool // it has read it
}

func (c *ownCall) Reply(v []resp.Value, err error) {
	c.own = bytes.Contains(debug.Stack(), []byte("transport_test.ask("))
	c.came <- struct{}{}
	c.call.Reply(v, err)
}

// ask sends a command and reads. The answer may come later.
func ask(l transport.Transport, words ...string) *ownCall {
	c := &ownCall{call: newCall(words...), came: make(chan struct{}, 1)}
	send(l, c)
	l.Read(c.came)
	return c
}

// alone returns when a caller has read its own answer, so that the next one
// most likely does, too.
func alone(t testing.TB, l transport.Transport) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		c := ask(l, "PING")
		v, err := c.wait(t)
		require.NoError(t, err)
		require.Equal(t, "PONG", v)
		if c.own {
			return
		}
		require.True(t, time.Now().Before(deadline), "no caller reads")
	}
}

func TestCallerReads(t *testing.T) {
	t.Parallel()
	n := redistest.Start(t, 1).Node(0)
	for _, protocol := range []int{2, 3} {
		client := redis.NewClient(&redis.Options{Addr: n.Addr(), Protocol: protocol})
		defer client.Close()
		var seen events
		l := open(t, client, seen.config(transport.Config{Channel: "c"}))
		eventually(t, "subscribed", func() bool { return seen.count("subscribed") == 1 })
		for i := range 100 {
			alone(t, l)
			// One that no caller reads.
			v, err := do(t, l, "ECHO", fmt.Sprint(i))
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(i), v)
			if i%10 == 0 { // a push comes while no caller has anything to read
				alone(t, l)
				push := fmt.Sprint("push ", protocol, i)
				require.NoError(t, client.Publish(t.Context(), "c", fmt.Sprint(protocol, i)).Err())
				eventually(t, push, func() bool { return seen.count(push) == 1 })
			}
			// An error is an answer.
			_, err = ask(l, "NONSENSE").wait(t)
			var refused resp.Error
			require.ErrorAs(t, err, &refused)
		}
		require.NoError(t, shut(l))
		require.Equal(t, 1, seen.count("up"))
	}
}

// The reader goroutine is to hear a push at once where a caller waits for one.
func TestNoCallerReadsWhereOneWaitsForAPush(t *testing.T) {
	t.Parallel()
	l := open(t, redistest.Start(t, 1).Node(0).Client(), transport.Config{Alone: func() bool { return false }})
	for range 100 {
		c := ask(l, "PING")
		_, err := c.wait(t)
		require.NoError(t, err)
		require.False(t, c.own)
	}
}

// Callers that come at once get their answers in order, read by each other.
func TestCallersReadInTurns(t *testing.T) {
	t.Parallel()
	for _, callers := range []int{2, 8} {
		l := open(t, redistest.Start(t, 1).Node(0).Client(), transport.Config{})
		var wg sync.WaitGroup
		for g := range callers {
			wg.Go(func() {
				for i := range 2000 / callers {
					v, err := ask(l, "INCR", fmt.Sprint("n", g)).wait(t)
					assert.NoError(t, err)
					assert.Equal(t, fmt.Sprint(i+1), v)
					if i%50 < g { // the others may find a connection that the reader goroutine has left
						time.Sleep(time.Duration(i%5) * time.Millisecond)
					}
				}
			})
		}
		wg.Wait()
	}
}

// slowNode answers SLOW in two parts: the first at once, the second when it
// may.
func slowNode(t testing.TB, first, second string) (n *fake, may chan struct{}) {
	may = make(chan struct{})
	return newFake(t, func(c *fakeConn, words []string) string {
		if words[0] != "SLOW" {
			return "+OK\r\n"
		}
		if _, err := c.Write([]byte(first)); err != nil {
			return ""
		}
		<-may
		return second
	}), may
}

// A caller does not wait for a node that is slow, in the middle of an answer
// either, so that it sees the end of its context.
func TestCallerReadsNoLongerThanItMay(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"", "$5\r\nhe", "*2\r\n$3\r\nabc\r\n"} {
		whole := "$5\r\nhello\r\n"
		if len(first) > 7 {
			whole = first + ":1\r\n"
		}
		n, may := slowNode(t, first, whole[len(first):])
		var seen events
		l := open(t, n.client(t), seen.config(transport.Config{Stall: time.Minute}))
		alone(t, l)
		c := ask(l, "SLOW")
		require.Empty(t, c.came)
		may <- struct{}{}
		v, err := c.wait(t)
		require.NoError(t, err)
		require.Contains(t, []string{"hello", "abc 1"}, v)
		alone(t, l) // after a while
		require.NoError(t, shut(l))
		require.Equal(t, 1, seen.count("up"))
	}
}

// An answer that is longer than the buffer is left to the reader goroutine.
func TestCallerLeavesALongAnswer(t *testing.T) {
	t.Parallel()
	long := string(bytes.Repeat([]byte("x"), 100_000))
	n := redistest.Start(t, 1).Node(0)
	require.NoError(t, n.Client().Set(t.Context(), "long", long, 0).Err())
	var seen events
	l := open(t, n.Client(), seen.config(transport.Config{}))
	for range 10 {
		alone(t, l)
		v, err := ask(l, "GET", "long").wait(t)
		require.NoError(t, err)
		require.Equal(t, long, v)
	}
	require.Equal(t, 1, seen.count("up"))
}

// What a caller reads as the connection breaks gets its one Reply, and the next
// connection is read.
func TestConnectionBreaksWhileACallerReads(t *testing.T) {
	t.Parallel()
	n, may := slowNode(t, "", "+late\r\n")
	l := open(t, n.client(t), transport.Config{})
	for range 3 {
		alone(t, l)
		before := len(n.commands())
		done := make(chan *ownCall)
		go func() { done <- ask(l, "SLOW") }()
		eventually(t, "asked", func() bool { return len(n.commands()) > before })
		n.drop()
		_, err := (<-done).wait(t)
		require.ErrorIs(t, err, transport.ErrBroken)
		may <- struct{}{}
		eventually(t, "up again", func() bool { return healthy(l) })
	}
}

func TestCloseWhileACallerReads(t *testing.T) {
	t.Parallel()
	n, may := slowNode(t, "", "+late\r\n")
	l := open(t, n.client(t), transport.Config{})
	alone(t, l)
	done := make(chan *ownCall)
	go func() { done <- ask(l, "SLOW") }()
	eventually(t, "asked", func() bool { c := n.commands(); return len(c) > 0 && c[len(c)-1] == "SLOW" })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, l.Close(ctx))
	_, err := (<-done).wait(t)
	require.ErrorIs(t, err, transport.ErrClosed)
	may <- struct{}{}
}

// tardy is a command whose Reply takes longer than a caller may read.
type tardy struct{ *call }

func (c tardy) Reply(v []resp.Value, err error) {
	time.Sleep(50 * time.Millisecond)
	c.call.Reply(v, err)
}

// A caller that has had its time as it reads what nothing has asked for ends
// the connection, as the reader goroutine would.
func TestCallerReadsAnUnaskedAnswer(t *testing.T) {
	t.Parallel()
	n := newFake(t, func(_ *fakeConn, words []string) string {
		if words[0] == "TWO" {
			return "+OK\r\n+OK\r\n"
		}
		return "+OK\r\n"
	})
	var seen events
	l := open(t, n.client(t), seen.config(transport.Config{Stall: time.Minute}))
	alone(t, l)
	c := tardy{newCall("TWO")}
	send(l, c)
	l.Read(make(chan struct{}, 1))
	_, err := c.wait(t)
	require.NoError(t, err)
	eventually(t, "the connection has ended", func() bool { return seen.count("down") == 1 })
}

// A caller that has had its time in the middle of what is no reply ends the
// connection, and takes nothing after it for its answer.
func TestCallerReadsNoReply(t *testing.T) {
	t.Parallel()
	for i := range 40 { // which goroutine reads next is a matter of chance
		first := []string{"Xgarbage", "%600000\r\n:1\r\n"}[i%2]
		n, may := slowNode(t, first, "+wrong\r\n")
		l := open(t, n.client(t), transport.Config{Stall: time.Minute})
		alone(t, l)
		c := ask(l, "SLOW")
		may <- struct{}{}
		_, err := c.wait(t)
		require.Error(t, err, first)
	}
}

// deaf is a connection whose reads end with no deadline. Its writes do: the
// deadline that a handshake has set is for the handshake only.
type deaf struct{ net.Conn }

func (d deaf) SetDeadline(at time.Time) error { return d.SetWriteDeadline(at) }
func (deaf) SetReadDeadline(time.Time) error  { return nil }

// What a Dialer has made is left to the reader goroutine.
func TestNoCallerReadsWhatIsNoSocket(t *testing.T) {
	t.Parallel()
	n := redistest.Start(t, 1).Node(0)
	client := redis.NewClient(&redis.Options{Addr: n.Addr(),
		Dialer: func(_ context.Context, network, addr string) (net.Conn, error) {
			nc, err := net.Dial(network, addr)
			return deaf{nc}, err
		}})
	defer client.Close()
	l := open(t, client, transport.Config{})
	for range 100 {
		c := ask(l, "PING")
		_, err := c.wait(t)
		require.NoError(t, err)
		require.False(t, c.own)
	}
}
