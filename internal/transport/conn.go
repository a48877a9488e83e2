package transport

import (
	"fmt"
	"net"
	"runtime"
	"time"

	"github.com/quorate/quorate/internal/resp"
)

// This file owns one connection: its two goroutines, and the order of bytes and receivers.
//
// Invariant: each command that was appended to a connection gets exactly one Reply, from
// the reader goroutine and in the order of Append, also when the connection breaks.

// conn is one connection of the link. It begins when the handshake is done and
// ends in four steps, each exactly once: fail marks it; run closes the socket;
// the writer ends, the reader ends; the reader settles the unanswered.
type conn struct {
	nc      net.Conn
	rd      *resp.Reader
	batcher Batch
	info    *Info
	greeted bool         // Hello was called
	slotted bool         // it is for a slot of a cluster
	hooks   *hooks       // that see the commands; nil: there are none
	creds   *credentials // nil: they do not change

	items []Command // the reader's: those of a batch

	wake chan struct{} // for the writer: there may be something to write
	dead chan struct{} // closed by fail
	done chan struct{} // closed when everything is settled

	// Guarded by Ordered.mu.
	out        []byte // appended, not yet written
	spare      []byte // the other buffer
	writing    bool   // a goroutine is in nc.Write; only one may be
	unanswered ring
	batch      batch     // sent after those, and not written yet
	spares     [][]entry // of such, for the next
	pending    int       // commands without an answer, the items of a batch counted one by one
	window     window    // how many there may be of those that are offered
	answers    uint64    // how many have come
	bytes      int       // encoded size of the unanswered
	cause      error     // why it is dead
	owed       bool      // answers were missing when it died
	served     bool      // a command has been answered that is not the transport's own

	refusedAt time.Duration // when the node refused the SUBSCRIBE, since Ordered.epoch; 0: it has not

	// While now < resendUntil, Lasting commands are also copied to resend.
	resendUntil time.Duration
	resend      []byte
	resends     int
}

const (
	keepBuffer = 256 << 10 // a write buffer above this size is not kept
	maxResend  = 1 << 20
	maxSpares  = 64 // of 2 kB each
)

func newConn(nc net.Conn, batcher Batch) *conn {
	c := &conn{
		nc:      nc,
		batcher: batcher,
		info:    &Info{Protocol: 2},
		rd:      resp.NewReader(nc),
		wake:    make(chan struct{}, 1),
		dead:    make(chan struct{}),
		done:    make(chan struct{}),

		window: window{size: firstWindow},
	}
	return c
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
	if until > 0 && now < c.resendUntil && len(c.resend)+size <= maxResend {
		c.resend = append(c.resend, c.out[start:]...)
		c.resends++
	}
}

// pushOwn queues a command of the transport. Neither Close nor State.Busy counts it, and no
// hook sees it: it may contain a password.
func (c *conn) pushOwn(cmd Command, now time.Duration) {
	c.closeBatch()
	start := len(c.out)
	c.out = cmd.Append(c.out)
	c.enter(entry{cmd: cmd, at: now, size: int32(len(c.out) - start), alone: c.unanswered.n == 0, own: true})
}

// enter queues the receiver of what has been appended to out.
// Called with Ordered.mu held.
func (c *conn) enter(e entry) {
	if c.hooks != nil && e.size > 0 && !e.own {
		e.shown = c.hooks.show(c.out[len(c.out)-int(e.size):])
	}
	c.bytes += int(e.size)
	c.unanswered.push(e)
}

// writeOnce writes what is pending, releasing Ordered.mu meanwhile, and reports
// whether more has been appended since. Ordered.mu is held, and no goroutine is writing.
// Two buffers take turns: while one is written without the lock, commands are
// appended to the other. With one buffer each Append would wait for the socket.
func (c *conn) writeOnce(l *Ordered) (more bool) {
	c.closeBatch()
	buf := c.out
	c.out, c.writing = c.spare, true
	l.mu.Unlock()
	// A write that fails part-way leaves half a command on the stream: nothing
	// may follow it, and nothing does, since the connection is dead then.
	_, err := c.nc.Write(buf)
	l.mu.Lock()
	c.spare, c.writing = nil, false
	if cap(buf) <= keepBuffer {
		c.spare = buf[:0]
	}
	if err != nil {
		l.fail(c, err)
	}
	return c.unwritten() && c.cause == nil
}

// unwritten reports whether there is something to write. Ordered.mu is held.
func (c *conn) unwritten() bool { return len(c.out) > 0 || len(c.batch.entries) > 0 }

// wakeWriter makes the writer look for work. It never blocks.
func (c *conn) wakeWriter() {
	select {
	case c.wake <- struct{}{}:
	default: // it is awake, or about to wake
	}
}

// yieldBackoff decides whether the writer yields the processor before it writes. The
// goroutines that are ready run then, and what they append goes out in the same write.
// Where all of them work on locks that takes little time and saves more. Beside
// goroutines that want the processors for themselves it may take long, and then the
// writer does not yield for a while.
type yieldBackoff struct {
	not   time.Time     // before that
	pause time.Duration // the next time
}

const (
	shortTurn  = 5 * time.Millisecond // far below a node timeout, and plenty for hundreds of callers
	firstPause = time.Second / 10
	lastPause  = time.Minute
)

func (y *yieldBackoff) yield() {
	began := time.Now()
	if began.Before(y.not) {
		return
	}
	runtime.Gosched()
	y.took(began, time.Since(began))
}

func (y *yieldBackoff) took(began time.Time, d time.Duration) {
	if d <= shortTurn {
		y.pause = 0
		return
	}
	y.pause = min(max(2*y.pause, firstPause), lastPause)
	y.not = began.Add(d + y.pause)
}

// write is the writer goroutine. It and a sender that flushes take turns: writing is true
// while either of them writes, so commands never interleave on the connection.
func (c *conn) write(l *Ordered) {
	var turn yieldBackoff
	for {
		select {
		case <-c.wake:
		case <-c.dead:
			return
		}
		// Without the lock: what runs meanwhile appends.
		turn.yield()
		l.mu.Lock()
		// When a sender is writing, it will wake us again if need be.
		for !c.writing && c.unwritten() && c.cause == nil {
			c.writeOnce(l)
		}
		l.mu.Unlock()
	}
}

// read is the reader goroutine. It calls every Reply, with no lock held. A Reply that
// blocks would block all later answers of the node.
func (c *conn) read(l *Ordered) error {
	var done []entry
	for {
		v, err := c.rd.Read()
		if err != nil {
			if _, answer := err.(resp.Error); !answer {
				return err
			}
			if gone := c.elsewhere(err); gone != nil {
				return gone
			}
		}
		if !c.isAnswer(v) {
			l.pushed(v)
			continue
		}
		l.mu.Lock()
		if c.misplaced(err) {
			l.mu.Unlock()
			return errMisplaced
		}
		e, ok := c.unanswered.pop()
		c.bytes -= int(e.size)
		if !e.own {
			c.served = true
			c.pending -= max(1, len(e.batch))
		}
		if done != nil && len(c.spares) < maxSpares {
			c.spares = append(c.spares, done)
		}
		done = nil
		c.answers++
		room := l.answered(c, e)
		l.checkDrained()
		l.mu.Unlock()
		if room {
			l.cfg.Room()
		}
		if e.shown != nil {
			e.shown.finish(v, err)
		}
		switch {
		case !ok:
			return errUnasked
		case e.batch != nil:
			c.replyBatch(e.batch, v, err)
			clear(e.batch)
			done = e.batch[:0]
		default:
			e.cmd.Reply(v, err)
		}
	}
}

// start runs the connection until it is dead and settled.
// Two goroutines. The reader settles what is unanswered only after the writer has
// ended: otherwise the writer could still send a command that has got ErrBroken.
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
// It closes no socket, because its callers hold Ordered.mu, and a close may block.
func (l *Ordered) fail(c *conn, cause error) {
	if c.cause != nil {
		return
	}
	c.closeBatch()
	c.cause, c.owed = cause, c.unanswered.n > 0
	close(c.dead)
	if l.cur == c {
		l.cur, l.dying = nil, true
		l.downErr = fmt.Errorf("%w: %w", ErrDown, cause)
	}
}

// settle gives every unanswered command of a dead connection its fate: Lasting
// ones are kept, ahead of those that came since, the others get ErrBroken. It
// runs on the reader goroutine, so all answers of one connection come in order.
func (l *Ordered) settle(c *conn) {
	l.mu.Lock()
	// From here on only this goroutine has the ring, so the rest needs the lock for
	// l.kept only.
	pending := c.unanswered // a dead connection takes no more
	c.unanswered, c.pending = ring{}, 0
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
	for e, ok := pending.pop(); ok; e, ok = pending.pop() {
		if e.shown != nil {
			e.shown.finish(nil, err)
		}
		for _, item := range e.batch {
			sort(item)
		}
		if e.batch == nil {
			sort(e)
		}
	}

	l.mu.Lock()
	if len(kept) > 0 {
		l.kept = append(kept, l.kept...)
	}
	l.dying = false
	l.checkDrained()
	l.mu.Unlock()
	for _, cmd := range broken {
		cmd.Reply(nil, err)
	}
}
