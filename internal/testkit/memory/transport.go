package memory

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/transport"
)

// The connection to an in-memory node. One goroutine acts as the connection: it
// connects, executes commands in order, disconnects, and connects again.
// Another one delivers pushes.

// Transport is a transport.Transport to a Node. It is safe for concurrent use.
// mu guards what stands below it.
type Transport struct {
	node  *Node
	cfg   transport.Config
	info  *transport.Info
	wg    sync.WaitGroup // the two goroutines, and those that tell of a refusal
	wake  sync.Cond      // of mu: something below has changed
	hello sync.Cond      // of mu: pushes has grown, or the transport is closed

	mu      sync.Mutex
	up      bool
	err     error // why it is not up
	broken  error // why the connection is to end
	frozen  bool  // the node carries nothing out
	barred  bool  // no connection can be made
	delay   time.Duration
	changes int    // how often one of the three has changed, or the node was started
	queue   []item // unanswered, or kept for the next connection
	flushed int    // how many of them the node has got
	wanted  bool   // a command found no room
	room    int    // how many commands may be unanswered
	pushes  []string
	closing bool // Close was called: nothing is taken any more
	closed  bool // its context has ended, or there is nothing left to wait for
}

// item is a command on its way.
type item struct {
	cmd   transport.Command
	words []string
	at    time.Time
	until time.Time // until when it is sent again; zero: it is not
}

// Room is how many non-urgent commands a connection accepts.
const Room = 1024

var (
	errConnecting = errors.New("still connecting")
	errCut        = errors.New("the test cut the connection")
	errStopped    = errors.New("the test stopped the node")
	errBarred     = errors.New("the test cut this client off from the node")
)

// NewTransport starts connecting to the node, and returns immediately.
func NewTransport(n *Node, cfg transport.Config) *Transport { return newTransport(n, cfg, false) }

func newTransport(n *Node, cfg transport.Config, barred bool) *Transport {
	t := &Transport{node: n, cfg: cfg, barred: barred, info: &transport.Info{}, room: Room,
		err: fmt.Errorf("%w: %w", transport.ErrDown, errConnecting)}
	t.wake.L, t.hello.L = &t.mu, &t.mu
	n.join(t)
	t.wg.Go(t.run)
	if cfg.Channel != "" {
		t.wg.Go(t.listen)
	}
	return t
}

// Append see transport.Transport.
func (t *Transport) Append(cmd transport.Command, u transport.Urgency) transport.Fate {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := item{cmd: cmd, at: time.Now()}
	if l, lasting := cmd.(transport.Lasting); lasting {
		i.until = l.Until()
	}
	limit := t.room
	if u == transport.Urgent {
		limit += limit / 4
	}
	switch {
	case t.closing:
		go cmd.Reply(nil, transport.ErrClosed)
		return transport.Refused
	case u != transport.Certain && len(t.queue) >= limit:
		t.wanted = true
		return transport.Full
	case !t.up && !i.until.After(time.Now()):
		err := t.err
		t.wg.Go(func() { cmd.Reply(nil, err) }) // Append does not call Reply
		return transport.Refused
	case t.up:
		i.words = words(cmd.Append(nil))
	}
	t.queue = append(t.queue, i)
	return transport.Taken
}

// Flush see transport.Transport.
func (t *Transport) Flush() {
	t.mu.Lock()
	t.flushed = len(t.queue)
	t.mu.Unlock()
	t.wake.Broadcast()
}

// Read see transport.Transport. Answers come by themselves.
func (*Transport) Read(<-chan struct{}) {}

// State see transport.Transport.
func (t *Transport) State(now time.Time) transport.State {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := transport.State{Info: t.info, Err: t.err}
	switch {
	case t.closing:
		s.Err = transport.ErrClosed
	case t.up:
		s.Err = nil
		if len(t.queue) > 0 {
			s.Waiting = max(0, now.Sub(t.queue[0].at))
		}
	}
	return s
}

// bar keeps the transport from connecting, or lets it connect again.
func (t *Transport) bar(barred bool) {
	t.change(func() {
		if t.barred = barred; barred && t.up {
			t.broken, t.pushes = errBarred, nil
		}
	})
}

// change changes what mu guards, and ends a pause.
func (t *Transport) change(f func()) {
	t.mu.Lock()
	f()
	t.changes++
	t.mu.Unlock()
	t.wake.Broadcast()
}

// Reconnect see transport.Transport.
func (t *Transport) Reconnect(cause error) {
	t.mu.Lock()
	if t.up {
		t.broken = cause
	}
	t.mu.Unlock()
	t.wake.Broadcast()
}

// Close see transport.Transport.
func (t *Transport) Close(ctx context.Context) error {
	t.mu.Lock()
	if t.closing {
		t.mu.Unlock()
		t.wg.Wait()
		return nil
	}
	t.closing, t.flushed = true, len(t.queue)
	t.mu.Unlock()
	t.wake.Broadcast()
	left := 0 // guarded by mu
	stop := context.AfterFunc(ctx, func() {
		t.mu.Lock()
		t.closed, left = true, len(t.queue)
		t.mu.Unlock()
		t.wake.Broadcast()
	})
	defer stop()

	t.mu.Lock()
	for len(t.queue) > 0 && !t.closed {
		t.wake.Wait()
	}
	t.closed = true
	unanswered := left
	t.mu.Unlock()
	t.wake.Broadcast()
	t.hello.Broadcast()
	t.node.part(t)
	t.wg.Wait()
	if unanswered > 0 {
		return fmt.Errorf("connection closed with %d commands unanswered: %w", unanswered, context.Cause(ctx))
	}
	return nil
}
