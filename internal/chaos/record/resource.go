package record

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
)

// Resource is what the locks protect: a number for each name, which a holder
// reads and writes back increased. It is fenced: it remembers the highest token
// that it has seen and refuses older ones. Two holders at a time, or a holder
// that sleeps through its lease and then writes, show as a lost update.
//
// If it is unfenced, it refuses nothing, like a resource that does not check
// tokens.
type Resource struct {
	listener net.Listener
	fenced   bool
	all      sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
	cells map[string]*cell
	stats ResourceStats
}

// ResourceStats is what the resource has logged.
type ResourceStats struct {
	Reads, Writes, Refused int
	Corrupt                []LostUpdate
	Log                    []Access
}

// LostUpdate is an accepted write that has overwritten another write, which its
// writer had not seen.
type LostUpdate struct {
	Access
	Other string // the operation whose write was overwritten
}

// Access is one request and its result, at the moment when it took effect.
type Access struct {
	Request
	At    int64
	Value int64 // the number before the request
	OK    bool
}

type cell struct {
	value   int64
	highest uint64 // the highest token so far
	written uint64 // token of the last exclusive holder; readers may have older tokens than other readers
	by      string // the operation that wrote last
}

// OpenResource starts the service.
func OpenResource(fenced bool) (*Resource, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Resource{listener: l, fenced: fenced, conns: map[net.Conn]bool{}, cells: map[string]*cell{}}
	r.all.Go(r.accept)
	return r, nil
}

// Addr returns the address on which the resource listens.
func (r *Resource) Addr() string { return r.listener.Addr().String() }

func (r *Resource) accept() {
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

// Request is one line: read or write, the name, the token, whether its holder
// is exclusive, the operation, and for a write the number that its client has
// read.
type Request struct {
	What  string // read or write
	Name  string
	Token uint64
	Alone bool
	Op    string
	Base  int64
}

const (
	DoRead  = "read"
	DoWrite = "write"
)

const requestFormat = "%s %s %d %t %s %d\n"

func (r *Resource) serve(c net.Conn) {
	defer func() {
		r.mu.Lock()
		delete(r.conns, c)
		r.mu.Unlock()
		_ = c.Close()
	}()
	for in := bufio.NewReader(c); ; {
		var q Request
		if _, err := fmt.Fscanf(in, requestFormat, &q.What, &q.Name, &q.Token, &q.Alone, &q.Op,
			&q.Base); err != nil {
			return
		}
		value, ok := r.handle(q)
		if _, err := fmt.Fprintln(c, value, ok); err != nil {
			return
		}
	}
}

// handle returns the number, and whether the request was accepted.
func (r *Resource) handle(q Request) (value int64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.cells[q.Name]
	if c == nil {
		c = &cell{}
		r.cells[q.Name] = c
	}
	a := Access{Request: q, At: Now(), Value: c.value}
	a.OK = r.carryOut(c, a)
	r.stats.Log = append(r.stats.Log, a)
	return a.Value, a.OK
}

func (r *Resource) carryOut(c *cell, a Access) (ok bool) {
	// A reader may follow a reader with a higher token, but not a writer with a
	// higher token.
	bar := c.written
	if a.Alone {
		bar = c.highest
	}
	if r.fenced && a.Token < bar {
		r.stats.Refused++
		return false
	}
	c.highest = max(c.highest, a.Token)
	if a.Alone {
		c.written = max(c.written, a.Token)
	}
	if a.What == DoRead {
		r.stats.Reads++
		return true
	}
	r.stats.Writes++
	if a.Base != c.value {
		r.stats.Corrupt = append(r.stats.Corrupt, LostUpdate{a, c.by})
	}
	c.value, c.by = a.Base+1, a.Op
	return true
}

// Save writes the log to a file, for investigating a violation.
func (s *ResourceStats) Save(path string) error {
	var b strings.Builder
	for _, a := range s.Log {
		fmt.Fprintf(&b, "%s %s of %s by %s, token %d, base %d: value %d, taken %t\n", Seconds(a.At), a.What, a.Name,
			a.Op, a.Token, a.Base, a.Value, a.OK)
	}
	return os.WriteFile(path, []byte(b.String()), 0o600)
}

// Close ends the service and returns the complete log.
func (r *Resource) Close() ResourceStats {
	_ = r.listener.Close()
	r.mu.Lock()
	for c := range r.conns {
		_ = c.Close()
	}
	r.mu.Unlock()
	r.all.Wait()
	return r.stats
}

// User is a client's connection to the resource. One goroutine uses it.
type User struct {
	c  net.Conn
	in *bufio.Reader
}

// DialResource connects to a resource.
func DialResource(addr string) (*User, error) {
	c, err := net.Dial("tcp4", addr)
	if err != nil {
		return nil, err
	}
	return &User{c, bufio.NewReader(c)}, nil
}

// Ask returns the number, and whether the request was accepted.
func (u *User) Ask(q Request) (value int64, ok bool, err error) {
	if _, err := fmt.Fprintf(u.c, requestFormat, q.What, q.Name, q.Token, q.Alone, q.Op, q.Base); err != nil {
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

// Close ends the connection.
func (u *User) Close() { _ = u.c.Close() }
