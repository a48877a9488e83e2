package transport

// The goroutines of a connection, and who reads it: the reader goroutine, or a
// caller that is alone with the node. Waking another goroutine can take longer
// than everything else that a client does for a lock, and a caller that reads
// its own answer need not be woken.
// Invariant: one goroutine at a time reads a connection. Each answer is passed
// to its receiver before any goroutine reads the next one.

import (
	"bufio"
	"fmt"
	"syscall"
	"time"

	"github.com/quorate/quorate/internal/fifo"
	"github.com/quorate/quorate/internal/resp"
)

const (
	// How often the reader goroutine checks while it rests. Each check wakes
	// it, and costs the caller a few microseconds.
	restTick = 3 * time.Millisecond
	// A caller may read for one tick. If the answer takes longer, the reader
	// goroutine takes over, and callers do not read for a while: for
	// firstCallerPause, and twice as long each time that the next caller's
	// answer is late as well. The first pause is short, because one late answer
	// says little about the next.
	firstCallerPause = 3 * time.Millisecond
	lastCallerPause  = 100 * time.Millisecond
	// The reader goroutine reads again this many ticks after a caller has last
	// read. Until then pushes stay unread.
	restTicks = 3
)

// start starts the reader and the writer goroutine, which run until the
// connection is dead and settled. The reader settles the unanswered commands
// only after the writer has ended: otherwise the writer could still send a
// command that has already got ErrBroken.
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

// read is the reader goroutine. It calls Reply for every answer that no caller
// reads, with no lock held. If a Reply blocked, all later answers of the node
// would be blocked too.
func (c *conn) read(l *Ordered) error {
	for {
		if err := c.take(l); err != nil {
			return err
		}
		if c.asked.Load() && c.leave(l) {
			if err := c.rest(l); err != nil {
				return err
			}
		}
	}
}

// leave hands the reading over to callers, unless an answer is due or a caller
// waits for a push. It reports whether it did. A caller's read must end at its
// deadline, and a connection that a custom Dialer made may not ensure that.
func (c *conn) leave(l *Ordered) bool {
	_, socket := bare(c.nc).(syscall.Conn)
	alone := socket && l.cfg.Alone()
	l.mu.Lock()
	defer l.mu.Unlock()
	c.asked.Store(false)
	c.reading.resting = alone && c.unanswered.Len() == 0
	return c.reading.resting
}

// rest returns when the reader goroutine must read again: callers have stopped
// reading, an answer is due that no caller reads, or a caller waits for a push.
// An error means that the connection is dead, because a caller has left part of
// an answer in it.
func (c *conn) rest(l *Ordered) (dead error) {
	tick := time.NewTicker(restTick)
	defer tick.Stop()
	r, seen, ticks := &c.reading, uint(0), 0
	for resting := true; resting; {
		select {
		case <-tick.C:
		case <-r.look:
		}
		alone := l.cfg.Alone()
		l.mu.Lock()
		if ticks++; r.turns != seen {
			seen, ticks = r.turns, 0
		}
		switch {
		case r.caller && ticks > 0 && !r.cut:
			r.cut = true
			_ = c.nc.SetReadDeadline(l.epoch) // in the past, so the read ends now
		case !r.caller && (!alone || c.unanswered.Len() > 0 || ticks >= restTicks):
			r.resting, resting = false, false
		}
		dead = c.cause
		l.mu.Unlock()
	}
	return dead
}

// Read: see [Transport].
func (l *Ordered) Read(until <-chan struct{}) {
	l.mu.Lock()
	c := l.cur
	if c == nil || !c.reading.resting || c.reading.caller {
		if c != nil && l.now() >= c.reading.not {
			c.asked.Store(true)
		}
		l.mu.Unlock()
		return
	}
	c.reading.caller = true
	c.reading.turns++
	l.mu.Unlock()
	l.turnEnds(c, c.takeUntil(l, until))
}

// takeUntil reads until there is something in the channel, or until the reader
// goroutine must take over. It stops only between answers.
func (c *conn) takeUntil(l *Ordered, until <-chan struct{}) error {
	for len(until) == 0 {
		if err := c.rd.Await(); err == bufio.ErrBufferFull || slow(err) {
			return nil
		} else if err != nil {
			return err
		}
		if err := c.take(l); err != nil {
			return err
		}
	}
	return nil
}

// turnEnds ends a caller's turn to read, and wakes the reader goroutine if it
// must read now. If the caller's read has failed, it ends the connection.
func (l *Ordered) turnEnds(c *conn, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &c.reading
	r.caller = false
	look := r.cut || c.unanswered.Len() > 0
	if r.cut {
		r.cut = false
		r.pause = min(max(2*r.pause, firstCallerPause), lastCallerPause)
		r.not = l.now() + r.pause
		_ = c.nc.SetReadDeadline(time.Time{})
	} else {
		r.pause = 0
	}
	if err != nil {
		l.fail(c, err)
	}
	if look {
		select {
		case r.look <- struct{}{}:
		default:
		}
	}
}

// take reads one answer or push, and gives it to its receiver.
func (c *conn) take(l *Ordered) error {
	v, err := c.rd.Read()
	if err != nil {
		if _, answer := err.(resp.Error); !answer {
			return err
		}
		if gone := c.elsewhere(err); gone != nil {
			return gone
		}
	}
	// In RESP3 the node answers SUBSCRIBE with a push, at the position of its
	// answer.
	if c.rd.IsPush() && !(len(v) == 3 && string(v[0].Str) == "subscribe") {
		l.pushed(v)
		return nil
	}
	l.mu.Lock()
	if why := c.misplaced(err); why != nil {
		l.mu.Unlock()
		return why
	}
	e := c.unanswered.Pop()
	c.bytes -= int(e.size)
	if !e.own {
		c.served = true
		c.pending -= max(1, len(e.batch))
	}
	// Return the list of the last batch here and not after its Reply, because
	// spares is guarded by the lock, which is held here anyway.
	if c.spent != nil && len(c.spares) < maxSpares {
		c.spares = append(c.spares, c.spent)
	}
	c.spent = nil
	// Update the counts before calling Reply, so that a Reply that appends
	// finds the room that its own answer has made.
	c.answers++
	room := l.answered(c, e)
	l.checkDrained()
	l.mu.Unlock()
	if room {
		l.cfg.Room()
	}
	if e.batch == nil {
		e.cmd.Reply(v, err)
		return nil
	}
	c.replyBatch(e.batch, v, err)
	clear(e.batch)
	c.spent = e.batch[:0]
	return nil
}

// answered measures an answer, and reports whether to call Config.Room. Called
// with Ordered.mu held.
func (l *Ordered) answered(c *conn, e entry) (room bool) {
	// If a node only seemed to be far away because this machine was busy, any
	// answer may correct that.
	bounds := e.alone || c.window.rtt >= farAway
	if !l.wanted && c.pending < leastWindow && !bounds {
		return false
	}
	now := l.now()
	if bounds {
		c.window.bound(now - e.at)
	}
	c.window.took(now-e.at, now, l.cfg.NodeTimeout, max(1, len(e.batch)), l.wanted)
	return l.wanted && max(c.pending, c.bytes/unit) <= c.window.size/2 && c.bytes <= l.cfg.MaxBytes/4 &&
		l.unwant()
}

// settle deals with every unanswered command of a dead connection: Lasting
// commands are kept, ahead of newer ones, and the others get ErrBroken. It runs
// on the reader goroutine, so the Replies of one connection stay in order.
func (l *Ordered) settle(c *conn) {
	l.mu.Lock()
	// From here on only this goroutine uses the queue, so the lock is only
	// needed for l.kept.
	pending := c.unanswered // a dead connection takes no more commands
	c.unanswered, c.pending = fifo.Queue[entry]{}, 0
	// After Close there is no next connection, so Lasting commands get their
	// Reply now too.
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
		// Commands that arrived while the connection was dying are already in
		// l.kept, and are newer.
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
