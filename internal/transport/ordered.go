// Package transport keeps one ordered, multiplexed, full-duplex connection to one
// Redis node for commands, and one subscribed connection for what the node says
// unasked. It replaces a connection pool because a pool has no order: here a
// command sent after another one is executed after it, also when the connection
// breaks in between and is opened anew.
//
// # Sending
//
// Send appends the encoded command to a buffer, its receiver to the queue of
// the unanswered, and returns. Whoever finds nobody writing writes what is
// there, in one system call; what others append meanwhile is written next.
// Where many are at work (see crowd) each leaves that to the writer goroutine,
// which comes to run after those who were ready before it. So concurrent
// commands share writes, and none waits for company.
//
// # Waiting
//
// A late answer breaks nothing: commands have no timeout of their own, and
// answers are matched in order whenever they come. A node that was stopped and
// goes on thus executes a claim's leave after its join, as they were sent. The
// caller who cannot wait asks State first, and forgets the answer.
// Offer and Queue take no more than the node can answer in time: see window.
// Memory is bounded in any case: see Config.Stall, MaxPending and MaxBytes.
//
// # Breaking
//
// Commands unanswered when the connection breaks get ErrBroken: the node may or
// may not have executed them. It may even execute them later, because what a
// stopped node has not read yet lies in its socket buffer. Therefore the next
// connection first has the node kill the old one (CLIENT KILL ID), which throws
// away what is unread there. Only then Lasting commands, that is leaves, are
// sent again: otherwise an old join, read after the new leave, would leave an orphan.
// Where the kill cannot be confirmed (no permission, no such command), leaves
// of the first second are repeated a second later.
package transport

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// directLimit is how many bytes may be unanswered for a sender to write them
// itself. A fresh TCP connection takes at least 46 kB (Linux's initial send
// buffer) before a write blocks, even if the peer's host has died; beyond
// the limit the writer goroutine takes that risk.
const directLimit = 32 << 10

// crowd is how many commands one caller has unanswered at the most, in the
// usual case. With more, others are at work as well, and the writer, who runs
// when they have had their turn, sends what all of them have to say in one write.
const crowd = 4

// Ordered is a connection to one node that reconnects by itself.
// All methods may be called concurrently.
type Ordered struct {
	cfg    Config
	opts   *redis.Options
	epoch  time.Time
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // run and listen
	ready  chan struct{}

	mu       sync.Mutex
	cur      *conn         // nil while down
	dying    bool          // cur has failed, but is not settled yet
	downErr  error         // wraps ErrDown; why cur is nil
	info     Info          // of the latest connection
	kept     []entry       // Lasting commands to be sent when up again
	refused  []refusal     // errors to be delivered
	refusing bool          // a goroutine is delivering them
	idle     *sync.Cond    // refusing has become false
	closed   bool          // Close was called
	wanted   bool          // a command found no room: Room is to be called when there is
	drained  chan struct{} // Close waits for it; nil when nobody does

	ghosts []ghost // only touched by run
	unsure bool    // only touched by run: a ghost may still be alive
}

type refusal struct {
	cmd Command
	err error
}

// NewOrdered begins to connect and returns at once. The client is only asked for its
// options: it is neither used for commands nor closed, and its hooks do not
// apply.
func NewOrdered(client redis.UniversalClient, cfg Config) (*Ordered, error) {
	cfg.setDefaults()
	opts, err := options(client, cfg)
	if err != nil {
		return nil, err
	}
	l := &Ordered{
		cfg:     cfg,
		opts:    opts,
		epoch:   time.Now(),
		ready:   make(chan struct{}),
		downErr: fmt.Errorf("%w: %w", ErrDown, errConnecting),
	}
	l.idle = sync.NewCond(&l.mu)
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.wg.Go(l.run)
	if cfg.Channel != "" {
		l.wg.Go(l.listen)
	}
	return l, nil
}

// Reconnect gives the connection up and opens another: the node is not what it
// was when this one began.
func (l *Ordered) Reconnect(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cur != nil {
		l.fail(l.cur, cause)
	}
}

// Send sends commands, together and in order. It never blocks on the node, and
// never calls Reply itself: a caller may hold a lock that its Reply takes.
// When the link is down, a goroutine of the link gives the error to Reply.
func (l *Ordered) Send(cmds ...Command) {
	l.mu.Lock()
	now := l.now()
	for _, cmd := range cmds {
		l.queue(cmd, now)
	}
	l.flushUnlock(true)
}

// Queue is Offer for a caller that has more to say: a command that is taken goes out with
// what is sent next, or with Flush.
func (l *Ordered) Queue(cmd Command, urgent bool) Took {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.offer(cmd, urgent)
}

// Offer gives the link a command if there is room for it (see Config.Room). It may be
// called with a lock held that Reply takes: when it returns Left, the caller must call
// Flush soon, without that lock.
func (l *Ordered) Offer(cmd Command, urgent bool) Took {
	l.mu.Lock()
	took := l.offer(cmd, urgent)
	if took != Taken {
		l.mu.Unlock()
		return took
	}
	if l.flushUnlock(false) {
		return Left
	}
	return Taken
}

// Flush sends what Queue and Offer have left.
func (l *Ordered) Flush() {
	l.mu.Lock()
	l.flushUnlock(true)
}

func (l *Ordered) queue(cmd Command, now time.Duration) {
	until := l.lastsUntil(cmd)
	c := l.cur
	if c == nil {
		l.refuseOrKeep(cmd, until, now)
		return
	}
	l.push(c, cmd, until, now)
}

func (l *Ordered) push(c *conn, cmd Command, until, now time.Duration) {
	c.push(cmd, until, now)
	if c.pending > l.cfg.MaxPending || c.bytes > l.cfg.MaxBytes {
		l.fail(c, errOverflow) // its commands, this one too, are settled by its reader
	}
}

// flushUnlock writes what is there, or has it written, and unlocks l.mu. What the
// caller would write himself is left, and that reported, if he must not now.
func (l *Ordered) flushUnlock(write bool) (left bool) {
	c := l.cur
	if c == nil || c.writing || !c.unwritten() {
		l.mu.Unlock() // who is writing looks again afterwards
		return false
	}
	if c.bytes > directLimit || c.pending > crowd {
		l.mu.Unlock()
		c.wakeWriter()
		return false
	}
	if write && c.writeOnce(l) {
		c.wakeWriter()
	}
	l.mu.Unlock()
	return !write
}

// lastsUntil is 0 for a command that is not Lasting.
func (l *Ordered) lastsUntil(cmd Command) time.Duration {
	k, ok := cmd.(Lasting)
	if !ok {
		return 0
	}
	t := k.Until()
	if t.IsZero() {
		return 0
	}
	return max(1, t.Sub(l.epoch))
}

// refuseOrKeep is what becomes of a command that finds no connection. At most
// half of MaxPending is kept, so that what is sent again on the next
// connection does not break it by its number.
func (l *Ordered) refuseOrKeep(cmd Command, until, now time.Duration) (kept bool) {
	switch {
	case l.closed:
		l.refuse(cmd, ErrClosed)
	case until > now && len(l.kept) < l.cfg.MaxPending/2:
		l.kept = append(l.kept, entry{cmd: cmd, until: until})
		return true
	default:
		l.refuse(cmd, l.downErr)
	}
	return false
}

// refuse has a goroutine deliver err. It exists only while there is something
// to deliver, so also after Close.
func (l *Ordered) refuse(cmd Command, err error) {
	l.refused = append(l.refused, refusal{cmd, err})
	if !l.refusing {
		l.refusing = true
		go l.deliverRefusals()
	}
}

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

func (l *Ordered) now() time.Duration { return time.Since(l.epoch) }

// State says whether an answer can be expected soon: connected, and no command
// has been waiting for longer than patience; and whether more is under way
// than one caller has unanswered, in the usual case.
func (l *Ordered) State(now time.Time, patience time.Duration) (healthy, busy bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.cur
	if c == nil {
		return false, false
	}
	return c.unanswered.n == 0 || // parts have only just been sent
		now.Sub(l.epoch)-c.unanswered.oldest().at < patience, c.pending > crowd
}

// Err is nil while the link is up, else the error commands get.
func (l *Ordered) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return ErrClosed
	case l.cur != nil:
		return nil
	}
	return l.downErr
}

// Info is what the node said when the latest connection opened.
func (l *Ordered) Info() Info {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.info
}

// Ready is closed when the first attempt to connect has succeeded or failed.
func (l *Ordered) Ready() <-chan struct{} { return l.ready }

// Close waits until the node has answered everything, Lasting commands that
// still have no connection included, but not longer than ctx; the rest gets
// ErrClosed. Then it closes the connections. When it returns, no goroutine of
// the link is left and no Reply will be called, save for commands sent after
// Close. The error says how many commands remained unanswered.
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
	l.mu.Unlock()
	select {
	case <-drained:
	case <-ctx.Done():
	}

	l.mu.Lock()
	left := len(l.kept)
	if l.cur != nil {
		left += l.cur.pending
	}
	l.mu.Unlock()
	l.cancel()
	l.wg.Wait()

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

// checkDrained wakes Close when nothing is pending any more.
func (l *Ordered) checkDrained() {
	if l.drained != nil && !l.dying && len(l.kept) == 0 && (l.cur == nil || l.cur.pending == 0) {
		close(l.drained)
		l.drained = nil
	}
}
