package proxy_test

import (
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/internal/testkit/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience only guards against hanging.
const patience = 20 * time.Second

// echo is a proxy in front of a server that replies with what it is sent.
func echo(t *testing.T) *proxy.Proxy {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			})
		}
	})
	p, err := proxy.Open(l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { p.Close(); _ = l.Close(); all.Wait() })
	return p
}

func dial(t *testing.T, p *proxy.Proxy) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp4", p.Addr())
	require.NoError(t, err)
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

// dialled is dial with a connection that has reached the server.
func dialled(t *testing.T, p *proxy.Proxy) *net.TCPConn {
	t.Helper()
	c := dial(t, p)
	send(t, c, "hello")
	require.Equal(t, "hello", receive(t, c, 5))
	return c
}

func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	_, err := io.WriteString(c, text)
	require.NoError(t, err)
}

func receive(t *testing.T, c net.Conn, n int) string {
	t.Helper()
	text := make([]byte, n)
	_, err := io.ReadFull(c, text)
	require.NoError(t, err)
	return string(text)
}

// silent says that c neither receives anything nor ends within a moment.
func silent(t *testing.T, c net.Conn) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err := c.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
}

// ends reads to the end of c, and returns what came before it and how it ended.
func ends(t *testing.T, c net.Conn) (string, error) {
	t.Helper()
	text, err := io.ReadAll(c)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	return string(text), err
}

func TestDataAndItsEndPass(t *testing.T) {
	t.Parallel()
	p := echo(t)
	c := dialled(t, p)
	text := strings.Repeat("0123456789", 100_000)
	go func() {
		_, _ = io.WriteString(c, text)
		_ = c.CloseWrite()
	}()
	got, err := ends(t, c)
	require.NoError(t, err)
	assert.Equal(t, text, got)
	assert.EqualValues(t, len("hello")+len(text), p.Sent())
}

// A connection to a server that is down ends, and one to a server that is up
// again passes.
func TestServerThatIsDown(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	p, err := proxy.Open(l.Addr().String())
	require.NoError(t, err)
	defer p.Close()
	require.NoError(t, l.Close())
	text, _ := ends(t, dial(t, p))
	assert.Empty(t, text)
}

func TestHold(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]func(p *proxy.Proxy) (release func()){
		"all": func(p *proxy.Proxy) func() { p.Hold(); return p.Release },
		"requests": func(p *proxy.Proxy) func() {
			p.Impose(proxy.Up, proxy.Any, proxy.Fault{Hold: true})
			return func() { p.Impose(proxy.Up, proxy.Any, proxy.Fault{}) }
		},
		"replies": func(p *proxy.Proxy) func() {
			p.Impose(proxy.Down, proxy.Any, proxy.Fault{Hold: true})
			return func() { p.Impose(proxy.Down, proxy.Any, proxy.Fault{}) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := echo(t)
			old := dialled(t, p)
			release := hold(p)
			fresh := dial(t, p)
			for _, c := range []*net.TCPConn{old, fresh} {
				send(t, c, "one")
				send(t, c, "two")
				require.NoError(t, c.CloseWrite())
				silent(t, c)
			}
			release()
			for _, c := range []*net.TCPConn{old, fresh} {
				text, err := ends(t, c)
				assert.NoError(t, err)
				assert.Equal(t, "onetwo", text)
			}
		})
	}
}

// Hold does not touch the faults that are imposed.
func TestHoldKeepsFaults(t *testing.T) {
	t.Parallel()
	p := echo(t)
	c := dialled(t, p)
	p.Impose(proxy.Down, proxy.Any, proxy.Fault{Drop: true})
	p.Hold()
	p.Release()
	send(t, c, "x")
	silent(t, c)
}

func TestDrop(t *testing.T) {
	t.Parallel()
	p := echo(t)
	c, idle := dialled(t, p), dialled(t, p)
	p.Impose(proxy.Down, proxy.Any, proxy.Fault{Drop: true})
	send(t, c, "lost")
	require.NoError(t, c.CloseWrite())
	silent(t, c)
	p.Impose(proxy.Down, proxy.Any, proxy.Fault{})
	for _, c := range []net.Conn{c, idle} {
		text, _ := ends(t, c)
		assert.Empty(t, text)
	}
	dialled(t, p)
}

func TestCut(t *testing.T) {
	t.Parallel()
	p := echo(t)
	c := dialled(t, p)
	p.Impose(proxy.Down, proxy.Any, proxy.Fault{Cut: 7})
	send(t, c, "0123")
	require.Equal(t, "0123", receive(t, c, 4))
	send(t, c, "456789")
	text, _ := ends(t, c)
	assert.Equal(t, "456", text)
}

func TestReset(t *testing.T) {
	t.Parallel()
	p := echo(t)
	c := dialled(t, p)
	p.Impose(proxy.Up, proxy.Any, proxy.Fault{Reset: true})
	silent(t, c)
	send(t, c, "x")
	_, err := ends(t, c)
	assert.ErrorIs(t, err, syscall.ECONNRESET)
	p.Impose(proxy.Up, proxy.Any, proxy.Fault{})

	c = dialled(t, p)
	p.Hold()
	assert.Equal(t, 1, p.Reset())
	assert.Zero(t, p.Reset(), "it is counted once")
	_, err = ends(t, c)
	assert.ErrorIs(t, err, syscall.ECONNRESET)
}

// End reaches connections whose data is held, and leaves new ones alone.
func TestEnd(t *testing.T) {
	t.Parallel()
	p := echo(t)
	a, b := dialled(t, p), dialled(t, p)
	p.Hold()
	send(t, a, "x")
	assert.Equal(t, 2, p.End())
	for _, c := range []net.Conn{a, b} {
		text, _ := ends(t, c)
		assert.Empty(t, text)
	}
	p.Release()
	dialled(t, p)
}

// The connections of a proxy share its rate.
func TestRate(t *testing.T) {
	t.Parallel()
	const rate, each = 100 << 10, 15 << 10
	p := echo(t)
	a, b := dialled(t, p), dialled(t, p)
	p.Impose(proxy.Up, proxy.Any, proxy.Fault{Rate: rate})
	began := time.Now()
	for _, c := range []net.Conn{a, b} {
		send(t, c, strings.Repeat("x", each))
	}
	for _, c := range []net.Conn{a, b} {
		receive(t, c, each)
	}
	assert.GreaterOrEqual(t, time.Since(began), 2*each*time.Second/rate)
}

// A subscription is of another kind than a connection for commands. A fault of
// the one spares the other.
func TestKinds(t *testing.T) {
	t.Parallel()
	p := echo(t)
	open := func(hello string) net.Conn {
		c := dial(t, p)
		send(t, c, hello)
		require.Equal(t, hello, receive(t, c, len(hello)))
		return c
	}
	commands := open("*1\r\n$4\r\nPING\r\n")
	pushes := open("*2\r\n$9\r\nSUBSCRIBE\r\n$2\r\nch\r\n")
	for _, one := range []struct {
		kind        proxy.Kind
		held, spare net.Conn
	}{{proxy.Pushes, pushes, commands}, {proxy.Commands, commands, pushes}} {
		var observed atomic.Int64
		p.Impose(proxy.Down, one.kind, proxy.Fault{Hold: true,
			Observe: func(data []byte) { observed.Add(int64(len(data))) }})
		send(t, one.held, "held")
		send(t, one.spare, "spared")
		assert.Equal(t, "spared", receive(t, one.spare, 6))
		silent(t, one.held)
		p.Impose(proxy.Up, proxy.Any, proxy.Fault{}) // wakes it, and concerns the other direction
		silent(t, one.held)
		p.Impose(proxy.Down, one.kind, proxy.Fault{})
		assert.Equal(t, "held", receive(t, one.held, 4))
		assert.EqualValues(t, 4, observed.Load(), "it is observed once")
	}
	open("*1\r\n$9\r\nsubscribe\r\n")
}

func TestStart(t *testing.T) {
	t.Parallel()
	server := echo(t)
	proxies, urls := proxy.Start(t, []string{"redis://user:secret@" + server.Addr()},
		proxy.Fault{Delay: 30 * time.Millisecond})
	require.Len(t, proxies, 1)
	assert.Equal(t, "redis://user:secret@"+proxies[0].Addr(), urls[0])
	began := time.Now()
	dialled(t, proxies[0])
	assert.GreaterOrEqual(t, time.Since(began), 60*time.Millisecond)
}
