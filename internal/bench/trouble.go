package main

import (
	"errors"
	"net"
	"slices"
	"sync"
	"time"
)

// trouble is what is wrong with the last of the nodes.
type trouble string

const (
	none   trouble = ""
	killed trouble = "killed"
	// It takes connections and answers nothing: what a network that drops
	// everything looks like to those that are connected.
	hung trouble = "hung"
	slow trouble = "50 ms away"
)

const slowBy = 50 * time.Millisecond // there and back

// prepare returns the ways to the nodes, and what brings the trouble about once
// all are connected.
func (t trouble) prepare(st *stage, n nodes) (through nodes, cause func() error, err error) {
	last := n.Len() - 1
	switch t {
	case killed:
		n.deaf = 1
		return n, n.Node(last).Kill, nil
	case hung:
		n.deaf = 1
		return n, n.Node(last).Stop, nil
	case slow:
		p, err := newProxy(n.addrs[last], slowBy/2)
		if err != nil {
			return n, nil, err
		}
		st.onClose(p.close)
		n.addrs = append(slices.Clone(n.addrs[:last]), p.listener.Addr().String())
	}
	return n, func() error { return nil }, nil
}

// proxy is a long way to a server.
type proxy struct {
	listener net.Listener
	server   string
	delay    time.Duration // each way
	all      sync.WaitGroup

	mu     sync.Mutex
	conns  []net.Conn
	closed bool
}

func newProxy(server string, delay time.Duration) (*proxy, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, server: server, delay: delay}
	p.all.Go(p.accept)
	return p, nil
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
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		if p.closed {
			_ = errors.Join(client.Close(), server.Close())
		}
		p.mu.Unlock()
		p.all.Go(func() { p.copy(client, server) })
		p.all.Go(func() { p.copy(server, client) })
	}
}

// copy carries bytes one way. Each waits for its own time: what comes later is
// read meanwhile, so the way is long, and not narrow.
func (p *proxy) copy(to, from net.Conn) {
	type parcel struct {
		data []byte
		due  time.Time
	}
	way := make(chan parcel, 4096)
	p.all.Go(func() {
		defer close(way)
		for {
			data := make([]byte, 4<<10)
			n, err := from.Read(data)
			if n > 0 {
				way <- parcel{data[:n], time.Now().Add(p.delay)}
			}
			if err != nil {
				return
			}
		}
	})
	for c := range way {
		time.Sleep(time.Until(c.due))
		if _, err := to.Write(c.data); err != nil {
			_ = from.Close() // and what is on its way is dropped
		}
	}
	_ = to.Close()
}

func (p *proxy) close() {
	p.mu.Lock()
	p.closed = true
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	_ = p.listener.Close()
	p.all.Wait()
}
