package transport

// When a connection is opened, abandoned and opened again.
// Invariant: at most one connection carries commands. The next one is opened
// once all commands of the last one are settled.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/resp"
)

// NewOrdered begins to connect and returns at once. The client is a
// *redis.Client, a *SentinelClient or a *redis.ClusterClient. Its options say
// how to connect. The client itself is neither used for commands nor closed,
// and its hooks do not run.
func NewOrdered(client redis.UniversalClient, cfg Config) (*Ordered, error) {
	cfg.setDefaults()
	l := &Ordered{
		cfg:     cfg,
		epoch:   time.Now(),
		info:    &Info{},
		downErr: fmt.Errorf("%w: %w", ErrDown, errConnecting),
	}
	l.dialer.cfg = &l.cfg
	switch c := client.(type) {
	case *redis.ClusterClient:
		if err := usable(nil, c.Options().OnConnect); err != nil {
			return nil, err
		}
		l.dialer.cluster, l.resp3 = quiet(c), c.Options().Protocol != 2
	case *SentinelClient:
		if c.set.master == "" || len(c.set.addrs) == 0 {
			return nil, errors.New("the options of the Sentinel set have no MasterName or no SentinelAddrs")
		}
		if err := l.server(c.Client); err != nil {
			return nil, err
		}
		l.dialer.asker = newAsker(c.set)
	case *redis.Client:
		if err := l.server(c); err != nil {
			return nil, err
		}
	}
	l.idle = sync.NewCond(&l.mu)
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.wg.Go(l.run)
	return l, nil
}

// server applies the options of a client that is not a cluster client.
func (l *Ordered) server(c *redis.Client) error {
	o := c.Options()
	l.resp3 = o.Protocol != 2
	l.dialer.at.Store(o)
	return usable(o.Limiter, o.OnConnect)
}

// run connects, watches the connection, and connects again. It is a goroutine
// of its own, from NewOrdered to Close. Only run calls Up and Down, so the
// calls never overlap.
func (l *Ordered) run() {
	var pause backoff
	called := false // Up or Down has been called
	for l.ctx.Err() == nil {
		c, err := l.connect(l.ctx, pause.stepTimeout(l.cfg.Stall))
		up := err == nil
		began := l.now()
		if up {
			// Call raise before Up: commands that Up appends need the
			// connection, and must come after the kept leaves.
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
			// Report only the first failure: after that, the owner knows that the node
			// is down.
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
			if !misbehaves(c.cause) {
				pause.lasted(l.now()-began, c.served, c.replaced)
			}
		} else {
			pause.failed(err)
		}
		// The pause is usually long enough for the answer to arrive.
		if l.dialer.cluster != nil {
			l.dialer.cluster.ReloadState(l.ctx)
		}
		pause.sleep(l.ctx)
	}
}

// raise makes c the current connection. Kept commands are appended to it first.
// raise reports whether a command found no room on the last connection, which
// can no longer make room by answering.
func (l *Ordered) raise(c *conn) (room bool) {
	l.mu.Lock()
	now := l.now()
	l.subscribeTo(c, now)
	var kept []entry
	for _, e := range l.kept {
		switch {
		case e.until <= now:
			l.refuse(e.cmd, fmt.Errorf("%w: %w", ErrDown, errExpired))
		case c.skips(e.cmd):
			kept = append(kept, e)
		default:
			c.push(e.cmd, e.until, now)
		}
	}
	l.kept = kept
	l.cur, l.info = c, c.info
	l.checkDrained()
	room = l.unwant()
	l.mu.Unlock()
	c.start(l)
	c.wakeWriter()
	if l.dialer.cluster != nil || l.dialer.asker != nil { // the master may change while the connection lasts
		l.wg.Go(func() { l.follow(c) })
	}
	return room
}

// giveUpKept is called with the reason when connecting has failed. It refuses
// kept leaves whose leases have ended, and reports whether to call Room.
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

// watch runs on run's goroutine while the connection lives. When it returns, c
// is dead and settled, and its socket is closed.
func (l *Ordered) watch(c *conn) {
	tick := time.NewTicker(min(max(l.cfg.Stall/8, time.Millisecond), maxBackoff/4))
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
	// Closing the socket ends reads and writes that hang. The reader closes
	// done after it has settled everything. Only then may run open the next
	// connection: otherwise two connections could carry commands of one claim.
	// Data that the node has not acknowledged must not arrive late: TCP would
	// retransmit a join for a minute, and the next connection sends only the
	// leaves again. After Close there is no next connection, so TCP may deliver
	// the rest. A connection of a Dialer that hides its TCP connection cannot be
	// reset (see bare): there, a late join may occupy a node until its lease
	// ends.
	if tcp, ok := bare(c.nc).(interface{ SetLinger(sec int) error }); ok && c.cause != ErrClosed {
		tcp.SetLinger(0)
	}
	discard(c.nc)
	<-c.done
}

// progress is how many answers a connection had when inspect last saw the
// number grow.
type progress struct {
	answers uint64
	at      time.Duration // since Ordered.epoch
}

// inspect checks a live connection at regular intervals. A slow node keeps its
// connection as long as it answers at all: connecting again and repeating
// commands would only give it more work.
func (l *Ordered) inspect(c *conn, seen *progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if c.answers != seen.answers {
		*seen = progress{c.answers, now}
	}
	if c.unanswered.Len() > 0 && now-max(c.unanswered.First().at, seen.at) > l.cfg.Stall {
		l.fail(c, errStalled)
		return
	}
	// If the node refused pushes because something was missing, such as a
	// right, that may be fixed while the connection lasts.
	if c.refusedAt > 0 && now-c.refusedAt >= maxBackoff && c.cause == nil {
		c.refusedAt = 0
		l.subscribeTo(c, now)
		c.wakeWriter()
	}
	if l.cfg.Channel != "" && c.info.Protocol == 3 && c.unanswered.Len() == 0 &&
		now-seen.at >= l.pingEvery() && c.cause == nil {
		c.pushOwn(keepAlive{}, now)
		c.wakeWriter()
	}
}

// connect opens a connection and completes its handshake. Each step may take up
// to timeout, and all steps together maxConnect Stalls: see steady. It returns
// a connection that no other goroutine knows, or an error, with the socket
// closed. If it fails after calling Hello, it calls HelloFailed, because
// neither Up nor Down will follow.
func (l *Ordered) connect(ctx context.Context, timeout time.Duration) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, maxConnect*l.cfg.Stall)
	defer cancel()
	if err := l.dialer.aim(ctx); err != nil {
		return nil, err
	}
	ctx, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	// ctx limits the whole attempt; step only limits a step that makes no
	// progress.
	step := &steady{timeout: timeout}
	if timeout > l.cfg.Stall {
		heard := make(chan struct{})
		step.heard = sync.OnceFunc(func() { close(heard) })
		l.dialer.probes.Go(func() { l.dialer.probeInParallel(ctx, heard, lost) })
	}
	o, err := l.dialer.open(ctx, timeout)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", l.dialer.name(),
			l.dialer.advise(cmp.Or(context.Cause(ctx), err)))
	}
	nc := o.nc
	step.Conn = nc
	if l.resp3 {
		o.login = upgrade(o.login)
	}
	c := &conn{
		nc: nc, rd: resp.NewReader(step), batcher: l.cfg.Batch, slotted: l.dialer.cluster != nil,
		info: &Info{Protocol: 2, Addr: o.addr}, // RESP2 until the node has accepted HELLO 3
		wake: make(chan struct{}, 1),           // buffered, so that a signal during a write is not lost
		dead: make(chan struct{}), done: make(chan struct{}),
		reading: reading{look: make(chan struct{}, 1)}, window: window{size: firstWindow},
	}
	stop := context.AfterFunc(ctx, func() { discard(nc) })
	err = l.handshake(c, step, o.login)
	if !stop() && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		// From here on inspect watches the connection. A read may wait as long
		// as the node owes no answer.
		step.timeout, step.heard = 0, nil
		err = nc.SetDeadline(time.Time{})
	}
	if err != nil {
		discard(nc)
		err = fmt.Errorf("handshake with %s: %w", nc.RemoteAddr(), l.dialer.advise(err))
		if c.greeted {
			l.cfg.HelloFailed()
		}
		return nil, err
	}
	return c, nil
}
