package transport

import (
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/fifo"
	"github.com/quorate/quorate/internal/resp"
)

// This file owns one connection: its two goroutines, and the order of bytes and
// receivers.
// Invariant: each command that was appended to a connection gets exactly one
// Reply, from the goroutine that reads and in the order of Append, also when
// the connection breaks.

// conn is one connection of the link. It begins when the handshake is done and
// ends in four steps, each exactly once: fail marks it; run closes the socket;
// the writer ends, the reader ends; the reader settles the unanswered.
//
// What stands above asked is set before start, and is not changed later, except
// for rd, items and spent: these are of the goroutine that reads.
type conn struct {
	nc      net.Conn
	rd      *resp.Reader
	batcher Batch
	info    *Info
	greeted bool // Hello was called
	slotted bool // it is for a slot of a cluster

	items []Command // those of a batch
	spent []entry   // those of the last batch, to be used again

	asked atomic.Bool // a caller would have read itself

	wake chan struct{} // for the writer: there may be something to write
	dead chan struct{} // closed by fail
	done chan struct{} // closed when everything is settled

	// Guarded by Ordered.mu.
	out        []byte // appended, not yet written
	spare      []byte // the other buffer
	writing    bool   // a goroutine is in nc.Write; only one may be
	unanswered fifo.Queue[entry]
	batch      batch     // sent after those, and not written yet
	spares     [][]entry // of such, for the next
	pending    int       // commands without an answer, the items of a batch counted one by one
	window     window    // how many there may be of those that are offered
	answers    uint64    // how many have come
	bytes      int       // encoded size of the unanswered
	cause      error     // why it is dead
	owed       bool      // answers were missing when it died
	reading    reading
	served     bool // a command has been answered that is not the transport's own

	refusedAt time.Duration // when the node refused the SUBSCRIBE, since Ordered.epoch; 0: it has not

	// While now < resendUntil, Lasting commands are also copied to resend.
	resendUntil time.Duration
	resend      []byte
	resends     int
}

// entry is a command that waits for its answer. RESP has no ids: the order of
// the entries is all that says which command an answer belongs to. Times are
// since Ordered.epoch.
type entry struct {
	cmd   Command
	batch []entry       // the items of which it is made, instead of cmd
	at    time.Duration // when it was sent
	until time.Duration // Lasting; 0: not
	size  int32         // encoded bytes
	own   bool          // of the transport
	alone bool          // nothing was unanswered before it
}

const (
	keepBuffer = 256 << 10 // a write buffer above this size is not kept
	// Leaves beyond this many bytes are not repeated.
	maxResend = 1 << 20
	maxSpares = 64 // of 2 kB each
)

// newConn makes the state of a connection that has not sent anything. It speaks
// RESP2 until the node has accepted HELLO 3. wake holds one signal, so one that
// comes while the writer is writing is not lost.
func newConn(nc net.Conn, batcher Batch) *conn {
	return &conn{
		nc:      nc,
		batcher: batcher,
		info:    &Info{Protocol: 2},
		rd:      resp.NewReader(nc),
		wake:    make(chan struct{}, 1),
		reading: reading{look: make(chan struct{}, 1)},
		dead:    make(chan struct{}),
		done:    make(chan struct{}),

		window: window{size: firstWindow},
	}
}

// push queues a command for writing and for its answer, in one step: the order
// of bytes and of receivers is the same.
// Called with Ordered.mu held. It never blocks: it copies bytes into a buffer.
func (c *conn) push(cmd Command, until, now time.Duration) {
	if c.addToBatch(cmd, until, now) {
		return
	}
	c.closeBatch()
	start := len(c.out)
	c.out = cmd.Append(c.out)
	size := len(c.out) - start
	c.enter(entry{cmd: cmd, at: now, until: until, size: int32(size), alone: c.pending == 0})
	c.pending++
	// The old connection may still be alive at the node, which may read a join
	// there after this leave. inspect sends the copy when the old connection
	// must be gone.
	if until > 0 && now < c.resendUntil && len(c.resend)+size <= maxResend {
		c.resend = append(c.resend, c.out[start:]...)
		c.resends++
	}
}

// pushOwn queues a command of the transport. Neither Close nor State.Busy
// counts it.
func (c *conn) pushOwn(cmd Command, now time.Duration) {
	c.closeBatch()
	start := len(c.out)
	c.out = cmd.Append(c.out)
	c.enter(entry{cmd: cmd, at: now, size: int32(len(c.out) - start), alone: c.unanswered.Len() == 0, own: true})
}

// enter queues the receiver of what has been appended to out.
// Called with Ordered.mu held.
// Invariant: out ends with the bytes of e, and no other receiver for them is
// queued.
func (c *conn) enter(e entry) {
	c.bytes += int(e.size)
	c.unanswered.Push(e)
}

// start runs the connection until it is dead and settled. Two goroutines. The
// reader settles what is unanswered only after the writer has ended: otherwise
// the writer could still send a command that has got ErrBroken.
func (c *conn) start(l *Ordered) {
	written := make(chan struct{})
	go func() {
		defer close(written)
		c.write(l)
	}()
	go func() {
		defer close(c.done)
		err := c.read(l)
		l.mu.Lock()
		l.fail(c, err)
		l.mu.Unlock()
		<-written
		l.settle(c)
	}()
}

// fail declares c dead, once. Ordered.mu is held; run closes the socket, which
// ends a read and a write that hang.
func (l *Ordered) fail(c *conn, cause error) {
	if c.cause != nil {
		return
	}
	c.closeBatch()
	// The items of an open batch are in no queue yet. closeBatch has put them
	// into unanswered, where settle finds them.
	c.cause, c.owed = cause, c.unanswered.Len() > 0
	close(c.dead)
	if l.cur == c {
		// Between here and the end of settle there is neither a connection nor
		// a kept leave to be seen. dying says so: Close must not take that for
		// drained.
		l.cur, l.dying = nil, true
		l.downErr = fmt.Errorf("%w: %w", ErrDown, cause)
	}
}

// settle gives every unanswered command of a dead connection its fate: Lasting
// ones are kept, ahead of those that came since, the others get ErrBroken. It
// runs on the reader goroutine, so all answers of one connection come in order.
func (l *Ordered) settle(c *conn) {
	l.mu.Lock()
	// From here on only this goroutine has the queue, so the rest needs the
	// lock for l.kept only.
	pending := c.unanswered // a dead connection takes no more
	c.unanswered, c.pending = fifo.Queue[entry]{}, 0
	// After Close there is no next connection: what would be kept gets its
	// Reply now.
	again := l.ctx.Err() == nil
	l.mu.Unlock()

	now := l.now()
	var broken []Command
	var kept []entry
	sort := func(e entry) {
		if again && e.until > now && len(kept) < l.cfg.MaxPending/2 {
			kept = append(kept, e)
		} else {
			broken = append(broken, e.cmd)
		}
	}
	err := fmt.Errorf("%w: %w", ErrBroken, c.cause)
	for pending.Len() > 0 {
		e := pending.Pop()
		for _, item := range e.batch {
			sort(item)
		}
		if e.batch == nil {
			sort(e)
		}
	}

	l.mu.Lock()
	if len(kept) > 0 {
		// Commands that came while the connection was dying are in l.kept
		// already, and are newer.
		l.kept = append(kept, l.kept...)
	}
	l.dying = false
	l.checkDrained()
	l.mu.Unlock()
	// Without the lock, because a Reply may append.
	for _, cmd := range broken {
		cmd.Reply(nil, err)
	}
}

// answered measures an answer, and reports whether Config.Room is to be called.
// Ordered.mu is held.
func (l *Ordered) answered(c *conn, e entry) (room bool) {
	// A node that only seemed to be far away, as the machine had no time, shows
	// that by any answer.
	bounds := e.alone || c.window.rtt >= farAway
	if !l.wanted && c.pending < leastWindow && !bounds {
		return false
	}
	now := l.now()
	if bounds {
		c.window.bound(now - e.at)
	}
	c.window.took(now-e.at, now, l.cfg.NodeTimeout, max(1, len(e.batch)), l.wanted)
	return l.wanted && max(c.pending, c.bytes/unit) <= c.window.size/2 && c.bytes <= l.cfg.MaxBytes/4 && l.unwant()
}
