package core

// This file owns the way of a request from its claim or operation to the link
// of its node, at once or by a backlog.

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/transport"
)

// connection is what a node is reached by: the link, and what waits for room
// there. It is safe for concurrent use, by its fields.
type connection struct {
	link     transport.Transport // set before the node is in the list
	flow     flow
	loading  atomic.Bool   // the scripts are under way, see reload
	released atomic.Uint64 // leaves that the node has acknowledged
}

// flow keeps the requests of claims that a node has no room for yet, and sends
// them when it has. What is sent, and when, is for [process.Attempt] and
// [process.Backlog] to decide. It is safe for concurrent use; mu guards the
// backlog and what belongs to it.
// Lock order: attempt.mu or registerCall.mu, then flow.mu or Ordered.mu, never
// both of these.
//
// A queue of bytes inside the link was worse: what lies there for a second has
// lost a second of its lease, and cannot be taken back. Here a newer request of
// the claim replaces an older one, and the lease counts from when it is sent.
// Memory is bounded: each claim or operation on a record has at most one
// request here for a node.
type flow struct {
	mu      sync.Mutex
	backlog process.Backlog[queued]
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

// queued is a request that waits for room at a node: a [call], a
// [registerRequest], or the end of a watch.
type queued interface {
	transport.Command
	// transmit sends the request, unless it has lost its sense. It reports
	// false when there is no room: the request goes on waiting. Its owner's
	// lock must not be held.
	transmit(l *connection) bool
}

// put has a request wait. Called with the owner's lock held. It reports false
// when the flow is closed.
// Invariant: a request that put has taken is transmitted, or its node's flow is
// closed. A caller that gets false still owns the request.
func (l *connection) put(k protocol.Class, c queued) bool {
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

// room says that the node may have room for more. The link calls it, and up
// does: a connection that begins has room. It blocks for nothing but flow.mu,
// so the reader of the node may call it.
func (l *connection) room() {
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
func (l *connection) start() {
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
func (l *connection) pump() {
	f := &l.flow
	sent := 0
	for {
		f.mu.Lock()
		k, ok := f.backlog.Next()
		if !ok || f.closed {
			f.pumping = false
			f.mu.Unlock()
			l.link.Flush()
			return
		}
		// c is in no list from here on, and flow.mu is free while it is
		// transmitted: transmit takes its owner's lock, and owners take flow.mu
		// under theirs.
		c := f.backlog.Take(k)
		f.note()
		f.mu.Unlock()
		if c.transmit(l) {
			if sent++; sent%together == 0 {
				l.link.Flush()
			}
			continue
		}
		l.link.Flush()
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

var errTooLate = errors.New("the node had no room for the release before the lease ended")

// transmit see queued. process.Client.Depart decides what the claim wants by
// now. It runs on pump's goroutine, and takes a.mu.
func (c *call) transmit(l *connection) bool {
	a := c.a
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.q.driver.client.Depart(a.q.now(), &a.claim, a.spec.shared, &c.req) {
		if !c.req.Withdrawn {
			a.note(c.req.Node, errTooLate)
			a.wakeWaits()
		}
		c.free()
		return true
	}
	// Depart has set when it was sent, and so when the claim wakes.
	if c.req.Op != protocol.OpLeave {
		a.q.ticks.Set(&a.alarms, a.claim.Wake())
	}
	took := l.link.Append(c, urgency(c.req.Class))
	if took == transport.Full {
		a.claim.Waits(&c.req)
		return false
	}
	a.claim.Departed(&c.req, taking(took)) // a.mu keeps Reply from freeing c
	return true
}

// taking is of a request that the link had room for: Full does not come here.
func taking(took transport.Fate) protocol.Taking {
	if took == transport.Taken {
		return protocol.Accepted
	}
	return protocol.NotSent
}

// offer sends a request, or has it wait: where the link is full, or where
// others of its class or a more urgent one wait, which it would overtake. It
// reports whether the link is to be flushed. Called with a.mu held.
func (a *attempt) offer(r *protocol.Request) (flush bool) {
	n := a.q.nodes.at(r.Node)
	way := a.q.driver.client.Offer(&a.claim, a.spec.shared, r, n.flow.backlog.Behind)
	if way == protocol.Drop {
		return false
	}
	c := calls.Get().(*call)
	c.a, c.req = a, *r
	took := transport.Full
	if way == protocol.Hand {
		took = n.link.Append(c, urgency(r.Class))
	}
	if took != transport.Full {
		a.claim.Departed(&c.req, taking(took)) // a.mu keeps Reply from freeing c
		return took == transport.Taken
	}
	a.claim.Waits(&c.req)
	if !n.put(r.Class, c) { // the Quorum closes: it has an error as answer
		a.claim.Departed(&c.req, protocol.NotSent)
		n.link.Append(c, transport.Certain)
		return true
	}
	return false
}

func urgency(k protocol.Class) transport.Urgency {
	switch k {
	case protocol.Certain:
		return transport.Certain
	case protocol.Renewals:
		return transport.Urgent
	}
	return transport.Normal
}

// send sends commands, in order. They do not wait for room: they are few, and
// the connection itself needs them (loading scripts, asking for the time). The
// caller may hold a lock of the runtime: it never calls Reply. But Flush may
// write, so it is not for a lock that others wait for.
func (l *connection) send(cmds ...transport.Command) {
	for _, c := range cmds {
		l.link.Append(c, urgency(protocol.Certain))
	}
	l.link.Flush()
}

// err is nil while the node is connected, else why it is not.
func (l *connection) err() error { return l.link.State(time.Time{}).Err }

// info is what the node said of itself as the latest connection began.
func (l *connection) info() *transport.Info { return l.link.State(time.Time{}).Info }

// drain is a part of Close. Leaves that wait for room are sent first, or what
// they release would stay taken for a lease. It waits until nothing waits for
// the node any more, or the context ends. Then what still waits is given up,
// and it returns how much that is.
func (l *connection) drain(ctx context.Context) (unsent int) {
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

// settle ends what has found no room until the node ended: the connection is
// closed, so each request fails.
// Invariant: each request that a flow has taken is answered. See
// TestDroppedNodeAnswersWhatWaitsForRoom. flow.mu is free while transmit runs,
// as in pump.
func (l *connection) settle() {
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
		c.transmit(l)
	}
}
