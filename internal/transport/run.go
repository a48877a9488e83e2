package transport

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// This file owns when a connection is opened, given up and opened again.
// Invariant: at most one connection carries commands. The next one is opened
// when all commands of the last one are settled.

const (
	// minBackoff is long enough that a node that refuses connections costs
	// little, and short enough that a restarted node is back before a caller
	// notices.
	minBackoff = 20 * time.Millisecond
	// maxBackoff bounds how long a node that is back stays unused. Many clients
	// try at random times below it, so they do not all come at one moment.
	maxBackoff = time.Second
	// resendDelay is how long after connecting leaves are repeated when the old
	// connection may still be alive at the node.
	resendDelay = time.Second
)

// run connects, watches over the connection, and connects again. It is a
// goroutine of its own, from NewOrdered to Close. Up and Down are called here
// only, so never two at a time.
func (l *Ordered) run() {
	var pause backoff
	called := false // Up or Down has been called
	for l.ctx.Err() == nil {
		c, err := l.connect(l.ctx, pause.stepTimeout(l.cfg.Stall))
		up := err == nil
		began := l.now()
		if up {
			// raise comes before Up: what Up appends must find the connection,
			// behind the leaves that were kept.
			l.listenBeside(c)
			room := l.raise(c)
			l.cfg.Up()
			if room {
				l.cfg.Room()
			}
		} else {
			if l.giveUpKept(err) {
				l.cfg.Room()
			}
			// Only the first failure is news: after it the owner knows that the
			// node is down.
			if !called {
				l.cfg.Down(err)
			}
		}
		called = true
		if up {
			l.watch(c)
			l.cfg.Down(c.cause)
			if c.info.Protocol == 3 {
				l.pushes.end(l, c.cause)
			}
			pause.lasted(l.now()-began, c.served)
		} else {
			pause.failed(err)
		}
		l.lookAgain(l.ctx)
		pause.sleep(l.ctx)
	}
}

// raise makes c the current connection. What was kept goes first: no command is
// appended to c before that. raise reports whether a command found no room on
// the last connection, which can no longer answer and so make room.
func (l *Ordered) raise(c *conn) (room bool) {
	l.mu.Lock()
	now := l.now()
	if l.killUnconfirmed {
		c.resendUntil = now + resendDelay
		l.killUnconfirmed = false
	}
	l.subscribeTo(c, now)
	for _, e := range l.kept {
		if e.until > now {
			c.push(e.cmd, e.until, now)
		} else {
			l.refuse(e.cmd, fmt.Errorf("%w: %w", ErrDown, errExpired))
		}
	}
	l.kept = nil
	l.cur, l.info = c, c.info
	l.checkDrained()
	room = l.unwant()
	l.mu.Unlock()
	c.start(l)
	c.wakeWriter()
	if l.cluster != nil || l.sentinels() { // it can have another master while the connection lasts
		l.wg.Go(func() { l.follow(c) })
	}
	return room
}

// giveUpKept takes why connecting has failed. It refuses the leaves that have
// outlasted the lease that they end, and reports whether Room is to be called.
// Without it leaves for a node that is down for hours would fill kept, and then
// be refused at once.
func (l *Ordered) giveUpKept(cause error) (room bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.downErr = fmt.Errorf("%w: %w", ErrDown, cause)
	now := l.now()
	live := l.kept[:0]
	for _, e := range l.kept {
		if e.until > now {
			live = append(live, e)
		} else {
			l.refuse(e.cmd, l.downErr)
		}
	}
	clear(l.kept[len(live):])
	l.kept = live
	l.checkDrained()
	return l.unwant()
}

// watch returns when c is dead and settled, its socket closed.
// It runs on run's goroutine for as long as the connection lives.
func (l *Ordered) watch(c *conn) {
	tick := time.NewTicker(min(max(l.cfg.Stall/8, time.Millisecond), resendDelay/4))
	defer tick.Stop()
	seen := progress{at: l.now()}
	for alive := true; alive; {
		select {
		case <-c.dead:
			alive = false
		case <-l.ctx.Done():
			l.mu.Lock()
			l.fail(c, ErrClosed)
			l.mu.Unlock()
		case <-tick.C:
			l.inspect(c, &seen)
		}
	}
	// A read or a write that hangs ends with its socket. The reader closes done
	// when it has settled everything: only then may run open the next
	// connection, or two could carry commands of one claim.
	discard(c.nc)
	<-c.done
	if c.owed {
		l.trackStale(c)
	}
}

// progress is how many answers a connection had when inspect saw that there
// were more.
type progress struct {
	answers uint64
	at      time.Duration // since Ordered.epoch
}

// inspect is the periodic look at a living connection. A slow node keeps its
// connection for as long as it answers at all: to connect again and to send the
// same once more would only give it more to do.
func (l *Ordered) inspect(c *conn, seen *progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if c.answers != seen.answers {
		*seen = progress{c.answers, now}
	}
	if c.unanswered.n > 0 && now-max(c.unanswered.oldest().at, seen.at) > l.cfg.Stall {
		l.fail(c, errStalled)
		return
	}
	l.subscribeAgain(c, now)
	if l.cfg.Channel != "" && c.info.Protocol == 3 && c.unanswered.n == 0 && now-seen.at >= l.pingEvery() && c.cause == nil {
		c.pushOwn(keepAlive{}, now)
		c.wakeWriter()
	}
	// By now the node has most likely read what the old connection had left
	// there. Each leave goes out once more, behind it.
	if c.resends > 0 && now >= c.resendUntil && c.cause == nil {
		c.closeBatch()
		c.out = append(c.out, c.resend...)
		for range c.resends {
			c.enter(entry{cmd: keepAlive{}, at: now})
		}
		c.pending += c.resends
		c.resend, c.resends = nil, 0
		c.wakeWriter()
	}
}

// backoff is the pause between attempts: 20 ms doubling to 1 s, each drawn from
// its upper half, so that many clients of a node that comes back do not meet.
// After a timeout the next attempt may take twice as long.
type backoff struct {
	next time.Duration
	slow int // attempts that took too long
}

// The times that an attempt to connect may take, in Stalls.
const (
	maxStep    = 16 // one step
	maxConnect = 32 // all of it
)

func (b *backoff) stepTimeout(stall time.Duration) time.Duration {
	return min(stall<<b.slow, maxStep*stall)
}

// failed takes why an attempt has failed. Only a timeout makes the next attempt
// more patient. A refused connection fails at once, however long it may take.
func (b *backoff) failed(err error) {
	if slow(err) {
		b.slow = min(b.slow+1, 4)
	}
}

// lasted takes how long a connection was up that has broken. After one that has
// answered a command the pause is no longer than that, so a node whose
// connections are reset again and again is up for half of the time. A
// connection that breaks before any answer shortens no pause: its node may
// refuse every one.
func (b *backoff) lasted(d time.Duration, served bool) {
	if d > maxBackoff {
		*b = backoff{}
	} else if served {
		b.next = min(b.next, d)
	}
}

// sleep waits for the next attempt, and doubles the pause after that. It ends
// early with Close.
func (b *backoff) sleep(ctx context.Context) {
	d := min(max(b.next, minBackoff), maxBackoff)
	b.next = 2 * d
	t := time.NewTimer(d/2 + rand.N(d/2+1))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
