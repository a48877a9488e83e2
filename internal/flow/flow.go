// Package flow carries requests to one node: directly over the link of package
// transport, or through a backlog if the node has no room. Package process
// decides the order of the requests and which of them are obsolete.
//
//	flow.go     the connection to a node and its backlog
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

// Connection is a node's link together with the requests that wait for room
// there. Its methods are safe for concurrent use: each field has its own
// synchronization.
type Connection struct {
	Link     transport.Transport // set before other goroutines use the Connection
	flow     flow
	loading  atomic.Bool   // the scripts are being loaded; see Reload
	Released atomic.Uint64 // leaves that the node acknowledged
}

// flow holds requests for which the node has no room yet, and sends them once
// it has. [process.Attempt] and [process.Backlog] decide what is sent and in
// which order. It is safe for concurrent use; mu guards all fields except
// pumps. Memory is bounded: a claim or an operation on a record has at most one
// request here for each node.
// Lock order: attempt.mu or registerCall.mu, then flow.mu or Ordered.mu, never
// both of these.
type flow struct {
	mu      sync.Mutex
	backlog process.Backlog[Queued]
	pumping bool // a goroutine is sending
	again   bool // Room was called while that goroutine was sending
	blocked bool // the node has no room; the link will call Room
	closed  bool
	empty   chan struct{} // closed once the backlog is empty; nil if nobody waits for that
	pumps   sync.WaitGroup
}

// note wakes Drain if the backlog is empty. Called with f.mu held.
func (f *flow) note() {
	if f.empty != nil && f.backlog.Len() == 0 {
		close(f.empty)
		f.empty = nil
	}
}

// Queued is a request that can wait for room at a node: a request of a claim or
// of an operation on a record.
type Queued interface {
	transport.Command
	// Transmit sends the request, unless it is obsolete. It returns false if
	// there is no room; the request then keeps waiting. The caller must not
	// hold the lock of the request's owner.
	Transmit(l *Connection) bool
}

// MaxUnflushed is the most claims whose requests are batched before sending.
const MaxUnflushed = 2 * transport.MaxBatch

// Behind reports whether requests of class k or of a more urgent class are
// waiting.
func (l *Connection) Behind(k protocol.Class) bool { return l.flow.backlog.Behind(k) }

// Put adds a request to the backlog. Called with the owner's lock held. It
// returns false if the flow is closed; the caller then still owns the request.
// Invariant: a request that Put accepted is transmitted, or its node's flow is
// closed.
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

// Room says that the node may have room for more requests. The link calls it,
// and so does the owner when a connection begins. It blocks only on flow.mu, so
// the node's reader may call it.
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

// start begins pump in a goroutine if there is something to send and pump is
// not running. Called with f.mu held.
func (l *Connection) start() {
	f := &l.flow
	if !f.pumping && !f.blocked && !f.closed && f.backlog.Len() > 0 {
		f.pumping = true
		f.pumps.Go(l.pump)
	}
}

// pump sends the waiting requests. It runs in its own goroutine because it
// takes the owners' locks one after the other. It flushes every MaxUnflushed
// requests, so that the node can start on the first ones while the rest is
// encoded.
// Invariant: pump ends only if nothing waits, or if the link will call Room.
// again is set if Room was called while pump ran.
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
		// From here on c is in no list. flow.mu is free while c is transmitted,
		// because Transmit takes its owner's lock, and owners take flow.mu
		// while they hold theirs.
		c := f.backlog.Take(k)
		f.note()
		f.mu.Unlock()
		if c.Transmit(l) {
			if sent++; sent%MaxUnflushed == 0 {
				l.Link.Flush()
			}
			continue
		}
		l.Link.Flush()
		f.mu.Lock()
		f.backlog.Return(k, c)
		f.note()
		// There was no room. If the link has called Room since, it will not
		// call Room again for this refusal, so the loop continues.
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

// Urgency returns how the link must treat a request of class k.
func Urgency(k protocol.Class) transport.Urgency {
	switch k {
	case protocol.Certain:
		return transport.Certain
	case protocol.Renewals:
		return transport.Urgent
	}
	return transport.Normal
}

// Send sends commands in order. They do not wait for room: they are few, and
// the connection itself needs them, for example to load scripts or to ask for
// the time. It never calls Reply, so the caller may hold a lock of the runtime.
// But Flush may write to the network, so the caller must not hold a lock that
// others wait for.
func (l *Connection) Send(cmds ...transport.Command) {
	for _, c := range cmds {
		l.Link.Append(c, Urgency(protocol.Certain))
	}
	l.Link.Flush()
}

// Err returns nil while the node is connected, and otherwise why it is not.
func (l *Connection) Err() error { return l.Link.State(time.Time{}).Err }

// Info returns what the node reported about itself when its latest connection
// began.
func (l *Connection) Info() *transport.Info { return l.Link.State(time.Time{}).Info }

// Drain is part of Close. It waits until the backlog is empty, which sends
// leaves first, or until ctx ends. Then it closes the flow and returns how many
// requests remain unsent.
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

// FailQueued transmits the requests that still waited when the node ended. The
// connection is closed by then, so each of them fails. flow.mu is free while
// Transmit runs.
// Invariant: each request that a flow accepted is answered.
func (l *Connection) FailQueued() {
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

// ClosedLink is the link of a node that cannot be reached: it refuses every
// command.
type ClosedLink struct{}

func (ClosedLink) Append(c transport.Command, _ transport.Urgency) transport.Fate {
	go c.Reply(nil, transport.ErrDown)
	return transport.Refused
}

func (ClosedLink) State(time.Time) transport.State {
	return transport.State{Err: transport.ErrDown, Info: &transport.Info{}}
}

func (ClosedLink) Flush()                      {}
func (ClosedLink) Read(<-chan struct{})        {}
func (ClosedLink) Reconnect(error)             {}
func (ClosedLink) Close(context.Context) error { return nil }

// WhileAcknowledged returns a context that ends once the node stops
// acknowledging leaves. It waits one node timeout for the first
// acknowledgement, and five after each one, because a node that is merely slow
// will probably continue. It counts ticks instead of measuring time, so that a
// process that gets no CPU does not take its nodes for hung.
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
