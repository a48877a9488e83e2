package transport

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/quorate/quorate/internal/resp"
)

// This file owns the connection for pushes.
//
// Invariant: Config.Subscribed is called after each gap in which a push can have been lost.

// listen keeps the push connection: subscribe, read, and again when it breaks.
func (l *Ordered) listen() {
	var pause backoff
	told := false // Subscribed or PushDown has been called
	for l.ctx.Err() == nil {
		began := l.now()
		subscribed, err := l.subscribe(l.ctx, pause.patience(l.cfg.Stall))
		if l.ctx.Err() != nil {
			err = ErrClosed
		}
		if subscribed || !told {
			l.cfg.PushDown(err)
			told = true
		}
		if subscribed {
			up := l.now() - began
			pause.lasted(up, up >= minBackoff)
		} else {
			pause.failed(err)
		}
		pause.sleep(l.ctx)
	}
}

// subscribe returns when the push connection has ended.
//
// A subscriber cannot tell silence from a node that is gone, hence the pings:
// each must be answered within Stall. An answer that fails to come ends the
// connection, and the next subscription tells the owner that it missed something.
func (l *Ordered) subscribe(ctx context.Context, patience time.Duration) (subscribed bool, err error) {
	o, err := l.open(ctx, patience)
	if err != nil {
		return false, fmt.Errorf("connect to %s: %w", l.opts.Addr, l.advise(err))
	}
	nc, login := o.nc, o.login
	ctx, end := context.WithCancel(ctx)
	closed := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(closed)
		discard(nc)
	})
	defer func() { end(); <-closed }()
	step := &steady{Conn: nc, patience: patience}
	out := appendSteps(nil, append(login, loginStep{words: []string{"SUBSCRIBE", l.cfg.Channel}}))
	if _, err := step.Write(out); err != nil {
		return false, err
	}
	rd := resp.NewReader(step)
	for range login {
		if _, err := rd.Read(); err != nil && !needless(err) {
			return false, l.advise(err)
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
	// A subscribed connection may not send AUTH, so another one takes its place.
	o.creds.ready(func([]string) { end() })
	for {
		v, err := rd.Read()
		if err != nil {
			return subscribed, err
		}
		switch {
		case len(v) == 3 && string(v[0].Str) == "message":
			l.cfg.Push(string(v[2].Str))
		case len(v) == 3 && string(v[0].Str) == "subscribe" && !subscribed:
			subscribed = true
			l.cfg.Subscribed()
		}
		if subscribed {
			step.patience = l.cfg.Stall + l.pingEvery()
		}
	}
}

// pingEvery is the interval of pings: two of them fit into Stall.
func (l *Ordered) pingEvery() time.Duration { return max(l.cfg.Stall/2, time.Millisecond) }

// ping writes a ping now and then, until ctx ends or a write fails. A write that hangs
// for Stall fails.
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
