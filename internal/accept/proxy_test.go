package accept_test

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/redistest"
)

// proxy is a way to a server that can be cut. It stands for the network, which
// can be cut for one client and not for another.
type proxy struct {
	listener net.Listener
	server   string
	delay    time.Duration // each way
	all      sync.WaitGroup

	mu     sync.Mutex
	cut    chan struct{} // nil while it is open; closed when it is opened again
	conns  map[*net.TCPConn]bool
	closed bool
}

// proxies returns a proxy for each server of c, which takes so long each way, and
// the URLs to reach the servers through them.
func proxies(t *testing.T, c *redistest.Cluster, delay time.Duration) (ps []*proxy, urls []string) {
	t.Helper()
	for _, server := range c.URLs() {
		u, err := url.Parse(server)
		require.NoError(t, err)
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		require.NoError(t, err)
		p := &proxy{listener: l, server: u.Host, delay: delay, conns: map[*net.TCPConn]bool{}}
		p.all.Go(p.accept)
		t.Cleanup(p.close)
		u.Host = l.Addr().String()
		ps, urls = append(ps, p), append(urls, u.String())
	}
	return ps, urls
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp4", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		a, b := client.(*net.TCPConn), server.(*net.TCPConn)
		p.mu.Lock()
		p.conns[a], p.conns[b] = true, true
		if p.closed {
			_, _ = a.Close(), b.Close()
		}
		p.mu.Unlock()
		p.all.Go(func() { p.copy(a, b) })
		p.all.Go(func() { p.copy(b, a) })
	}
}

// chunk is what has been read at one time, and when it has come to the other end.
type chunk struct {
	data []byte
	due  time.Time
	err  error // there is no more
}

// copy carries bytes one way. While the way is cut they stay where they are.
func (p *proxy) copy(to, from *net.TCPConn) {
	way := make(chan chunk, 1024)
	p.all.Go(func() {
		for more := true; more; {
			data := make([]byte, 16<<10)
			n, err := from.Read(data)
			way <- chunk{data[:n], time.Now().Add(p.delay), err}
			more = err == nil
		}
		p.mu.Lock()
		delete(p.conns, from)
		p.mu.Unlock()
		close(way)
	})
	for c := range way {
		time.Sleep(time.Until(c.due))
		p.wait()
		_, err := to.Write(c.data)
		switch {
		case c.err == io.EOF:
			_ = to.CloseWrite()
		case c.err != nil || err != nil:
			_, _ = to.Close(), from.Close()
		}
	}
}

// wait returns when the way is not cut.
func (p *proxy) wait() {
	p.mu.Lock()
	cut := p.cut
	p.mu.Unlock()
	if cut != nil {
		<-cut
	}
}

// stop cuts the way: connections stay, and nothing passes.
func (p *proxy) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = make(chan struct{})
}

// open lets pass again, at first what has piled up.
func (p *proxy) open() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut != nil {
		close(p.cut)
		p.cut = nil
	}
}

// reset ends every connection with RST, as a rebooted firewall does.
func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.SetLinger(0)
		_ = c.Close()
	}
	clear(p.conns)
}

func (p *proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.listener.Close()
	p.open()
	p.reset()
	p.all.Wait()
}
