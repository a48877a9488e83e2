package transport

// This file owns how a connection writes: by the goroutine that flushes, or by
// the writer, one at a time.
// Invariant: no two goroutines write at once, and each writes all that was
// appended before it in that order.

import (
	"runtime"
	"time"
)

// directLimit is how many bytes may be unanswered for a sender to write them
// itself. A fresh TCP connection takes at least 46 kB (Linux's initial send
// buffer) before a write blocks, even if the peer's host has died; beyond
// the limit the writer goroutine takes that risk.
const directLimit = 32 << 10

// writeOnce writes what is pending, releasing Ordered.mu meanwhile, and reports
// whether more has been appended since. Ordered.mu is held, and no goroutine is
// writing. Two buffers take turns.
func (c *conn) writeOnce(l *Ordered) (more bool) {
	c.closeBatch()
	buf := c.out
	c.out, c.writing = c.spare, true
	l.mu.Unlock()
	// A write that fails part-way leaves half a command on the stream: nothing
	// may follow it, and nothing does, since the connection is dead then.
	_, err := c.nc.Write(buf)
	l.mu.Lock()
	// spare is nil if the last buffer was too large: the next Append then
	// allocates.
	c.spare, c.writing = nil, false
	if cap(buf) <= keepBuffer {
		c.spare = buf[:0]
	}
	if err != nil {
		l.fail(c, err)
	}
	return c.unwritten() && c.cause == nil
}

// yieldBackoff decides whether the writer yields the processor before it
// writes, so that what the goroutines that are ready append goes out in the
// same write. Beside goroutines that want the processors for themselves that
// may take long, and then the writer does not yield for a while. The writer
// goroutine alone uses it.
type yieldBackoff struct {
	not   time.Time     // before that
	pause time.Duration // the next time
}

const (
	shortTurn  = 5 * time.Millisecond // far below a node timeout, and plenty for hundreds of callers
	firstPause = time.Second / 10
	lastPause  = time.Minute
)

// yield lets the goroutines that are ready run first, unless that took long
// lately.
func (y *yieldBackoff) yield() {
	began := time.Now()
	if began.Before(y.not) {
		return
	}
	runtime.Gosched()
	y.took(began, time.Since(began))
}

// took decides, by how long a yield took, when the writer may yield again. The
// pause doubles from firstPause to lastPause, and one short yield ends it.
func (y *yieldBackoff) took(began time.Time, d time.Duration) {
	if d <= shortTurn {
		y.pause = 0
		return
	}
	y.pause = min(max(2*y.pause, firstPause), lastPause)
	y.not = began.Add(d + y.pause)
}

// farAway is the round trip from which on the writer waits for a twentieth of
// it before it writes. A caller alone that needs no answer of such a node has
// many commands unanswered there, and would pay for a write of each.
const farAway = 10 * time.Millisecond

// write is the writer goroutine. It and a sender that flushes take turns:
// writing is true while either of them writes.
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
		if far := c.window.rtt; far >= farAway {
			l.mu.Unlock()
			time.Sleep(far / 20)
			l.mu.Lock()
		}
		// When a sender is writing, it will wake us again if need be.
		for !c.writing && c.unwritten() && c.cause == nil {
			c.writeOnce(l)
		}
		l.mu.Unlock()
	}
}

// Flush see [Transport]. The caller writes, unless another goroutine does, or
// the writer goroutine shall.
func (l *Ordered) Flush() {
	l.mu.Lock()
	c := l.cur
	if c == nil || c.writing || !c.unwritten() {
		l.mu.Unlock() // the goroutine that is writing looks again afterwards
		return
	}
	if c.bytes > directLimit || c.pending > busyThreshold {
		l.mu.Unlock()
		c.wakeWriter()
		return
	}
	if c.writeOnce(l) {
		c.wakeWriter()
	}
	l.mu.Unlock()
}
