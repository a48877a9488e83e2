package transport

// The goroutines of a connection, and who reads it: its reader goroutine, or a
// caller that is alone with the node. Waking another goroutine may take longer
// than everything else that a client does for a lock, and a caller that reads
// its own answer need not be woken.
// Invariant: one goroutine at a time reads a connection. It passes each answer
// to its receiver before the next answer is read, by it or by another
// goroutine.

import (
	"bufio"
	"fmt"
	"syscall"
	"time"

	"github.com/quorate/quorate/internal/fifo"
	"github.com/quorate/quorate/internal/resp"
)

const (
	// How often the reader goroutine looks while it rests. Each look wakes it,
	// and costs the caller a few microseconds.
	restTick = 3 * time.Millisecond
	// A caller reads until the reader goroutine has seen it do so for a tick.
	// An answer that takes longer is left to that, and so are the next ones for
	// a while: for firstCallerPause, and twice as long each time that the next
	// caller's answer takes long as well. One late answer says little about the
	// next.
	firstCallerPause = 3 * time.Millisecond
	lastCallerPause  = 100 * time.Millisecond
	// So many ticks after the last caller has read the reader goroutine does
	// again. Until then what the node says unasked lies unread.
	restTicks = 3
)

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
		err := errAbandoned // a Reply may end this goroutine
		defer func() {
			l.mu.Lock()
			l.fail(c, err)
			l.mu.Unlock()
			<-written
			l.settle(c)
		}()
		err = c.read(l)
	}()
}

// read is the reader goroutine. It calls every Reply that no caller calls, with
// no lock held. A Reply that blocks would block all later answers of the node.
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

// leave leaves the connection to callers, unless an answer is to come or a push
// is waited for. It reports whether it did. The read of a caller must end with
// its deadline, which that of a Dialer's own connection may not do.
func (c *conn) leave(l *Ordered) bool {
	_, socket := bare(c.nc).(syscall.Conn)
	alone := socket && l.cfg.Alone()
	l.mu.Lock()
	defer l.mu.Unlock()
	c.asked.Store(false)
	c.reading.resting = alone && c.unanswered.Len() == 0
	return c.reading.resting
}

// rest returns when the reader goroutine is to read: callers have ceased to, or
// there is an answer to come that none of them reads, or a push is waited for.
// The error says that the connection is dead: what a caller has left in it is
// no answer.
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
			_ = c.nc.SetReadDeadline(l.epoch) // which is over
		case !r.caller && (!alone || c.unanswered.Len() > 0 || ticks >= restTicks):
			r.resting, resting = false, false
		}
		dead = c.cause
		l.mu.Unlock()
	}
	return dead
}

// Read see [Transport].
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
	err := errAbandoned // a Reply may end this goroutine
	defer func() { l.turnEnds(c, err) }()
	err = c.takeUntil(l, until)
}

// takeUntil reads until something lies in the channel, or what is to come must
// be left to the reader goroutine. Half an answer could not be left.
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

// turnEnds has the reader goroutine look where it has to read. A caller whose
// read fails ends the connection.
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
	// In RESP3 the node answers SUBSCRIBE by a push, in the place where its
	// answer belongs.
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
	// The list of the last batch goes back here and not after its Reply:
	// spares is guarded by the lock, which is held now in any case.
	if c.spent != nil && len(c.spares) < maxSpares {
		c.spares = append(c.spares, c.spent)
	}
	c.spent = nil
	// The counts change before Reply is called. So a Reply that appends
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
