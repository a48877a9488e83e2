package memory

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/transport"
)

// The connection of a Transport to its node: it connects, serves requests, and
// begins again.

// longestPause is the longest pause between two attempts to connect.
const longestPause = time.Second

// run runs one connection after the other, until Close.
func (t *Transport) run() {
	called := false // Up or Down has been called
	pause := time.Millisecond
	for t.open() {
		changes := t.changed()
		err := t.connect()
		if err != nil {
			t.lower(err)
			if !called && t.cfg.Down != nil {
				t.cfg.Down(err)
			}
			called = true
			t.pause(pause, changes)
			pause = min(2*pause, longestPause)
			continue
		}
		called, pause = true, time.Millisecond
		call(t.cfg.Up)
		if t.cfg.Channel != "" {
			call(t.cfg.Subscribed)
		}
		err = t.serve()
		t.lower(err)
		if t.cfg.Down != nil {
			t.cfg.Down(err)
		}
	}
	t.mu.Lock()
	left := t.queue
	t.queue = nil
	t.mu.Unlock()
	for _, i := range left {
		i.cmd.Reply(nil, transport.ErrClosed)
	}
}

func call(f func()) {
	if f != nil {
		f()
	}
}

func (t *Transport) open() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.closed
}

func (t *Transport) changed() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changes
}

// pause waits for d, but not longer than until a change or Close.
func (t *Transport) pause(d time.Duration, changes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for ends := time.Now().Add(d); !t.closed && t.changes == changes && time.Now().Before(ends); {
		t.waitUntil(ends)
	}
}

// waitUntil waits for a Broadcast of wake, which a timer does when the time has
// come. Called with mu held.
func (t *Transport) waitUntil(when time.Time) {
	timer := time.AfterFunc(time.Until(when), func() {
		t.mu.Lock() // or it could come before the Wait
		defer t.mu.Unlock()
		t.wake.Broadcast()
	})
	defer timer.Stop()
	t.wake.Wait()
}

// connect performs the handshake of a connection, and makes it the current one.
// What was kept from the last one is sent first.
func (t *Transport) connect() error {
	t.mu.Lock()
	for t.frozen && !t.closed {
		t.wake.Wait()
	}
	barred, delay, changes := t.barred, t.delay, t.changes
	t.mu.Unlock()
	if barred {
		return errBarred
	}
	t.pause(delay, changes)
	info, err := t.node.greet()
	if err != nil {
		return err
	}
	ask := func(cmd transport.Command) error {
		v, err := t.node.execute(words(cmd.Append(nil)))
		cmd.Reply(v, err)
		return err
	}
	if t.cfg.Probe != nil {
		for _, c := range t.cfg.Probe() {
			_ = ask(c) // an error does not fail the connection
		}
	}
	if t.cfg.Hello != nil {
		cmds, err := t.cfg.Hello(*info)
		for _, c := range cmds {
			err = errors.Join(err, ask(c))
		}
		if err != nil {
			call(t.cfg.HelloFailed)
			return err
		}
	}
	// Under both locks: a node that is stopped, or a client that is cut off
	// meanwhile, finds a connection to break, or there is none.
	t.node.mu.Lock()
	defer t.node.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.barred:
		return errBarred
	case t.node.down != nil:
		return t.node.down
	}
	t.up, t.broken, t.info = true, nil, info
	for i := range t.queue {
		t.queue[i].words = words(t.queue[i].cmd.Append(nil))
	}
	t.flushed = len(t.queue)
	return nil
}

// serve carries out commands until the connection ends, and returns why it has.
func (t *Transport) serve() error {
	for {
		t.mu.Lock()
		for t.broken == nil && !t.closed && (t.frozen || t.flushed == 0 || time.Since(t.queue[0].at) < t.delay) {
			if t.frozen || t.flushed == 0 {
				t.wake.Wait()
			} else {
				t.waitUntil(t.queue[0].at.Add(t.delay))
			}
		}
		if cause := t.broken; cause != nil || t.closed {
			t.mu.Unlock()
			return cmp.Or(cause, transport.ErrClosed)
		}
		next := t.queue[0]
		t.mu.Unlock()
		v, err := t.node.execute(next.words)
		t.mu.Lock()
		t.queue = t.queue[1:]
		t.flushed--
		room := t.wanted && len(t.queue) <= t.room/2
		t.wanted = t.wanted && !room
		t.mu.Unlock()
		next.cmd.Reply(v, err)
		if room {
			call(t.cfg.Room)
		}
		t.wake.Broadcast() // Close may wait for the last one
	}
}

// lower records why there is no connection. Commands that need not outlast it
// get an error.
func (t *Transport) lower(cause error) {
	t.mu.Lock()
	t.up, t.flushed, t.pushes = false, 0, nil
	t.err = fmt.Errorf("%w: %w", transport.ErrDown, cause)
	var broken []item
	now := time.Now()
	t.queue = slices.DeleteFunc(slices.Clone(t.queue), func(i item) bool {
		gone := t.closed || !i.until.After(now)
		if gone {
			broken = append(broken, i)
		}
		return gone
	})
	room := t.wanted
	t.wanted = false
	t.mu.Unlock()
	for _, i := range broken {
		i.cmd.Reply(nil, fmt.Errorf("%w: %w", transport.ErrBroken, cause))
	}
	if room {
		call(t.cfg.Room)
	}
	t.wake.Broadcast()
}

// receivePush takes a push. Called with Node.mu held.
func (t *Transport) receivePush(payload string) {
	t.mu.Lock()
	if t.up && t.broken == nil { // else its end is only to be seen yet
		t.pushes = append(t.pushes, payload)
	}
	t.mu.Unlock()
	t.hello.Broadcast()
}

// listen delivers the pushes in order.
func (t *Transport) listen() {
	for {
		t.mu.Lock()
		for len(t.pushes) == 0 && !t.closed {
			t.hello.Wait()
		}
		if t.closed {
			t.mu.Unlock()
			return
		}
		pushes, delay, changes := t.pushes, t.delay, t.changes
		t.pushes = nil
		t.mu.Unlock()
		t.pause(delay, changes)
		for _, p := range pushes {
			t.cfg.Push(p)
		}
	}
}
