package transport

import "time"

// This file owns the queue of unanswered commands.
// Invariant: entries leave in the order in which they came. RESP has no ids:
// the order is all that says which command an answer belongs to.

// entry is a command that waits for its answer. Times are since Ordered.epoch.
type entry struct {
	cmd   Command
	batch []entry       // the items of which it is made, instead of cmd
	at    time.Duration // when it was sent
	until time.Duration // Lasting; 0: not
	size  int32         // encoded bytes
	own   bool          // of the transport
	alone bool          // nothing was unanswered before it
}

// ring is a first-in first-out queue that allocates only to grow. It has no
// lock of its own: Ordered.mu guards it, except in settle, which has taken it
// out of its connection.
type ring struct {
	buf  []entry // length zero or a power of two
	head int
	n    int
}

func (r *ring) push(e entry) {
	if r.n == len(r.buf) {
		grown := make([]entry, max(64, 2*r.n))
		k := copy(grown, r.buf[r.head:])
		copy(grown[k:], r.buf[:r.head])
		r.buf, r.head = grown, 0
	}
	r.buf[(r.head+r.n)&(len(r.buf)-1)] = e
	r.n++
}

// pop takes out the oldest entry, and reports whether there was one. After a
// burst it gives the memory back.
func (r *ring) pop() (entry, bool) {
	if r.n == 0 {
		return entry{}, false
	}
	e := r.buf[r.head]
	r.buf[r.head] = entry{} // the collector may have the command
	r.head = (r.head + 1) & (len(r.buf) - 1)
	if r.n--; r.n == 0 && len(r.buf) > 4096 {
		*r = ring{} // a burst is over
	}
	return e, true
}

// oldest is only called when the ring is not empty. It returns a copy: the slot
// is reused.
func (r *ring) oldest() entry { return r.buf[r.head] }
