package proxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

const (
	queueLength = 1024     // pieces that wait in one direction; TCP's own flow control keeps back the rest
	pieceLength = 16 << 10 // most bytes of a piece
	// How many bytes of a direction are searched for SUBSCRIBE: a subscription
	// sends only the login before it.
	sniffed = 4096
)

// conn is a client's connection and the one to the server that belongs to it.
type conn struct {
	proxy          *Proxy
	client, server *net.TCPConn
	kind           Kind // guarded by Proxy.mu

	once  sync.Once
	ended chan struct{} // closed when both are closed
}

// end closes both connections. Their goroutines end then. The proxy no longer
// counts the connection when an end of it learns that it is closed. The caller
// does not hold Proxy.mu.
func (c *conn) end(rst bool) {
	c.once.Do(func() {
		c.proxy.mu.Lock()
		delete(c.proxy.conns, c)
		c.proxy.mu.Unlock()
		for _, nc := range []*net.TCPConn{c.client, c.server} {
			if rst {
				_ = nc.SetLinger(0)
			}
			_ = nc.Close()
		}
		close(c.ended)
	})
}

// piece is what was read at one time.
type piece struct {
	data []byte
	at   time.Time
	err  error // the stream has ended: there is neither data nor a next piece
}

// pipe is one direction of a connection. Its read and its write are one
// goroutine each.
type pipe struct {
	conn     *conn
	lane     *lane
	from, to *net.TCPConn
	queue    chan piece

	// What write alone uses.
	fault  *Fault // that was seen last
	passed int64  // bytes since then
}

// read queues what comes, until the stream or the connection ends.
func (p *pipe) read() {
	var seen []byte
	for {
		data := make([]byte, pieceLength)
		n, err := p.from.Read(data)
		if n > 0 {
			found := false
			if len(seen) < sniffed {
				seen = append(seen, data[:n]...)
				found = subscribes(seen)
			}
			p.count(n, found)
			if !p.enqueue(piece{data: data[:n], at: time.Now()}) {
				return
			}
		}
		if err != nil {
			p.enqueue(piece{at: time.Now(), err: err})
			return
		}
	}
}

func (p *pipe) enqueue(x piece) bool {
	select {
	case p.queue <- x:
		return true
	case <-p.conn.ended:
		return false
	}
}

// subscribes says whether the beginning of a connection is one of a
// subscription. The client's request and the server's confirmation both are.
func subscribes(data []byte) bool {
	return bytes.Contains(bytes.ToLower(data), []byte("$9\r\nsubscribe\r\n"))
}

func (p *pipe) count(n int, subscribes bool) {
	proxy := p.conn.proxy
	proxy.mu.Lock()
	defer proxy.mu.Unlock()
	p.lane.bytes += int64(n)
	if subscribes && p.conn.kind != Pushes {
		p.conn.kind = Pushes
		proxy.change()
	}
}

// write delivers what is queued as the faults have it, until the stream or the
// connection ends.
func (p *pipe) write() {
	for {
		_, changed, ok := p.look()
		if !ok {
			return
		}
		select {
		case <-p.conn.ended:
			return
		case <-changed:
		case x := <-p.queue:
			if !p.deliver(x) {
				return
			}
		}
	}
}

// look returns whether data passes now, and what is closed when that or the
// fault changes. It is false when the connection has ended, as it does when a
// Drop is lifted.
func (p *pipe) look() (pass bool, changed <-chan struct{}, ok bool) {
	proxy := p.conn.proxy
	proxy.mu.Lock()
	fault, held, changed := p.lane.commands, proxy.held, proxy.changed
	if p.conn.kind == Pushes {
		fault = p.lane.pushes
	}
	proxy.mu.Unlock()
	if fault != p.fault {
		if p.fault != nil && p.fault.Drop && !fault.Drop {
			p.conn.end(false)
			return false, nil, false
		}
		p.fault, p.passed = fault, 0
	}
	return !held && !fault.Hold, changed, true
}

// deliver hands a piece on when it is due, and says whether the direction goes
// on after it.
func (p *pipe) deliver(x piece) bool {
	var seen *Fault
	var due time.Time
	for {
		pass, changed, ok := p.look()
		if !ok {
			return false
		}
		if p.fault != seen {
			seen, due = p.fault, p.due(x)
			if seen.Observe != nil && x.err == nil {
				seen.Observe(x.data)
			}
		}
		var timer <-chan time.Time // never, while it is held
		switch {
		case !pass:
		case seen.Drop && x.err == nil:
			return true
		case seen.Drop:
		case time.Until(due) <= 0:
			return p.forward(x)
		case seen.Exact && seen.Delay <= time.Millisecond:
			sleepExactly(time.Until(due))
			continue
		default:
			timer = time.After(time.Until(due))
		}
		select {
		case <-p.conn.ended:
			return false
		case <-changed:
		case <-timer:
		}
	}
}

// due is when a piece passes by the fault that is imposed. A loss and a limited
// rate count from now: what is behind waits, too.
func (p *pipe) due(x piece) time.Time {
	f := p.fault
	due := x.at.Add(f.late())
	if f.Loss > 0 {
		due = due.Add(time.Since(x.at))
	}
	if f.Rate > 0 {
		proxy := p.conn.proxy
		proxy.mu.Lock()
		defer proxy.mu.Unlock()
		if now := time.Now(); p.lane.free.Before(now) {
			p.lane.free = now
		}
		p.lane.free = p.lane.free.Add(time.Duration(len(x.data)) * time.Second / time.Duration(f.Rate))
		if p.lane.free.After(due) {
			due = p.lane.free
		}
	}
	return due
}

// forward writes a piece that is due, or ends the stream as its sender did.
func (p *pipe) forward(x piece) bool {
	f := p.fault
	switch {
	case errors.Is(x.err, io.EOF):
		_ = p.to.CloseWrite()
		return false
	case x.err != nil || f.Reset:
		p.conn.end(true)
		return false
	}
	data := x.data
	if f.Cut > 0 {
		data = data[:min(int64(len(data)), f.Cut-p.passed)]
	}
	p.passed += int64(len(data))
	if _, err := p.to.Write(data); err != nil {
		p.conn.end(true)
		return false
	}
	if f.Cut > 0 && p.passed >= f.Cut {
		p.conn.end(false)
		return false
	}
	return true
}
