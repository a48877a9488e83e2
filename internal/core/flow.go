package core

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/transport"
)

// flow keeps the requests of claims that a node has no room for yet, and sends them when
// it has. What is sent, and when, is for [protocol.Outbox] and [protocol.Backlog] to
// decide. It is safe for concurrent use; mu guards the backlog and what belongs to it.
// Lock order: attempt.mu or inquiry.mu, then flow.mu or Ordered.mu, never both of these.
//
// The obvious alternative is a queue of bytes inside the link, and it was worse. What lies
// in such a queue for a second has lost a second of its lease, cannot be taken back, and
// is followed by the claim's next try. Here a request waits as a wish: a newer one of the
// claim replaces it, a leave cancels a join that was never sent, and the lease counts
// from the moment at which the request is sent.
//
// Memory is bounded by the claims and the operations on records: each has at most one
// request here for a node. Callers wait for these anyway, so they are not asked to wait a
// second time.
type flow struct {
	mu      sync.Mutex
	backlog protocol.Backlog[queued]
	behind  [protocol.Classes]atomic.Bool // by class: Backlog.Behind, for a look without mu
	pumping bool                          // a goroutine is sending
	again   bool                          // there may be room though that goroutine has found none
	blocked bool                          // there is no room: the link calls Room
	closed  bool
	empty   chan struct{} // closed when the backlog is empty; nil while that concerns nothing
	pumps   sync.WaitGroup
}

// note publishes Backlog.Behind. Called with f.mu held.
func (f *flow) note() {
	for k := range f.behind {
		if b := f.backlog.Behind(protocol.Class(k)); f.behind[k].Load() != b {
			f.behind[k].Store(b)
		}
	}
	if f.empty != nil && f.backlog.Len() == 0 {
		close(f.empty)
		f.empty = nil
	}
}

// waits reports whether a request of the class has to wait for others.
func (f *flow) waits(k protocol.Class) bool { return f.behind[k].Load() }

// queued is a request that waits for room at a node.
type queued interface {
	transport.Command
	// transmit sends the request, unless it has lost its sense. It reports false when there
	// is no room: the request goes on waiting. Its owner's lock must not be held.
	transmit(n *node) bool
}

// put has a request wait. Called with the owner's lock held. It reports false when the
// flow is closed.
func (n *node) put(k protocol.Class, c queued) bool {
	f := &n.flow
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.backlog.Put(k, c)
	f.note()
	n.start()
	return true
}

// room says that the node may have room for more.
func (n *node) room() {
	f := &n.flow
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.blocked = false; f.pumping {
		f.again = true
		return
	}
	n.start()
}

// start has a goroutine send what waits, if none does. It ends when nothing waits or
// there is no room. Called with flow.mu held.
func (n *node) start() {
	f := &n.flow
	if !f.pumping && !f.blocked && !f.closed && f.backlog.Len() > 0 {
		f.pumping = true
		f.pumps.Go(n.pump)
	}
}

func (n *node) pump() {
	f := &n.flow
	sent := 0
	for {
		f.mu.Lock()
		k, ok := f.backlog.Next()
		if !ok || f.closed {
			f.pumping = false
			f.mu.Unlock()
			n.link.Flush()
			return
		}
		c := f.backlog.Take(k)
		f.note()
		f.mu.Unlock()
		if c.transmit(n) {
			if sent++; sent%together == 0 {
				n.link.Flush()
			}
			continue
		}
		n.link.Flush()
		f.mu.Lock()
		f.backlog.Return(k, c)
		f.note()
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

func (c *call) transmit(n *node) bool {
	a := c.a
	a.mu.Lock()
	defer a.mu.Unlock()
	if c.withdrawn {
		c.free()
		return true
	}
	now := a.q.now()
	req, ok := a.outbox.Depart(&a.claim, now, c.req, func() protocol.Ticket { return a.q.ticket(a.spec, a.claim.ID) })
	if !ok {
		a.unsent[n.index] = nil
		a.replies++
		a.note(n.index, errTooLate)
		a.wakeWaits()
		c.free()
		return true
	}
	if c.req = req; req.Op != protocol.OpLeave {
		a.q.ticks.set(a, a.claim.Wake())
	}
	r := c.req // c is the link's once it is taken
	took := n.link.Append(c, urgency(c.class))
	if took == transport.Full {
		a.outbox.NoRoom(&a.claim)
		return false
	}
	a.unsent[n.index] = nil
	if took == transport.Taken {
		a.outbox.Departed(&a.claim, r)
	}
	return true
}

// offer sends a request, or has it wait for room at its node. Called with a.mu held.
// It reports whether the link is to be flushed.
func (a *attempt) offer(r protocol.Request) (flush bool) {
	n, k := a.q.nodes[r.Node], a.outbox.Class(a.claim.Phase(), r.Op)
	var waits *call
	var as *protocol.Class
	if a.unsent != nil && a.unsent[r.Node] != nil {
		waits = a.unsent[r.Node]
		as = &waits.class
	}
	fate, withdraw := a.outbox.Offer(r, k, as, a.fresh)
	if withdraw {
		waits.withdrawn, a.unsent[r.Node] = true, nil
	}
	switch fate {
	case protocol.Replace:
		waits.req = r
		return false
	case protocol.Merge:
		return false
	case protocol.Needless:
		a.acks |= 1 << r.Node
		a.replies++
		return false
	}
	c := calls.Get().(*call)
	c.a, c.req, c.class = a, r, k
	took := transport.Full
	if !n.flow.waits(k) {
		took = n.link.Append(c, urgency(k))
	}
	switch took {
	case transport.Full:
		if a.unsent == nil {
			a.unsent = new([32]*call)
		}
		a.outbox.NoRoom(&a.claim)
		if a.unsent[r.Node] = c; !n.put(k, c) {
			a.unsent[r.Node] = nil
			n.link.Append(c, transport.Certain)
			return true
		}
	case transport.Taken:
		a.outbox.Departed(&a.claim, r)
		return true
	}
	return false
}

// urgency is the urgency of the requests of a class.
func urgency(k protocol.Class) transport.Urgency {
	if k == protocol.Renewals {
		return transport.Urgent
	}
	return transport.Normal
}

// send sends commands, in order. They do not wait for room.
func (n *node) send(cmds ...transport.Command) {
	for _, c := range cmds {
		n.link.Append(c, transport.Certain)
	}
	n.link.Flush()
}

// err is nil while the node is connected, else why it is not.
func (n *node) err() error { return n.link.State(time.Time{}).Err }

// info is what the node said of itself as the latest connection began.
func (n *node) info() *transport.Info { return n.link.State(time.Time{}).Info }

// drain waits until nothing waits for the node any more, or the context ends. Then what
// still waits is given up.
func (n *node) drain(ctx context.Context) {
	f := &n.flow
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
	f.mu.Unlock()
	f.pumps.Wait()
}
