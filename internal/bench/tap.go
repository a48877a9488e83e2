package main

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/quorate/quorate/internal/resp"
)

// tap opens connections, and notes when which bytes went through them. So it is
// seen from outside of the library what a call waits for. All times are since
// epoch. It is safe for concurrent use.
type tap struct {
	epoch time.Time
	mu    sync.Mutex
	conns []*tapped
}

func newTap() *tap { return &tap{epoch: time.Now()} }

func (t *tap) now() time.Duration { return time.Since(t.epoch) }

// dial is a redis.Options.Dialer.
func (t *tap) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c := &tapped{Conn: nc, tap: t}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conns = append(t.conns, c)
	return c, nil
}

// tapped is a connection with a record of each direction.
type tapped struct {
	net.Conn
	tap       *tap
	out, back record
}

// SyscallConn says that it is a socket: else no caller would read it.
func (c *tapped) SyscallConn() (syscall.RawConn, error) {
	return c.Conn.(syscall.Conn).SyscallConn()
}

func (c *tapped) Write(p []byte) (int, error) {
	begun := c.tap.now()
	n, err := c.Conn.Write(p)
	c.out.add(begun, c.tap.now(), p[:n])
	return n, err
}

func (c *tapped) Read(p []byte) (int, error) {
	begun := c.tap.now()
	n, err := c.Conn.Read(p)
	c.back.add(begun, c.tap.now(), p[:n])
	return n, err
}

// record is what went one way, from the first byte on.
type record struct {
	mu    sync.Mutex
	bytes []byte
	parts []part
}

// part is one Write or one Read.
type part struct {
	span
	end int // of its bytes
}

// span is from when until when something lasted.
type span struct{ begun, ended time.Duration }

func (r *record) add(begun, ended time.Duration, p []byte) {
	if len(p) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bytes = append(r.bytes, p...)
	r.parts = append(r.parts, part{span{begun, ended}, len(r.bytes)})
}

// playback reads a record, a part at a time. What decodes it asks for no more
// than it needs, as it did when the bytes came. So the part that was read last
// has the end of what was decoded last.
type playback struct {
	*record
	read int // bytes
	next int // part
}

func (p *playback) Read(b []byte) (int, error) {
	if p.next == 0 || p.read == p.parts[p.next-1].end {
		if p.next == len(p.parts) {
			return 0, io.EOF
		}
		p.next++
	}
	n := copy(b, p.bytes[p.read:p.parts[p.next-1].end])
	p.read += n
	return n, nil
}

// exchange is a command and its answer.
type exchange struct {
	word     string        // EVALSHA
	written  span          // by which Write
	answered time.Duration // when its last byte had been read; 0: it was not
}

// exchanges pairs the commands of a connection that is closed with the answers.
func (c *tapped) exchanges() ([]exchange, error) {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	c.back.mu.Lock()
	defer c.back.mu.Unlock()
	var all []exchange
	err := c.out.each(func(v []resp.Value, _ bool, p part) {
		word := ""
		if len(v) > 0 {
			word = strings.ToUpper(string(v[0].Str))
		}
		all = append(all, exchange{word: word, written: p.span})
	})
	if err != nil {
		return nil, err
	}
	answers := 0
	err = c.back.each(func(v []resp.Value, push bool, p part) {
		// The answer to SUBSCRIBE is a push.
		if push && (len(v) != 3 || string(v[0].Str) != "subscribe") {
			return
		}
		if answers < len(all) {
			all[answers].answered = p.ended
		}
		answers++
	})
	if answers > len(all) {
		err = errors.Join(err, errors.New("more answers than commands"))
	}
	return all, err
}

// each calls f for each command or answer of a record, with the part that had
// its end. What is there in part only, at the end, is left out.
func (r *record) each(f func(v []resp.Value, push bool, p part)) error {
	p := &playback{record: r}
	for in := resp.NewReader(p); ; {
		v, err := in.Read()
		if _, refused := errors.AsType[resp.Error](err); err != nil && !refused {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil
			}
			return err
		}
		f(v, in.IsPush(), r.parts[p.next-1])
	}
}

// scripts returns, for each connection, the scripts that were asked for, in
// their order. All connections are closed.
func (t *tap) scripts() ([][]exchange, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var of [][]exchange
	for _, c := range t.conns {
		all, err := c.exchanges()
		if err != nil {
			return nil, err
		}
		of = append(of, slices.DeleteFunc(all, func(x exchange) bool { return x.word != "EVALSHA" }))
	}
	return of, nil
}
