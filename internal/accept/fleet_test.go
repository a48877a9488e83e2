package accept_test

import (
	"context"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/redistest"
	"github.com/quorate/quorate/internal/script"
)

// narrow is a way to a server that many clients share: so many bytes a second pass
// in each direction.
type narrow struct {
	listener net.Listener
	rate     int
	up, down lane
	sent     atomic.Int64 // by clients
	all      sync.WaitGroup
}

// lane is one direction. Chunks pass one after the other.
type lane struct {
	mu   sync.Mutex
	free time.Time
}

// pass returns when n bytes have passed.
func (l *lane) pass(n, rate int) {
	l.mu.Lock()
	l.free = later(time.Now(), l.free).Add(time.Duration(n) * time.Second / time.Duration(rate))
	due := l.free
	l.mu.Unlock()
	time.Sleep(time.Until(due))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// narrowWay returns a narrow way to the server, and the URL to reach it by.
func narrowWay(t *testing.T, server string, rate int) (*narrow, string) {
	t.Helper()
	u, err := url.Parse(server)
	require.NoError(t, err)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	w := &narrow{listener: l, rate: rate}
	to := u.Host
	w.all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp4", to)
			if err != nil {
				_ = client.Close()
				continue
			}
			w.all.Go(func() { w.copy(server, client, &w.up, &w.sent) })
			w.all.Go(func() { w.copy(client, server, &w.down, new(atomic.Int64)) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); w.all.Wait() })
	u.Host = l.Addr().String()
	return w, u.String()
}

func (w *narrow) copy(to, from net.Conn, by *lane, count *atomic.Int64) {
	defer func() { _, _ = to.Close(), from.Close() }()
	b := make([]byte, 2<<10)
	for {
		n, err := from.Read(b)
		count.Add(int64(n))
		if err != nil {
			return
		}
		by.pass(n, w.rate)
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

// fleet connects so many clients at once, and waits until each has its node.
func fleet(t *testing.T, n int, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	var failed atomic.Int64
	for range n {
		all.Go(func() {
			q, err := quorate.Connect(ctx, []string{url})
			if err != nil {
				if failed.Add(1) == 1 {
					t.Error(err)
				}
				return
			}
			_ = q.Close()
		})
	}
	all.Wait()
	assert.Zero(t, failed.Load(), "of %d clients", n)
}

// Many clients that connect at once over a narrow way all get in. That takes many
// times as long as one step of a handshake may take. No client sends a script twice,
// or to a node that knows it.
func TestFleetConnectsAtOnce(t *testing.T) {
	t.Parallel()
	const clients = 60
	sources := 0
	for _, s := range script.All() {
		sources += len(s.Source)
	}
	c := redistest.Start(t, 1)
	w, url := narrowWay(t, c.URLs()[0], 600<<10) // the scripts of all take 4 s
	began := time.Now()
	fleet(t, clients, url)
	cold := w.sent.Load()
	t.Logf("node without scripts: %v, %d kB sent", time.Since(began), cold>>10)
	assert.Less(t, cold, int64(clients*(sources+8<<10)), "more than once")

	began = time.Now()
	fleet(t, clients, url)
	warm := w.sent.Load() - cold
	t.Logf("node with scripts: %v, %d kB sent", time.Since(began), warm>>10)
	assert.Less(t, warm, int64(clients*4<<10))
}
