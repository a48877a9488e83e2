package core

import (
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/transport"
)

// This file owns the requests of operations on records, from the operation to the link
// and back. A node may have no room for one yet: see flow.
//
// Invariant: at most one request of an operation waits for a node. A newer one takes its
// place, so what waits is not more than the operations that callers wait for.

// registerRequest is one request on its way; it is a transport.Command. While it waits for room,
// i.mu guards it. From Append on it belongs to the link, until Reply.
type registerRequest struct {
	i     *registerCall
	req   protocol.Request
	loads int // how often the scripts have been loaded for it
	class protocol.Class
}

// offer sends a request, or has it wait for room at its node. Called with i.mu held. It
// reports whether the link is to be flushed.
// A request that already waits is replaced and keeps its place: the newer one asks
// for what the operation wants now.
func (i *registerCall) offer(r protocol.Request) (flush bool) {
	n := i.q.nodes[r.Node]
	if i.unsent != nil && i.unsent[r.Node] != nil {
		i.unsent[r.Node].req = r
		return false
	}
	c := &registerRequest{i: i, req: r, class: protocol.ClassOfRecord(&i.in)}
	if n.offer(c.class, c) {
		return true
	}
	if i.unsent == nil {
		i.unsent = new([32]*registerRequest)
	}
	i.unsent[r.Node] = c
	return false
}

// offer sends a request, or has it wait for room. Called with the owner's lock held. If it
// returns true, the link is to be flushed. Else the request waits.
// The lock of the owner keeps Reply out, until the owner has noted where its
// request is.
func (n *node) offer(k protocol.Class, c queued) (flush bool) {
	u := urgency(k)
	if !on(RuleRecordsWait) {
		u = transport.Certain
	}
	if !n.flow.backlog.Behind(k) && n.link.Append(c, u) != transport.Full {
		return true
	}
	if n.put(k, c) {
		return false
	}
	n.link.Append(c, transport.Certain) // the Quorum closes: it has an error as answer
	return true
}

// transmit see queued. An erasure is sent though its operation is over: the caller of
// Retire does not wait for it.
// It runs on pump's goroutine, and takes i.mu. A read or put that is over has no
// caller left, and is dropped.
func (c *registerRequest) transmit(n *node) bool {
	i := c.i
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.over && c.class == protocol.Records {
		return true
	}
	if n.link.Append(c, urgency(c.class)) == transport.Full {
		return false
	}
	i.unsent[n.index] = nil
	return true
}

// notice is a command that may wait for room, and whose answer is of no interest.
// A watch that ends sends one. If it is lost, the node drops the watch after two
// ttl.
type notice struct{ adminRequest }

func (c *notice) transmit(n *node) bool { return n.link.Append(c, transport.Normal) != transport.Full }

// notify sends a notice, after the operations on records that wait for room.
func (n *node) notify(command []byte) {
	if n.offer(protocol.Records, &notice{adminRequest{command: command}}) {
		n.link.Flush()
	}
}

// Append encodes the request.
func (c *registerRequest) Append(dst []byte) []byte {
	i := c.i
	return script.AppendCommand(dst, i.spec.keys(), &i.terms, i.q.channel, i.q.set.Guard, i.q.set.Retention, c.req)
}

// Reply takes the answer.
// It runs on the reader's goroutine, as [call.Reply] does, and judges the answer
// before it takes i.mu for the same reason: what follows from the verdict may take
// the lock of any attempt.
func (c *registerRequest) Reply(v []resp.Value, err error) {
	i, node := c.i, c.req.Node
	var a protocol.Answer
	if err = i.q.checkSet(node, err); err == nil {
		a, err = script.DecodeRecord(v)
	}
	var verdict protocol.Verdict
	if err == nil {
		verdict = i.q.judge(i.spec, &c.req, &a)
	}
	i.mu.Lock()
	now := i.q.now()
	switch {
	case i.over:
	// The node has not carried the request out. It goes again behind the scripts,
	// and the operation does not learn of it.
	case forgotten(err) && c.loads < maxLoads:
		c.loads++
		i.q.nodes[node].reload(c)
	case err != nil:
		i.errs[node] = explain(i.spec, err)
		i.in.Fail(now, c.req, forGood(err))
	case !verdict.Counts():
		i.errs[node] = i.q.uncounted(node, verdict.Why)
		i.in.Reply(now, c.req, a, verdict)
	default:
		// What the node says against the operation is for the error only. What it
		// decides is for the RegisterOp.
		i.errs[node] = refusal(i.spec, a)
		switch {
		case a.Status == protocol.Missing:
			i.errs[node] = errQueued
		case a.Record != nil && a.Record.Forged && (i.in.Op != protocol.OpPut || a.Status == protocol.StatusSuperseded):
			i.errs[node] = errHidden
		case a.Status == protocol.StatusSuperseded:
			i.errs[node] = errOvertaken
		case a.Status == protocol.Ahead:
			i.errs[node] = errFuture
		case a.Record != nil && !a.Record.CaughtUp && i.in.Op != protocol.OpPut:
			i.errs[node] = errForgetful
		}
		i.in.Reply(now, c.req, a, verdict)
	}
	i.flushUnlock(now)
}
