package libraries

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/bench/servers"
	"github.com/quorate/quorate/internal/resp"
)

// The floor is the least that any quorum lock must do: SET NX PX at all nodes,
// wait for a majority, compare and delete at all nodes, wait for a majority.
// All clients share one connection per node, and commands that are ready go out
// in one write. It has no timeout, no retry, no queue, no renewal and no
// repair: it only locks free names, on nodes that work.
type floor struct {
	wires []*wire
	ttl   string // in milliseconds
}

const deleteScript = `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) else return 0 end`

// OpenFloor opens a floor with leases of ttl.
func OpenFloor(ttl time.Duration) func(context.Context, servers.Nodes) (Client, error) {
	return func(ctx context.Context, n servers.Nodes) (Client, error) { return newFloor(ctx, n, ttl) }
}

func newFloor(ctx context.Context, n servers.Nodes, ttl time.Duration) (*floor, error) {
	f := &floor{ttl: strconv.FormatInt(ttl.Milliseconds(), 10)}
	for i, addr := range n.Ways {
		sha, err := n.Node(i).Client().ScriptLoad(ctx, deleteScript).Result()
		if err != nil {
			f.Close()
			return nil, err
		}
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			f.Close()
			return nil, err
		}
		w := &wire{nc: nc, sha: sha, wake: make(chan struct{}, 1), over: make(chan struct{})}
		go w.read()
		go w.write()
		f.wires = append(f.wires, w)
	}
	return f, nil
}

func (f *floor) Close() {
	for _, w := range f.wires {
		_ = w.nc.Close()
		<-w.over
		close(w.wake)
	}
}

func (f *floor) Mutex(name string) Locker { return &floorMutex{f: f, name: name, id: rand.Text()} }

type floorMutex struct {
	f        *floor
	name, id string
	out      []byte
}

func (m *floorMutex) Lock(context.Context) error {
	m.out = resp.AppendCommand(m.out[:0], "SET", m.name, m.id, "NX", "PX", m.f.ttl)
	return m.f.ask(m.out)
}

func (m *floorMutex) Unlock(context.Context) error {
	m.out = resp.AppendCommand(m.out[:0], "EVALSHA", m.f.wires[0].sha, "1", m.name, m.id)
	return m.f.ask(m.out)
}

// ask sends a command to all nodes and waits until a majority says yes.
func (f *floor) ask(command []byte) error {
	n := int32(len(f.wires))
	b := &ballot{need: n/2 + 1, all: n, done: make(chan struct{})}
	for _, w := range f.wires {
		w.send(command, b)
	}
	<-b.done
	return b.err
}

// ballot counts the answers to one command.
type ballot struct {
	need, all int32
	yes, no   atomic.Int32
	done      chan struct{}
	err       error
}

func (b *ballot) count(answer string) {
	if answer == "+OK" || answer == ":1" {
		if b.yes.Add(1) == b.need {
			close(b.done)
		}
	} else if b.no.Add(1) == b.all-b.need+1 {
		b.err = fmt.Errorf("the floor got %q", answer)
		close(b.done)
	}
}

// wire is one connection that all clients share.
type wire struct {
	nc   net.Conn
	sha  string
	wake chan struct{}
	over chan struct{}

	mu         sync.Mutex
	out, spare []byte
	writing    bool
	unanswered []*ballot
}

// send writes at once if nothing is in flight, which is fastest for one caller.
// Otherwise it leaves the write to the writer goroutine, which runs after other
// callers have added their commands. That is fastest for many callers.
func (w *wire) send(command []byte, b *ballot) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out = append(w.out, command...)
	w.unanswered = append(w.unanswered, b)
	switch {
	case w.writing:
	case len(w.unanswered) == 1:
		w.flush()
	default:
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// flush writes until nothing is left to write. Called with w.mu held, which it
// releases during a write.
func (w *wire) flush() {
	for !w.writing && len(w.out) > 0 {
		buf := w.out
		w.out, w.writing = w.spare[:0], true
		w.mu.Unlock()
		_, _ = w.nc.Write(buf) // the reader notices a failure
		w.mu.Lock()
		w.spare, w.writing = buf, false
	}
}

func (w *wire) write() {
	for range w.wake {
		w.mu.Lock()
		w.flush()
		w.mu.Unlock()
	}
}

// read matches answers, each of one line, to ballots.
func (w *wire) read() {
	defer close(w.over)
	in := bufio.NewReaderSize(w.nc, 16<<10)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return
		}
		w.mu.Lock()
		b := w.unanswered[0]
		w.unanswered = w.unanswered[1:]
		w.mu.Unlock()
		b.count(strings.TrimSpace(string(line)))
	}
}
