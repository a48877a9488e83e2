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

// tap opens connections, and records which bytes went through them when. That
// shows, from outside the library, what a call waits for. All times are since
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

// SyscallConn marks the connection as a socket: otherwise callers would not
// read it themselves.
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

// record is all data that went in one direction.
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

// span is when something began and ended.
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

// playback reads a record part by part. A decoder reads no more than it needs,
// as it did when the bytes arrived, so the part that was read last contains the
// end of the value that was decoded last.
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
	written  span          // when it was written
	answered time.Duration // when its last byte was read; 0 if it was not
}

// exchanges pairs the commands of a closed connection with their answers.
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

// each calls f for each command or answer of a record, with the part that
// contained its end. An incomplete value at the end is left out.
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

// scripts returns the script calls of each connection, in order. All
// connections must be closed.
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
