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
// that has come and refuses what is older. So two holders at a time, or a
// holder that sleeps through its lease and goes on writing, show as a lost
// update.
//
// Unfenced it refuses nothing, as a resource without tokens does.
type Resource struct {
	listener net.Listener
	fenced   bool
	all      sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
	cells map[string]*cell
	stats ResourceStats
}

// ResourceStats is what has reached the resource.
type ResourceStats struct {
	Reads, Writes, Refused int
	Corrupt                []LostUpdate
	Log                    []Access
}

// LostUpdate is a write that was taken and has overwritten another one, which
// its writer had not seen.
type LostUpdate struct {
	Access
	Other string // the operation whose write it was
}

// Access is one request and what came of it, at the moment when it took effect.
type Access struct {
	Request
	At    int64
	Value int64 // before it
	OK    bool
}

type cell struct {
	value   int64
	highest uint64 // the highest token that has come
	written uint64 // token of the last exclusive holder: a reader may be older than another reader
	by      string // the operation that wrote last
}

// OpenResource begins the service.
func OpenResource(fenced bool) (*Resource, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Resource{listener: l, fenced: fenced, conns: map[net.Conn]bool{}, cells: map[string]*cell{}}
	r.all.Go(r.accept)
	return r, nil
}

// Addr is where it listens.
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

// Request is a line: what, the name, the token, whether its holder is
// exclusive, the operation, and for a write the number that it has read.
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
		if _, err := fmt.Fscanf(in, requestFormat, &q.What, &q.Name, &q.Token, &q.Alone, &q.Op, &q.Base); err != nil {
			return
		}
		value, ok := r.handle(q)
		if _, err := fmt.Fprintln(c, value, ok); err != nil {
			return
		}
	}
}

// handle answers with the number, and whether the request was taken.
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
	// A reader may come after a reader with a higher token, but not after a
	// writer.
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

// Save writes the log to a file, to look into a violation with.
func (s *ResourceStats) Save(path string) error {
	var b strings.Builder
	for _, a := range s.Log {
		fmt.Fprintf(&b, "%s %s of %s by %s, token %d, base %d: value %d, taken %t\n", Seconds(a.At), a.What, a.Name, a.Op, a.Token, a.Base, a.Value, a.OK)
	}
	return os.WriteFile(path, []byte(b.String()), 0o600)
}

// Close ends the service; what has come is then complete.
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

// Ask returns the number, and whether the request was taken.
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
