// Package proxy is a TCP proxy that imposes faults on the way from clients to
// one Redis server.
//
// A [Proxy] stands for the network between some clients and a server. Clients
// that must be cut off on their own get a proxy of their own. Data flows like
// this, for each connection and in each direction:
//
//	one end ──read──▶ queue ──fault──▶ write──▶ other end
//
// One goroutine reads and one applies the [Fault] that is imposed at the
// moment. A fault can be imposed and lifted at any time, also while data waits:
// data that waits is judged by the new fault at once.
//
// The proxy does not understand the protocol. It only looks for SUBSCRIBE at
// the beginning of a connection, to tell the two kinds of connections of a
// client apart.
package proxy

import (
	"context"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"
)

// Proxy is the way to one server. It owns a listener, the connections through
// it and their goroutines, and gives them all up in [Proxy.Close]. Its methods
// may be called concurrently.
//
// Invariant: p.mu is never held while data is read, written or waited for. So a
// fault can be imposed and a connection ended whatever its ends do, a stopped
// process included.
type Proxy struct {
	server   string
	listener net.Listener
	ctx      context.Context // of dialling; ends with the proxy
	cancel   context.CancelFunc
	all      sync.WaitGroup

	mu       sync.Mutex
	up, down lane
	held     bool          // nothing passes, whatever the faults are
	changed  chan struct{} // closed, and replaced, when a fault, held or the kind of a connection changes
	conns    map[*conn]bool
	closed   bool
}

// lane is one direction of a proxy, guarded by Proxy.mu.
type lane struct {
	commands, pushes *Fault
	free             time.Time // when what passes at a limited rate has passed
	bytes            int64     // that came in so far
}

// Open returns a proxy to the server at an address. It passes data without
// faults.
func Open(server string) (*Proxy, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	pass := &Fault{}
	p := &Proxy{
		server: server, listener: l, up: lane{commands: pass, pushes: pass},
		down:    lane{commands: pass, pushes: pass},
		changed: make(chan struct{}), conns: map[*conn]bool{},
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.all.Go(p.accept)
	return p, nil
}

// Start opens a proxy in front of each of the servers at urls for as long as a
// test runs, imposes f on it, and returns the URLs that lead through the
// proxies.
func Start(t testing.TB, urls []string, f Fault) (proxies []*Proxy, through []string) {
	t.Helper()
	for _, server := range urls {
		u, err := url.Parse(server)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Open(u.Host)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		p.Impose(Both, Any, f)
		u.Host = p.Addr()
		proxies, through = append(proxies, p), append(through, u.String())
	}
	return proxies, through
}

// Addr is where clients reach the server, as host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Impose puts a fault on connections of some kinds in some directions, those
// that are open and those to come, in place of the fault before. The zero Fault
// lifts that one.
func (p *Proxy) Impose(d Direction, k Kind, f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range []struct {
		d Direction
		l *lane
	}{{Up, &p.up}, {Down, &p.down}} {
		if d&one.d == 0 {
			continue
		}
		if k&Commands != 0 {
			one.l.commands = &f
		}
		if k&Pushes != 0 {
			one.l.pushes = &f
		}
	}
	p.change()
}

// Hold lets nothing pass, in both directions and whatever faults are imposed,
// until [Proxy.Release]. Connections stay, and new ones are accepted.
func (p *Proxy) Hold() { p.hold(true) }

// Release ends Hold. What was held arrives.
func (p *Proxy) Release() { p.hold(false) }

func (p *Proxy) hold(held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = held
	p.change()
}

// change wakes each goroutine that waits for the fault it has seen. The caller
// holds p.mu.
func (p *Proxy) change() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// End closes all connections, as the program at the other end does, and returns
// how many those were. Data on its way is lost. New connections are accepted.
func (p *Proxy) End() int { return p.end(false) }

// Reset is End with RST, as a rebooted firewall does.
func (p *Proxy) Reset() int { return p.end(true) }

func (p *Proxy) end(rst bool) int {
	p.mu.Lock()
	all := make([]*conn, 0, len(p.conns))
	for c := range p.conns {
		all = append(all, c)
	}
	clear(p.conns)
	p.mu.Unlock()
	for _, c := range all {
		c.end(rst)
	}
	return len(all)
}

// Sent is how many bytes clients have sent so far.
func (p *Proxy) Sent() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.up.bytes
}

// Close ends the listener and all connections, and returns when no goroutine of
// the proxy is left.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	_ = p.listener.Close()
	p.end(false)
	p.all.Wait()
}

func (p *Proxy) accept() {
	for {
		nc, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.all.Go(func() { p.serve(nc.(*net.TCPConn)) })
	}
}

// serve carries the data of one connection until both of its ends are closed.
func (p *Proxy) serve(client *net.TCPConn) {
	nc, err := (&net.Dialer{}).DialContext(p.ctx, "tcp4", p.server)
	if err != nil {
		_ = client.Close()
		return
	}
	c := &conn{proxy: p, client: client, server: nc.(*net.TCPConn), kind: Commands, ended: make(chan struct{})}
	p.mu.Lock()
	closed := p.closed
	p.conns[c] = true
	p.mu.Unlock()
	if closed {
		c.end(false)
	}
	var pipes sync.WaitGroup
	for _, one := range []*pipe{
		{conn: c, lane: &p.up, from: c.client, to: c.server, queue: make(chan piece, queueLength)},
		{conn: c, lane: &p.down, from: c.server, to: c.client, queue: make(chan piece, queueLength)},
	} {
		pipes.Go(one.read)
		pipes.Go(one.write)
	}
	pipes.Wait()
	c.end(false)
}
