package transport

// The state of an Ordered: which commands it takes, keeps and refuses.

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Ordered keeps one ordered, multiplexed, full-duplex connection to one Redis
// node, for commands and for pushes. A node that does not speak RESP3 needs a
// second connection for pushes. Unlike a pool, it preserves order: a command
// sent after another one is executed after it.
//
// A late answer does no harm: commands have no timeout of their own, and
// answers are matched in order whenever they arrive. Append takes no more
// commands than the node can answer in time: see window. Memory is bounded in
// any case: see Config.Stall, MaxPending and MaxBytes.
//
// Commands that are unanswered when the connection breaks get ErrBroken. The
// node may still execute them: a stopped node may find them in its socket
// buffer when it continues. The next connection sends Lasting commands, that
// is, leaves, again.
//
// It is safe for concurrent use. mu guards the fields below it, and the part of
// the current conn that concerns writing and answers.
type Ordered struct {
	cfg    Config
	dialer dialer
	resp3  bool // the client's options allow it
	epoch  time.Time
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // run and listen

	mu       sync.Mutex
	cur      *conn         // nil while down
	dying    bool          // cur has failed, but is not settled yet
	downErr  error         // wraps ErrDown; why cur is nil
	info     *Info         // of the latest connection; the Info itself does not change
	kept     []entry       // Lasting commands to send on the next connection
	refused  []refusal     // errors to deliver
	refusing bool          // a goroutine is delivering them
	idle     *sync.Cond    // refusing has become false
	closed   bool          // Close was called
	wanted   bool          // a command found no room: call Room when there is some
	drained  chan struct{} // Close waits for it; nil while Close is not waiting

	pushes pushes
}

type refusal struct {
	cmd Command
	err error
}

// pushes tracks where pushes come from. called and up belong to the goroutine
// that subscribes: listen's while there is a listener, else the connection's
// reader, and run's between connections. The other fields belong to run.
type pushes struct {
	called   bool               // Subscribed or PushDown has been called
	up       bool               // Subscribed was called last
	listener context.CancelFunc // ends the separate connection for pushes; nil if there is none
	ended    chan struct{}      // closed when that connection has ended
	addr     string             // address of the server that the connection goes to
}

func (l *Ordered) Reconnect(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cur != nil {
		l.cur.replaced = true
		l.fail(l.cur, cause)
	}
}

func (l *Ordered) Append(cmd Command, u Urgency) Fate {
	l.mu.Lock()
	defer l.mu.Unlock()
	until := time.Duration(0) // since epoch; 0 if the command is not sent again
	if k, ok := cmd.(Lasting); ok {
		if t := k.Until(); !t.IsZero() {
			until = max(1, t.Sub(l.epoch)) // never 0 for a Lasting command, even if its time is over
		}
	}
	if u != Certain && l.full(until, u == Urgent) {
		l.wanted = true
		return Full
	}
	now := l.now()
	c := l.cur
	if c == nil {
		return l.refuseOrKeep(cmd, until, now, l.downErr)
	}
	if c.skips(cmd) {
		return l.refuseOrKeep(cmd, until, now, ErrNoVote)
	}
	c.push(cmd, until, now)
	// Certain commands can exceed the limits too.
	if c.pending > l.cfg.MaxPending || c.bytes > l.cfg.MaxBytes {
		l.fail(c, errOverflow) // the reader settles its commands, including this one
	}
	return Taken
}

// full reports whether there is no room for a command. Called with Ordered.mu
// held.
func (l *Ordered) full(until time.Duration, urgent bool) bool {
	switch c := l.cur; {
	case l.closed:
		return false
	case c == nil:
		return until > 0 && len(l.kept) >= mostWindow
	default:
		return c.pending >= c.window.room(urgent) || c.bytes >= l.cfg.MaxBytes/2 || !urgent &&
			c.bytes/unit >= c.window.size
	}
}

// unwant reports whether a command was refused for lack of room since the last
// call. Called with Ordered.mu held.
func (l *Ordered) unwant() bool {
	wanted := l.wanted
	l.wanted = false
	return wanted
}

// refuseOrKeep handles a command that no connection takes now. It keeps at most
// half of MaxPending, so that the commands that are sent again do not overload
// the next connection.
func (l *Ordered) refuseOrKeep(cmd Command, until, now time.Duration, cause error) Fate {
	switch {
	case l.closed:
		l.refuse(cmd, ErrClosed)
	case until > now && len(l.kept) < l.cfg.MaxPending/2:
		l.kept = append(l.kept, entry{cmd: cmd, until: until})
		return Taken
	default:
		l.refuse(cmd, cause)
	}
	return Refused
}

// refuse makes a goroutine deliver err, because the caller of Append may hold
// the lock that Reply takes. The goroutine exists only while there is something
// to deliver, even after Close.
func (l *Ordered) refuse(cmd Command, err error) {
	l.refused = append(l.refused, refusal{cmd, err})
	if !l.refusing {
		l.refusing = true
		go l.deliverRefusals()
	}
}

// deliverRefusals calls Reply for the refused commands, in the order of Append
// and without the lock. A Reply may append, so it repeats until nothing is
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

// now returns the time since epoch on the monotonic clock, so setting the wall
// clock moves no deadline.
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
		s.Busy, s.NoVote = c.pending > busyThreshold, c.noVote
		if c.unanswered.Len() > 0 { // otherwise the items of a batch have only just been appended
			s.Waiting = max(0, now.Sub(l.epoch)-c.unanswered.First().at)
		}
	}
	return s
}

// fail declares c dead, once. run then closes the socket, which ends reads and
// writes that hang. Called with Ordered.mu held.
func (l *Ordered) fail(c *conn, cause error) {
	if c.cause != nil {
		return
	}
	c.closeBatch()
	// The items of an open batch were in no queue. closeBatch has put them into
	// unanswered, where settle finds them.
	c.cause = cause
	close(c.dead)
	if l.cur == c {
		// Until settle has finished, there is neither a connection nor a kept
		// leave to see. dying keeps Close from mistaking that for drained.
		l.cur, l.dying = nil, true
		l.downErr = fmt.Errorf("%w: %w", ErrDown, cause)
	}
}

// Close: see [Transport]. It also waits for Lasting commands that have no
// connection yet.
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
		l.cur.wakeWriter() // otherwise Close would wait forever for commands without a Flush
	}
	l.mu.Unlock()
	left := 0
	select {
	case <-drained: // commands that others append from here on end with the connection
	case <-ctx.Done():
		l.mu.Lock()
		if left = len(l.kept); l.cur != nil {
			left += l.cur.pending
		}
		l.mu.Unlock()
	}
	// Cancelling ctx ends listen, and ends run, whose watch fails the
	// connection. wg counts these goroutines and follow. When watch returns,
	// settle has called every Reply.
	l.cancel()
	l.wg.Wait()
	l.dialer.close()

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

// checkDrained wakes Close when nothing is pending any more. It is called
// wherever one of its conditions may become true: after an answer, a settle or
// a raise, and when leaves are given up. Called with Ordered.mu held.
func (l *Ordered) checkDrained() {
	if l.drained != nil && !l.dying && len(l.kept) == 0 && (l.cur == nil || l.cur.pending == 0) {
		close(l.drained)
		l.drained = nil
	}
}
