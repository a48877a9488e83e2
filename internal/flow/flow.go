// Package flow is the way of a request to one node: at once to the link of
// package transport, or by a backlog until the node has room. Which requests go
// first, and which have lost their sense, is for package process to decide.
//
//	flow.go     the connection to a node, and what waits there for room
//	request.go  commands that belong to no claim
package flow

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/transport"
)

// Connection is what a node is reached by: the link, and what waits for room
// there. It is safe for concurrent use, by its fields.
type Connection struct {
	Link     transport.Transport // set before other goroutines use the Connection
	flow     flow
	loading  atomic.Bool   // the scripts are under way, see Reload
	Released atomic.Uint64 // leaves that the node has acknowledged
}

// flow keeps the requests of claims that a node has no room for yet, and sends
// them when it has. What is sent, and when, is for [process.Attempt] and
// [process.Backlog] to decide. It is safe for concurrent use; mu guards the
// backlog and what belongs to it. Memory is bounded: each claim or operation on
// a record has at most one request here for a node.
// Lock order: attempt.mu or registerCall.mu, then flow.mu or Ordered.mu, never
// both of these.
type flow struct {
	mu      sync.Mutex
	backlog process.Backlog[Queued]
	pumping bool // a goroutine is sending
	again   bool // there may be room though that goroutine has found none
	blocked bool // there is no room: the link calls Room
	closed  bool
	empty   chan struct{} // closed when the backlog is empty; nil while that concerns nothing
	pumps   sync.WaitGroup
}

// note wakes what waits until the backlog is empty. Called with f.mu held.
func (f *flow) note() {
	if f.empty != nil && f.backlog.Len() == 0 {
		close(f.empty)
		f.empty = nil
	}
}

// Queued is a request that waits for room at a node: one of a claim or of an
// operation on a record, or the end of a watch.
type Queued interface {
	transport.Command
	// Transmit sends the request, unless it has lost its sense. It reports
	// false when there is no room: the request goes on waiting. Its owner's
	// lock must not be held.
	Transmit(l *Connection) bool
}

// Together is for how many claims at most requests are collected, then sent.
const Together = 2 * transport.MaxBatch

// Behind reports whether requests of the class or of a more urgent one wait.
func (l *Connection) Behind(k protocol.Class) bool { return l.flow.backlog.Behind(k) }

// Put has a request wait. Called with the owner's lock held. It reports false
// when the flow is closed.
// Invariant: a request that Put has taken is transmitted, or its node's flow is
// closed. A caller that gets false still owns the request.
func (l *Connection) Put(k protocol.Class, c Queued) bool {
	f := &l.flow
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.backlog.Put(k, c)
	f.note()
	l.start()
	return true
}

// Room says that the node may have room for more. The link calls it, and its
// owner does: a connection that begins has room. It blocks for nothing but
// flow.mu, so the reader of the node may call it.
func (l *Connection) Room() {
	f := &l.flow
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.blocked = false; f.pumping {
		f.again = true
		return
	}
	l.start()
}

// start has a goroutine send what waits, if none does. Called with f.mu held.
func (l *Connection) start() {
	f := &l.flow
	if !f.pumping && !f.blocked && !f.closed && f.backlog.Len() > 0 {
		f.pumping = true
		f.pumps.Go(l.pump)
	}
}

// pump sends what waits, in a goroutine of its own, because it takes the locks
// of the owners one after the other. It flushes every so many requests: the
// node then works on the first while the rest is encoded.
// Invariant: pump ends only when nothing waits, or when the link will call
// Room. again is set where Room was called while pump ran.
func (l *Connection) pump() {
	f := &l.flow
	sent := 0
	for {
		f.mu.Lock()
		k, ok := f.backlog.Next()
		if !ok || f.closed {
			f.pumping = false
			f.mu.Unlock()
			l.Link.Flush()
			return
		}
		// c is in no list from here on, and flow.mu is free while it is
		// transmitted: Transmit takes its owner's lock, and owners take flow.mu
		// under theirs.
		c := f.backlog.Take(k)
		f.note()
		f.mu.Unlock()
		if c.Transmit(l) {
			if sent++; sent%Together == 0 {
				l.Link.Flush()
			}
			continue
		}
		l.Link.Flush()
		f.mu.Lock()
		f.backlog.Return(k, c)
		f.note()
		// There was no room. If the link has called Room since, it will not
		// call again for this refusal, so the loop goes on.
		stop := !f.again
		if f.again = false; stop {
			f.pumping, f.blocked = false, true
		}
		f.mu.Unlock()
		if stop {
			return
		}
	}
}

// Urgency is how the link is to take a request of a class.
func Urgency(k protocol.Class) transport.Urgency {
	switch k {
	case protocol.Certain:
		return transport.Certain
	case protocol.Renewals:
		return transport.Urgent
	}
	return transport.Normal
}

// Send sends commands, in order. They do not wait for room: they are few, and
// the connection itself needs them (loading scripts, asking for the time). The
// caller may hold a lock of the runtime: it never calls Reply. But Flush may
// write, so it is not for a lock that others wait for.
func (l *Connection) Send(cmds ...transport.Command) {
	for _, c := range cmds {
		l.Link.Append(c, Urgency(protocol.Certain))
	}
	l.Link.Flush()
}

// Err is nil while the node is connected, else why it is not.
func (l *Connection) Err() error { return l.Link.State(time.Time{}).Err }

// Info is what the node said of itself as the latest connection began.
func (l *Connection) Info() *transport.Info { return l.Link.State(time.Time{}).Info }

// Drain is a part of Close. It waits until nothing waits for the node any more,
// leaves first, or the context ends. Then what still waits is given up, and it
// returns how much that is.
func (l *Connection) Drain(ctx context.Context) (unsent int) {
	f := &l.flow
	f.mu.Lock()
	done := make(chan struct{})
	f.empty = done
	f.note()
	f.mu.Unlock()
	select {
	case <-done:
	case <-ctx.Done():
	}
	f.mu.Lock()
	f.closed, f.empty = true, nil
	unsent = f.backlog.Len()
	f.mu.Unlock()
	f.pumps.Wait()
	return unsent
}

// Settle ends what has found no room until the node ended: the connection is
// closed, so each request fails. flow.mu is free while Transmit runs.
// Invariant: each request that a flow has taken is answered.
func (l *Connection) Settle() {
	f := &l.flow
	for {
		f.mu.Lock()
		k, ok := f.backlog.Next()
		if !ok {
			f.mu.Unlock()
			return
		}
		c := f.backlog.Take(k)
		f.mu.Unlock()
		c.Transmit(l)
	}
}

// Nowhere is the way to no node: each command is refused.
type Nowhere struct{}

func (Nowhere) Append(c transport.Command, _ transport.Urgency) transport.Fate {
	go c.Reply(nil, transport.ErrDown)
	return transport.Refused
}

func (Nowhere) State(time.Time) transport.State {
	return transport.State{Err: transport.ErrDown, Info: &transport.Info{}}
}

func (Nowhere) Flush()                      {}
func (Nowhere) Read(<-chan struct{})        {}
func (Nowhere) Reconnect(error)             {}
func (Nowhere) Close(context.Context) error { return nil }

// WhileAcknowledged returns a context that ends when the node acknowledges no
// leave any more: none for a node timeout, or for five of these after the first
// one, since a node that is slow most likely goes on. It counts turns and not
// time, so that a process that gets no processor does not take its nodes for
// hung.
func (l *Connection) WhileAcknowledged(ctx context.Context,
	timeout time.Duration) (context.Context, context.CancelFunc) {
	const turns, patience = 8, 5
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		tick := time.NewTicker(timeout / turns)
		defer tick.Stop()
		seen := l.Released.Load()
		for left := turns; left > 0; left-- {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if now := l.Released.Load(); now != seen {
				seen, left = now, patience*turns
			}
		}
		cancel(fmt.Errorf("no release was acknowledged any more: %w", context.DeadlineExceeded))
	}()
	return ctx, func() { cancel(nil) }
}
