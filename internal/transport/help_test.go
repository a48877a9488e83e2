package transport_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/internal/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(redistest.Share(m)) }

// patience is how long a test waits for what must happen soon. It only guards
// against hanging: on a busy machine, under the race detector, a connection
// with 90,000 commands takes ten seconds to end.
const patience = 20 * time.Second

// call is a command whose answer can be waited for.
type call struct {
	words   []string
	until   time.Time
	replies atomic.Int32
	done    chan struct{}
	val     string
	err     error
}

func newCall(words ...string) *call { return &call{words: words, done: make(chan struct{})} }

// lasting is a call that is delivered across connections.
func lasting(words ...string) *call {
	c := newCall(words...)
	c.until = time.Now().Add(time.Minute)
	return c
}

func (c *call) Append(dst []byte) []byte { return resp.AppendCommand(dst, c.words...) }
func (c *call) Until() time.Time         { return c.until }

func (c *call) Reply(v []resp.Value, err error) {
	if c.replies.Add(1) > 1 {
		panic(fmt.Sprint("second reply to ", c.words))
	}
	c.err = err
	for _, x := range v {
		if x.Str != nil {
			c.val += string(x.Str) + " "
		} else {
			c.val += fmt.Sprint(x.Int, " ")
		}
	}
	c.val = strings.TrimSpace(c.val)
	close(c.done)
}

func (c *call) wait(t testing.TB) (string, error) {
	t.Helper()
	select {
	case <-c.done:
	case <-time.After(patience):
		t.Fatalf("no reply to %.60q", c.words)
	}
	return c.val, c.err
}

// send sends commands that do not wait for room.
func send(l transport.Transport, cmds ...transport.Command) {
	for _, c := range cmds {
		l.Append(c, transport.Certain)
	}
	l.Flush()
}

func do(t testing.TB, l *transport.Ordered, words ...string) (string, error) {
	t.Helper()
	c := newCall(words...)
	send(l, c)
	return c.wait(t)
}

// events records what a link tells its owner.
type events struct {
	mu  sync.Mutex
	log []string
}

func (e *events) add(s string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.log = append(e.log, s)
}

func (e *events) count(s string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range e.log {
		if x == s {
			n++
		}
	}
	return n
}

func (e *events) config(cfg transport.Config) transport.Config {
	cfg.Up = func() { e.add("up") }
	cfg.Down = func(err error) { e.add("down") }
	cfg.Subscribed = func() { e.add("subscribed") }
	cfg.PushDown = func(error) { e.add("push down") }
	cfg.Push = func(s string) { e.add("push " + s) }
	return cfg
}

func open(t testing.TB, client redis.UniversalClient, cfg transport.Config) *transport.Ordered {
	t.Helper()
	ready := make(chan struct{})
	cfg = whole(cfg)
	up, down, first := cfg.Up, cfg.Down, sync.OnceFunc(func() { close(ready) })
	cfg.Up = func() { up(); first() }
	cfg.Down = func(err error) { down(err); first() }
	l, err := transport.NewOrdered(client, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { shut(l) })
	<-ready
	return l
}

// whole returns a Config with functions that do nothing where there are none.
func whole(c transport.Config) transport.Config {
	for _, f := range []*func(){&c.Up, &c.Subscribed, &c.Room, &c.HelloFailed} {
		if *f == nil {
			*f = func() {}
		}
	}
	for _, f := range []*func(error){&c.Down, &c.PushDown} {
		if *f == nil {
			*f = func(error) {}
		}
	}
	if c.Probe == nil {
		c.Probe = func() []transport.Command { return nil }
	}
	if c.Hello == nil {
		c.Hello = func(transport.Info) ([]transport.Command, error) { return nil, nil }
	}
	if c.Push == nil {
		c.Push = func(string) {}
	}
	if c.Alone == nil {
		c.Alone = func() bool { return true }
	}
	return c
}

func shut(l *transport.Ordered) error {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	return l.Close(ctx)
}

func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never: ", what)
		}
	}
}

// fake is a node of our own making, to misbehave at will.
type fake struct {
	addr  string
	runID atomic.Value // string
	ids   atomic.Int64
	mu    sync.Mutex
	log   []string // every command but the handshake's questions
	conns map[net.Conn]bool
	// answer gives the reply to a command of an established connection.
	answer func(c *fakeConn, words []string) string
}

type fakeConn struct {
	net.Conn
	f  *fake
	id int64
	rd *resp.Reader
}

func newFake(t testing.TB, answer func(c *fakeConn, words []string) string) *fake {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := &fake{addr: ln.Addr().String(), conns: map[net.Conn]bool{}, answer: answer}
	f.runID.Store("run1")
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			f.mu.Lock()
			f.conns[nc] = true
			f.mu.Unlock()
			c := &fakeConn{Conn: nc, f: f, id: f.ids.Add(1), rd: resp.NewReader(nc)}
			wg.Go(func() { defer nc.Close(); c.serve() })
		}
	})
	t.Cleanup(func() { ln.Close(); f.drop(); wg.Wait() })
	return f
}

// drop resets all connections.
func (f *fake) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for nc := range f.conns {
		if tcp, ok := nc.(*net.TCPConn); ok {
			tcp.SetLinger(0)
		}
		nc.Close()
		delete(f.conns, nc)
	}
}

func (f *fake) commands() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.log...)
}

func (f *fake) client(t testing.TB) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: f.addr})
	t.Cleanup(func() { c.Close() })
	return c
}

func (c *fakeConn) serve() {
	for {
		v, err := c.rd.Read()
		if err != nil {
			return
		}
		var words []string
		for _, x := range v {
			words = append(words, string(x.Str))
		}
		line := strings.Join(words, " ")
		var out string
		switch {
		case strings.EqualFold(words[0], "hello"):
			out = "-ERR unknown command\r\n"
		case strings.EqualFold(line, "ping"):
			out = "+PONG\r\n"
		case line == "INFO server":
			out = string(bytes.TrimPrefix(resp.AppendCommand(nil,
				fmt.Sprintf("# Server\r\nrun_id:%s\r\n", c.f.runID.Load())), []byte("*1\r\n")))
		case strings.HasPrefix(line, "CLIENT SETNAME"):
			out = "+OK\r\n"
		case words[0] == "INFO", words[0] == "CONFIG":
			out = "-NOPERM no\r\n"
		default:
			c.f.mu.Lock()
			c.f.log = append(c.f.log, line)
			c.f.mu.Unlock()
			out = c.f.answer(c, words)
		}
		if _, err := c.Write([]byte(out)); err != nil {
			return
		}
	}
}

func healthy(l *transport.Ordered) bool {
	s := l.State(time.Now())
	return s.Err == nil && s.Waiting < 50*time.Millisecond
}
