package core

// This file owns the way of one request of a claim to its node: what it is on
// the wire, alone or in a batch. The way back is in reply.go.
// enqueue takes a call from the pool. The link appends it, and later calls Reply,
// which puts it back. The transport decides which go together, and
// script how the call looks.
// Invariant: a call ends once: in Reply, or where it turns out to be needless
// (Transmit, sendAlone). Each request of a batch gets its own answer. If the
// batch has none for it, the request is sent once more, by itself.

import (
	"errors"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/flow"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/transport"
)

// call is one request on its way; it is a transport.Command. While it waits for
// room, a.mu guards it. From Append on it belongs to the link, until Reply. Its
// fields are not written between Append and the answer.
type call struct {
	a     *attempt
	req   protocol.Request
	loads uint8 // how often the scripts have been loaded for it
	alone bool  // not to be sent in a batch
}

// calls are spare ones. A link calls Reply once, and is done with the command.
var calls = sync.Pool{New: func() any { return new(call) }}

// Until makes a leave outlast a broken connection, for as long as the lease
// that it is to end could last; everything else is the claim's to send again.
func (c *call) Until() time.Time {
	if c.req.Op != protocol.OpLeave {
		return time.Time{}
	}
	return c.a.q.Clock.When(c.req.Sent.Add(c.a.spec.Set.TTL))
}

// Append encodes the request. The link calls it with its own lock held, so it
// takes none and does not block.
func (c *call) Append(dst []byte) []byte {
	a := c.a
	return a.q.command(dst, a.spec, &a.claim.State.Terms, c.req)
}

// Kind says which requests it may share a batch with; 0: none. Those of a
// contended name go alone: their answers say more than a batch has room for.
func (c *call) Kind() uint64 {
	if c.alone || !c.a.spec.quiet() {
		return 0
	}
	return script.Kind(&c.a.claim.State.Terms, c.req)
}

// AppendItem encodes the request as one of a batch. Invariant: the Quorum says
// which configuration this client counts on, whatever settings the spec has.
func (c *call) AppendItem(keys, args []byte) (ks, as []byte, nKeys, nArgs int) {
	s := c.a.spec
	k := script.NewKeysBeside(s.Set.Prefix, s.Name, s.side).At(c.a.q.Members.Home())
	return script.AppendItem(keys, args, k, &c.a.claim.State.Terms, c.req)
}

// again sends c again, unless its own leave went first. Called with a.mu held.
func (c *call) again(load bool) bool {
	a := c.a
	if !a.claim.Reload(&c.req) {
		return false
	}
	n := a.q.Nodes.At(c.req.Node)
	if load {
		n.Reload(c)
	} else {
		n.Send(c)
	}
	return true
}

// Without the reset a spare call would keep its attempt alive.
func (c *call) free() {
	*c = call{}
	calls.Put(c)
}

var errTooLate = errors.New("the node was too slow to take the release before the lease expired")

// Transmit see [flow.Queued]. process.Client.Depart decides what the claim
// wants by now. It runs on pump's goroutine, and takes a.mu.
func (c *call) Transmit(l *flow.Connection) bool {
	a := c.a
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.q.Driver.Client.Depart(a.q.Now(), &a.claim, a.spec.shared, &c.req) {
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
	took := l.Link.Append(c, flow.Urgency(c.req.Class))
	if took == transport.Full {
		a.claim.Waits(&c.req)
		return false
	}
	a.claim.Departed(&c.req, took == transport.Taken) // a.mu keeps Reply from freeing c
	return true
}

// enqueue sends a request, or has it wait: where the link is full, or where
// others of its class or a more urgent one wait, which it would overtake. It
// reports whether the link is to be flushed. Called with a.mu held.
func (a *attempt) enqueue(r *protocol.Request) (flush bool) {
	n := a.q.Nodes.At(r.Node)
	c := calls.Get().(*call)
	c.a, c.req = a, *r
	took := transport.Full
	if !n.Behind(r.Class) {
		took = n.Link.Append(c, flow.Urgency(r.Class))
	}
	if took != transport.Full {
		a.claim.Departed(&c.req, took == transport.Taken) // a.mu keeps Reply from freeing c
		return took == transport.Taken
	}
	a.claim.Waits(&c.req)
	if !n.Put(r.Class, c) { // the Quorum closes: it has an error as answer
		a.claim.Departed(&c.req, false)
		n.Link.Append(c, transport.Certain)
		return true
	}
	return false
}
