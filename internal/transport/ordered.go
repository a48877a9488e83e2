package transport

// The state of an Ordered: what it accepts, keeps and refuses.

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Ordered keeps one ordered, multiplexed, full-duplex connection to one Redis
// node, for commands and for what the node says unasked. A node that does not
// speak RESP3 needs another one for that. A pool has no order: here a command
// sent after another one is executed after it.
//
// A late answer breaks nothing: commands have no timeout of their own, and
// answers are matched in order whenever they come. Append takes no more than
// the node can answer in time: see window. Memory is bounded in any case: see
// Config.Stall, MaxPending and MaxBytes.
//
// Commands unanswered when the connection breaks get ErrBroken: the node may
// execute them yet, as what a stopped node has not read lies in its socket
// buffer. The next connection sends Lasting commands, that is leaves, again.
// Those of its first second are repeated a second later, behind what the node
// had not read.
//
// It is safe for concurrent use. mu guards what stands below it, and the part
// of the current conn that is written and answered.
type Ordered struct {
	dialer
	resp3  bool // the client's options allow it
	epoch  time.Time
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // run and listen

	mu       sync.Mutex
	cur      *conn         // nil while down
	dying    bool          // cur has failed, but is not settled yet
	downErr  error         // wraps ErrDown; why cur is nil
	info     *Info         // of the latest connection; what it points to does not change
	kept     []entry       // Lasting commands to be sent when up again
	refused  []refusal     // errors to be delivered
	refusing bool          // a goroutine is delivering them
	idle     *sync.Cond    // refusing has become false
	closed   bool          // Close was called
	wanted   bool          // a command found no room: Room is to be called when there is some
	drained  chan struct{} // Close waits for it; nil while it does not

	// Only run touches these. The node may still read the last connection, and
	// is to get leaves again that it had on one since.
	stale  bool
	again  []byte
	agains int

	pushes pushes
}

type refusal struct {
	cmd Command
	err error
}

// pushes is where the pushes come from. Only run touches it, and the reader of
// the current connection while it is up.
type pushes struct {
	called   bool               // Subscribed or PushDown has been called
	up       bool               // Subscribed was called last
	listener context.CancelFunc // ends the connection for pushes; nil: there is none
	ended    chan struct{}      // closed when it has
	addr     string             // of the server that it was begun for
}

func (l *Ordered) Reconnect(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cur != nil {
		// The node has not refused the connection, so the pause is that of a
		// connection that was used.
		l.cur.served = true
		l.fail(l.cur, cause)
	}
}

func (l *Ordered) Append(cmd Command, u Urgency) Fate {
	l.mu.Lock()
	defer l.mu.Unlock()
	until := time.Duration(0) // since epoch; 0 for what is not sent again
	if k, ok := cmd.(Lasting); ok {
		if t := k.Until(); !t.IsZero() {
			until = max(1, t.Sub(l.epoch)) // a leave whose time is over must not be one that never lasted
		}
	}
	if u != Certain && l.full(until, u == Urgent) {
		l.wanted = true
		return Full
	}
	now := l.now()
	c := l.cur
	if c == nil {
		return l.refuseOrKeep(cmd, until, now)
	}
	c.push(cmd, until, now)
	if c.pending > l.cfg.MaxPending || c.bytes > l.cfg.MaxBytes { // also by Certain commands
		l.fail(c, errOverflow) // its commands, this one too, are settled by its reader
	}
	return Taken
}

// full reports whether there is no room for a command. Ordered.mu is held.
func (l *Ordered) full(until time.Duration, urgent bool) bool {
	switch c := l.cur; {
	case l.closed:
		return false
	case c == nil:
		return until > 0 && len(l.kept) >= mostWindow
	default:
		return c.pending >= c.window.room(urgent) || c.bytes >= l.cfg.MaxBytes/2 || !urgent && c.bytes/unit >= c.window.size
	}
}

// unwant reports whether a command was refused for lack of room, once.
// Ordered.mu is held.
func (l *Ordered) unwant() bool {
	wanted := l.wanted
	l.wanted = false
	return wanted
}

// refuseOrKeep is what becomes of a command that finds no connection. At most
// half of MaxPending is kept, so that what is sent again on the next
// connection does not break it by its number.
func (l *Ordered) refuseOrKeep(cmd Command, until, now time.Duration) Fate {
	switch {
	case l.closed:
		l.refuse(cmd, ErrClosed)
	case until > now && len(l.kept) < l.cfg.MaxPending/2:
		l.kept = append(l.kept, entry{cmd: cmd, until: until})
		return Taken
	default:
		l.refuse(cmd, l.downErr)
	}
	return Refused
}

// refuse has a goroutine deliver err. Append must not call Reply, because its
// caller may hold the lock that Reply takes. The goroutine exists only while
// there is something to deliver, so also after Close.
func (l *Ordered) refuse(cmd Command, err error) {
	l.refused = append(l.refused, refusal{cmd, err})
	if !l.refusing {
		l.refusing = true
		go l.deliverRefusals()
	}
}

// deliverRefusals calls Reply for what was refused, in the order of Append and
// without the lock. A Reply may append, so it looks again until nothing is
// left.
func (l *Ordered) deliverRefusals() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.refused) > 0 {
		list := l.refused
		l.refused = nil
		l.mu.Unlock()
		for _, r := range list {
			r.cmd.Reply(nil, r.err)
		}
		l.mu.Lock()
	}
	l.refusing = false
	l.idle.Broadcast()
}

// now is the time since epoch, on the monotonic clock: a set wall clock moves
// no deadline here.
func (l *Ordered) now() time.Duration { return time.Since(l.epoch) }

func (l *Ordered) State(now time.Time) State {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := State{Info: l.info}
	switch c := l.cur; {
	case l.closed:
		s.Err = ErrClosed
	case c == nil:
		s.Err = l.downErr
	default:
		s.Busy = c.pending > busyThreshold
		if c.unanswered.Len() > 0 { // else the members of a batch have only just been appended
			s.Waiting = max(0, now.Sub(l.epoch)-c.unanswered.First().at)
		}
	}
	return s
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

// Close see [Transport]. Lasting commands that still have no connection are
// waited for, too.
func (l *Ordered) Close(ctx context.Context) error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		l.wg.Wait()
		return nil
	}
	l.closed = true
	drained := make(chan struct{})
	l.drained = drained
	l.checkDrained()
	if l.cur != nil {
		l.cur.wakeWriter() // what no Flush has followed would be waited for forever
	}
	l.mu.Unlock()
	left := 0
	select {
	case <-drained: // what others append from here on ends with the connection
	case <-ctx.Done():
		l.mu.Lock()
		if left = len(l.kept); l.cur != nil {
			left += l.cur.pending
		}
		l.mu.Unlock()
	}
	// The end of ctx ends run, which has watch fail the connection, and listen.
	// wg counts them and follow. Each Reply that settle owes has been called
	// when watch returns.
	l.cancel()
	l.wg.Wait()
	l.probes.Wait() // they leave behind what hangs: see within
	if l.asker != nil {
		l.asker.close()
	}
	if l.cluster != nil {
		_ = l.cluster.Close()
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.kept {
		l.refuse(e.cmd, ErrClosed)
	}
	l.kept = nil
	for l.refusing {
		l.idle.Wait()
	}
	if left > 0 {
		return fmt.Errorf("connection closed with %d commands unanswered: %w", left, context.Cause(ctx))
	}
	return nil
}

// checkDrained wakes Close when nothing is pending any more. Ordered.mu is
// held. It is called wherever one of its conditions may have come true: after
// an answer, a settle, a raise, or leaves that were given up.
func (l *Ordered) checkDrained() {
	if l.drained != nil && !l.dying && len(l.kept) == 0 && (l.cur == nil || l.cur.pending == 0) {
		close(l.drained)
		l.drained = nil
	}
}
