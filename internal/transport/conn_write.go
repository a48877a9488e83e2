package transport

// Writing to a connection, either by the goroutine that calls Flush or by the
// writer goroutine.
// Invariant: only one goroutine writes at a time, and each writes everything
// that was appended before, in order.

import (
	"runtime"
	"time"
)

// directLimit is how many bytes may be unanswered for a sender to write on its
// own. A fresh TCP connection takes at least 46 kB (Linux's initial send
// buffer) before a write blocks, even if the peer's host has died. Beyond the
// limit the writer goroutine takes that risk.
const directLimit = 32 << 10

// writeOnce writes what is pending, without Ordered.mu during the write, and
// reports whether more was appended in the meantime. Called with Ordered.mu
// held, while no goroutine is writing. Two buffers alternate.
func (c *conn) writeOnce(l *Ordered) (more bool) {
	c.closeBatch()
	buf := c.out
	c.out, c.writing = c.spare, true
	l.mu.Unlock()
	// A write that fails part-way leaves half a command on the stream. Nothing
	// may follow it, and nothing does, because the connection is dead then.
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
// writes. A yield lets runnable goroutines append first, so that their commands
// go out in the same write. If other goroutines keep the processors busy, a
// yield can take long, and the writer then stops yielding for a while. Only the
// writer goroutine uses it.
type yieldBackoff struct {
	not   time.Time     // do not yield before this time
	pause time.Duration // how long to stop yielding the next time
}

const (
	shortTurn  = 5 * time.Millisecond // far below a node timeout, and plenty for hundreds of callers
	firstPause = time.Second / 10
	lastPause  = time.Minute
)

// yield lets runnable goroutines run first, unless that took long lately.
func (y *yieldBackoff) yield() {
	began := time.Now()
	if began.Before(y.not) {
		return
	}
	runtime.Gosched()
	y.took(began, time.Since(began))
}

// took decides, from how long a yield took, when the writer may yield again.
// The pause doubles from firstPause up to lastPause. One short yield resets it.
func (y *yieldBackoff) took(began time.Time, d time.Duration) {
	if d <= shortTurn {
		y.pause = 0
		return
	}
	y.pause = min(max(2*y.pause, firstPause), lastPause)
	y.not = began.Add(d + y.pause)
}

// farAway is the round trip above which the writer waits before each write, for
// a twentieth of the round trip. Even a single caller, which does not wait for
// the answers of such a node, has many commands in flight to it, and would
// otherwise pay for a separate write for each.
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
		// Yield without the lock, so that others can append in the meantime.
		turn.yield()
		l.mu.Lock()
		if far := c.window.rtt; far >= farAway {
			l.mu.Unlock()
			time.Sleep(far / 20)
			l.mu.Lock()
		}
		// If a sender is writing, it will wake us again if necessary.
		for !c.writing && c.unwritten() && c.cause == nil {
			c.writeOnce(l)
		}
		l.mu.Unlock()
	}
}

// Flush implements [Transport]. The caller writes, unless another goroutine is
// writing or the writer goroutine should.
func (l *Ordered) Flush() {
	l.mu.Lock()
	c := l.cur
	if c == nil || c.writing || !c.unwritten() {
		l.mu.Unlock() // the goroutine that is writing checks again afterwards
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
