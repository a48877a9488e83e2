package transport

// Pushes arrive on the connection for commands if the node speaks RESP3, and on
// a separate connection otherwise.
// Invariant: Config.Subscribed is called after each gap in which a push can
// have been lost.
//
// With two connections, pushes and answers can arrive in any order relative to
// each other. So no code may rely on the order in which they arrive on one.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/quorate/quorate/internal/resp"
)

// subscribed calls Subscribed, even if pushes are up already, because every
// answered SUBSCRIBE may follow a gap.
func (p *pushes) subscribed(l *Ordered) {
	p.called, p.up = true, true
	l.cfg.Subscribed()
}

// end calls PushDown unless it was called last: once after each subscription,
// and once if there never was one.
func (p *pushes) end(l *Ordered, err error) {
	if l.cfg.Channel != "" && (p.up || !p.called) {
		p.called, p.up = true, false
		l.cfg.PushDown(err)
	}
}

// subscription is the SUBSCRIBE on the connection for commands. Its answer is a
// push, which take treats as an answer.
type subscription struct {
	l *Ordered
	c *conn
}

func (s subscription) Append(dst []byte) []byte {
	return resp.AppendCommand(dst, "SUBSCRIBE", s.l.cfg.Channel)
}

// Reply starts the pushes, or records when the node refused them. If the
// connection breaks first, run calls end.
func (s subscription) Reply(_ []resp.Value, err error) {
	if err == nil {
		s.l.pushes.subscribed(s.l)
	} else if e, refused := errors.AsType[resp.Error](err); refused {
		s.l.mu.Lock()
		s.c.refusedAt = s.l.now()
		s.l.mu.Unlock()
		s.l.pushes.end(s.l, e)
	}
}

// misplaced returns why the last value read cannot answer the oldest unanswered
// command, or nil if it can. Only a push or an error answers SUBSCRIBE, and a
// push answers nothing else. Called with Ordered.mu held.
func (c *conn) misplaced(err error) error {
	if c.unanswered.Len() == 0 {
		return errUnasked
	}
	_, asked := c.unanswered.First().cmd.(subscription)
	if c.rd.IsPush() != asked && !(asked && err != nil) {
		return errMisplaced
	}
	return nil
}

// pushed handles a value that answers no command. It runs on the goroutine that
// reads, with no lock held.
func (l *Ordered) pushed(v []resp.Value) {
	if len(v) == 3 && string(v[0].Str) == "message" {
		l.cfg.Push(string(v[2].Str))
	}
}

// subscribeTo sends the SUBSCRIBE for pushes on c, as the first command of a
// new connection. Called with Ordered.mu held.
func (l *Ordered) subscribeTo(c *conn, now time.Duration) {
	if l.cfg.Channel != "" && c.info.Protocol == 3 {
		c.pushOwn(subscription{l, c}, now)
	}
}

// listenBeside opens a separate connection for pushes if c cannot carry them.
// It ends such a connection to another server, which might go on publishing
// outdated pushes, or none.
func (l *Ordered) listenBeside(c *conn) {
	p := &l.pushes
	shared, addr := c.info.Protocol == 3, c.nc.RemoteAddr().String()
	if p.listener != nil && (shared || p.addr != addr) {
		p.listener()
		<-p.ended
		p.listener = nil
	}
	if l.cfg.Channel == "" || shared || p.listener != nil {
		return
	}
	ctx, cancel := context.WithCancel(l.ctx)
	ended := make(chan struct{})
	p.listener, p.ended, p.addr = cancel, ended, addr
	l.wg.Go(func() {
		defer close(ended)
		l.listen(ctx)
	})
}

// keepAlive is a PING to a node that owes no answer: see subscribe.
type keepAlive struct{}

func (keepAlive) Append(dst []byte) []byte  { return resp.AppendCommand(dst, "PING") }
func (keepAlive) Reply([]resp.Value, error) {}

// listen keeps the push connection up: it subscribes, reads, and starts again
// when the connection breaks. It runs on a goroutine of its own, the only one
// that uses that connection. It ends with ctx: Close cancels it, and so does
// listenBeside, which also waits for it.
func (l *Ordered) listen(ctx context.Context) {
	var pause backoff
	for ctx.Err() == nil {
		began := l.now()
		subscribed, err := l.subscribe(ctx, pause.stepTimeout(l.cfg.Stall))
		if l.ctx.Err() != nil {
			err = ErrClosed
		}
		l.pushes.end(l, err)
		if subscribed {
			// A push connection answers no commands. If it stayed up for a
			// while, it counts as served.
			up := l.now() - began
			pause.lasted(up, up >= minBackoff, false)
		} else {
			pause.failed(err)
		}
		pause.sleep(ctx)
	}
}

// subscribe opens the push connection and returns when it has ended. A
// subscriber cannot distinguish a silent node from a dead one, so it sends
// pings. Each must be answered within Stall.
func (l *Ordered) subscribe(ctx context.Context, timeout time.Duration) (subscribed bool, err error) {
	o, err := l.dialer.open(ctx, timeout)
	if err != nil {
		return false, fmt.Errorf("connect to %s: %w", l.dialer.name(), l.dialer.advise(err))
	}
	nc, login := o.nc, o.login
	ctx, end := context.WithCancel(ctx)
	closed := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(closed)
		discard(nc)
	})
	defer func() { end(); <-closed }()
	step := &steady{Conn: nc, timeout: timeout}
	out := appendSteps(nil, append(login, loginStep{words: []string{"SUBSCRIBE", l.cfg.Channel}}))
	if _, err := step.Write(out); err != nil {
		return false, err
	}
	rd := resp.NewReader(step)
	for _, sent := range login {
		if _, err := rd.Read(); err != nil && !sent.accepts(err) {
			return false, l.dialer.advise(sent.refused(err))
		}
	}
	if err := nc.SetWriteDeadline(time.Time{}); err != nil {
		return false, err
	}
	pinged := make(chan struct{})
	defer func() { end(); <-pinged }()
	go func() {
		defer close(pinged)
		l.ping(ctx, nc)
	}()
	for {
		v, err := rd.Read()
		if _, refused := err.(resp.Error); refused && subscribed {
			continue // a ping: the disk is full, or a script keeps the server busy
		}
		if err != nil {
			return subscribed, err
		}
		if len(v) == 3 && string(v[0].Str) == "subscribe" && !subscribed {
			subscribed = true
			l.pushes.subscribed(l)
		}
		l.pushed(v)
		// Before the subscription a read may take as long as a step of the
		// handshake. From here on it may take the interval of pings plus Stall
		// for the answer to one.
		if subscribed {
			step.timeout = l.cfg.Stall + l.pingEvery()
		}
	}
}

// pingEvery is the interval of pings: two of them fit into Stall.
func (l *Ordered) pingEvery() time.Duration { return max(l.cfg.Stall/2, time.Millisecond) }

// ping writes pings until ctx ends or a write fails. A write that hangs for
// Stall fails.
func (l *Ordered) ping(ctx context.Context, nc net.Conn) {
	tick := time.NewTicker(l.pingEvery())
	defer tick.Stop()
	msg := resp.AppendCommand(nil, "PING")
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if nc.SetWriteDeadline(time.Now().Add(l.cfg.Stall)) != nil {
			return
		}
		if _, err := nc.Write(msg); err != nil {
			discard(nc) // the reader reports it
			return
		}
	}
}
