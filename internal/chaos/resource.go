package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
)

// resource is what the locks protect: a number for each name, which a holder
// reads and writes back increased. It is fenced: it remembers the highest token
// that has come and refuses what is older. So two holders at a time, or a
// holder that sleeps through its lease and goes on writing, show as a lost
// update.
//
// Unfenced it refuses nothing, as a resource without tokens does.
type resource struct {
	listener net.Listener
	fenced   bool
	all      sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
	cells map[string]*cell
	stats resourceStats
}

// resourceStats is what has reached the resource.
type resourceStats struct {
	Reads, Writes, Refused int
	Corrupt                []lostUpdate
	Log                    []access
}

// lostUpdate is a write that was taken and has overwritten another one, which
// its writer had not seen.
type lostUpdate struct {
	access
	other string // the operation whose write it was
}

// access is one request and what came of it, at the moment when it took effect.
type access struct {
	request
	at    int64
	value int64 // before it
	ok    bool
}

type cell struct {
	value   int64
	highest uint64 // the highest token that has come
	written uint64 // token of the last exclusive holder: a reader may be older than another reader
	by      string // the operation that wrote last
}

func openResource(fenced bool) (*resource, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &resource{listener: l, fenced: fenced, conns: map[net.Conn]bool{}, cells: map[string]*cell{}}
	r.all.Go(r.accept)
	return r, nil
}

func (r *resource) addr() string { return r.listener.Addr().String() }

func (r *resource) accept() {
	for {
		c, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		r.conns[c] = true
		r.mu.Unlock()
		r.all.Go(func() { r.serve(c) })
	}
}

// request is a line: what, the name, the token, whether its holder is
// exclusive, the operation, and for a write the number that it has read.
type request struct {
	what  string // read or write
	name  string
	token uint64
	alone bool
	op    string
	base  int64
}

const (
	doRead  = "read"
	doWrite = "write"
)

const requestFormat = "%s %s %d %t %s %d\n"

func (r *resource) serve(c net.Conn) {
	defer func() {
		r.mu.Lock()
		delete(r.conns, c)
		r.mu.Unlock()
		_ = c.Close()
	}()
	for in := bufio.NewReader(c); ; {
		var q request
		if _, err := fmt.Fscanf(in, requestFormat, &q.what, &q.name, &q.token, &q.alone, &q.op, &q.base); err != nil {
			return
		}
		value, ok := r.handle(q)
		if _, err := fmt.Fprintln(c, value, ok); err != nil {
			return
		}
	}
}

// handle answers with the number, and whether the request was taken.
func (r *resource) handle(q request) (value int64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.cells[q.name]
	if c == nil {
		c = &cell{}
		r.cells[q.name] = c
	}
	a := access{request: q, at: now(), value: c.value}
	a.ok = r.carryOut(c, a)
	r.stats.Log = append(r.stats.Log, a)
	return a.value, a.ok
}

func (r *resource) carryOut(c *cell, a access) (ok bool) {
	// A reader may come after a reader with a higher token, but not after a
	// writer.
	bar := c.written
	if a.alone {
		bar = c.highest
	}
	if r.fenced && a.token < bar {
		r.stats.Refused++
		return false
	}
	c.highest = max(c.highest, a.token)
	if a.alone {
		c.written = max(c.written, a.token)
	}
	if a.what == doRead {
		r.stats.Reads++
		return true
	}
	r.stats.Writes++
	if a.base != c.value {
		r.stats.Corrupt = append(r.stats.Corrupt, lostUpdate{a, c.by})
	}
	c.value, c.by = a.base+1, a.op
	return true
}

// save writes the log to a file, to look into a violation with.
func (s *resourceStats) save(path string) error {
	var b strings.Builder
	for _, a := range s.Log {
		fmt.Fprintf(&b, "%s %s of %s by %s, token %d, base %d: value %d, taken %t\n", seconds(a.at), a.what, a.name, a.op, a.token, a.base, a.value, a.ok)
	}
	return os.WriteFile(path, []byte(b.String()), 0o600)
}

// close ends the service; what has come is then complete.
func (r *resource) close() resourceStats {
	_ = r.listener.Close()
	r.mu.Lock()
	for c := range r.conns {
		_ = c.Close()
	}
	r.mu.Unlock()
	r.all.Wait()
	return r.stats
}

// user is a client's connection to the resource. One goroutine uses it.
type user struct {
	c  net.Conn
	in *bufio.Reader
}

func dialResource(addr string) (*user, error) {
	c, err := net.Dial("tcp4", addr)
	if err != nil {
		return nil, err
	}
	return &user{c, bufio.NewReader(c)}, nil
}

func (u *user) ask(q request) (value int64, ok bool, err error) {
	if _, err := fmt.Fprintf(u.c, requestFormat, q.what, q.name, q.token, q.alone, q.op, q.base); err != nil {
		return 0, false, err
	}
	if _, err := fmt.Fscanf(u.in, "%d %t\n", &value, &ok); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return 0, false, err
	}
	return value, ok, nil
}

func (u *user) close() { _ = u.c.Close() }
