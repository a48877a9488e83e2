package core

// This file owns the way of one request of a claim: what it is on the wire,
// alone or in a batch, and what its answer does.
// offer (flow.go) takes a call from the pool. The link appends it, and later
// calls Reply, which puts it back. The transport decides which go together, and
// script how the call looks.
// Invariant: a call ends once: in Reply, or where it turns out to be needless
// (Transmit, sendAlone). Each request of a batch gets its own answer. If the
// batch has none for it, the request is sent once more, by itself.

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/flow"
	"github.com/quorate/quorate/internal/peers"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
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
	return a.q.command(dst, a.spec, &a.claim.Terms, c.req)
}

// Kind says which requests it may share a batch with; 0: none. Those of a
// contended name go alone: their answers say more than a batch has room for.
func (c *call) Kind() uint64 {
	if c.alone || !c.a.spec.quiet() {
		return 0
	}
	return script.Kind(&c.a.claim.Terms, c.req)
}

// AppendItem encodes the request as one of a batch.
func (c *call) AppendItem(keys, args []byte) (ks, as []byte, nKeys, nArgs int) {
	return script.AppendItem(keys, args, c.a.q.keys(c.a.spec), &c.a.claim.Terms, c.req)
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

// Reply takes the answer; it runs on the goroutine that reads the node, and so
// must not block. Invariant: the answer is judged before the claim gets it.
func (c *call) Reply(v []resp.Value, err error) {
	a, q := c.a, c.a.q
	var ans protocol.Answer
	var verdict protocol.Verdict
	switch {
	case err != nil:
		err = q.Members.CheckSet(c.req.Node, err)
	case c.req.Op == protocol.OpLeave:
		if _, err = script.DecodeLeave(v); err == nil {
			q.Nodes.At(c.req.Node).Released.Add(1)
		}
	default:
		ans, err = script.Decode(v)
	}
	if err == nil {
		verdict = q.Judge(a.spec.shared, &c.req, &ans)
	}
	a.mu.Lock()
	// After a SCRIPT FLUSH the request goes again, unseen by the claim.
	if flow.Forgotten(err) && c.loads < flow.MaxLoads {
		if c.loads++; c.again(true) {
			a.mu.Unlock()
			return
		}
	}
	now := q.Now()
	var do []process.Action
	switch {
	case err != nil && c.leaveLater(now, err):
		a.failed(&c.req, explain(a.spec, err))
		a.mu.Unlock()
		return
	case err != nil:
		a.failed(&c.req, explain(a.spec, err))
		a.claim.Fail(now, &c.req, fault.ForGood(err))
	case !verdict.Counts():
		a.failed(&c.req, peers.Uncounted(verdict.Why))
		do = q.Driver.Client.Answer(now, &a.claim, a.spec.shared, &c.req, &ans, verdict)
	default:
		a.answered(&c.req, &ans)
		do = q.Driver.Client.Answer(now, &a.claim, a.spec.shared, &c.req, &ans, verdict)
	}
	// With a.mu held: offer still reads c after the link has taken it, under
	// the same lock. carryOut comes last: it locks other attempts.
	c.free()
	a.stepUnlock(now)
	q.Driver.CarryOut(do)
}

// leaveLater sends a leave again after a pause that the server has refused for
// now: it is busy with another program's script, say, or cannot write to its
// disk. Called with a.mu held.
// Invariant: a leave is sent again while the lease that it is to end may last.
func (c *call) leaveLater(now protocol.Time, err error) bool {
	a := c.a
	pause := a.spec.Set.NodeTimeout / 4
	_, refused := errors.AsType[resp.Error](err)
	if c.req.Op != protocol.OpLeave || !refused || fault.ForGood(err) || now.Sub(c.req.Sent)+pause >= a.spec.Set.TTL || a.q.IsClosed() {
		return false
	}
	n := a.q.Nodes.At(c.req.Node)
	time.AfterFunc(pause, func() { n.Send(c) })
	return true
}

// failed notes why a request has come to nothing. What a node said before
// explains more than that its leave has failed. Called with a.mu held.
func (a *attempt) failed(r *protocol.Request, err error) {
	if r.Op != protocol.OpLeave || a.errs[r.Node] == nil {
		a.note(r.Node, err)
	}
}

// answered notes what an answer says against the claim. One that says nothing
// removes what the node said before. Called with a.mu held.
func (a *attempt) answered(r *protocol.Request, ans *protocol.Answer) {
	if r.Op != protocol.OpLeave {
		a.seen.note(a.claim.Phase(), r.Node, ans)
		a.note(r.Node, cmp.Or(a.q.Driver.Mismatch(&a.claim, r, ans), refusal(a.spec, *ans)))
	}
}

// refusal is what an answer says against the claim.
func refusal(s *Spec, a protocol.Answer) error {
	switch {
	case a.Status == protocol.Recovering:
		return &fault.RecoveringError{Wait: a.Wait}
	case a.Status == protocol.Clash:
		return &fault.ClashError{Asked: s.Capacity, InForce: a.Capacity}
	case a.Foreign:
		return errForeign
	}
	return nil
}

// batch is the transport.Batch of one node. Its Reply is not safe for
// concurrent use: only the reader of the node's answers calls it.
type batch struct {
	q      *Quorum
	values []resp.Value  // of an answer that is a text
	own    [4]resp.Value // of one request
}

// The link calls Append with its lock held.
func (b *batch) Append(dst []byte, kind uint64, keys, args []byte, nKeys, nArgs int) []byte {
	n := b.q.Members.Named.Load()
	return script.AppendBatch(dst, n.Home.Marker(b.q.Set.Prefix), n.Guard, n.Retention, b.q.Channel, kind, keys, args, nKeys, nArgs)
}

// Reply gives each request its answer. It runs on the reader's goroutine.
func (b *batch) Reply(items []transport.Command, v []resp.Value, err error) {
	v = resp.Numbers(b.values, v)
	if err != nil || len(v) != script.BatchHead+len(items) {
		for _, c := range items {
			c.(*call).sendAlone(false, err)
			err = nil // it concerns the script, so to load the script once is enough
		}
		return
	}
	head := v[:script.BatchHead]
	for _, c := range items {
		c.(*call).a.touch()
	}
	for i, c := range items {
		c := c.(*call)
		if own := script.ReplyItem(b.own[:0], head, v[script.BatchHead+i].Int, c.req); own != nil {
			c.Reply(own, nil)
		} else {
			c.sendAlone(true, nil)
		}
	}
}

// sendAlone sends a request of a batch once more, by itself. contended says
// that the node has more to say than a batch has room for. A node that carries
// out a join, a beat or a settle twice has the same claim as after one.
func (c *call) sendAlone(contended bool, err error) {
	a := c.a
	a.mu.Lock()
	defer a.mu.Unlock()
	if contended {
		a.spec.shared.Meet(true)
	}
	if c.alone = true; !c.again(flow.Forgotten(err)) {
		c.free()
	}
}

var errTooLate = errors.New("the node had no room for the release before the lease ended")

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

// offer sends a request, or has it wait: where the link is full, or where
// others of its class or a more urgent one wait, which it would overtake. It
// reports whether the link is to be flushed. Called with a.mu held.
func (a *attempt) offer(r *protocol.Request) (flush bool) {
	n := a.q.Nodes.At(r.Node)
	way := a.q.Driver.Client.Offer(&a.claim, a.spec.shared, r, n.Behind)
	if way == protocol.Drop {
		return false
	}
	c := calls.Get().(*call)
	c.a, c.req = a, *r
	took := transport.Full
	if way == protocol.Hand {
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
