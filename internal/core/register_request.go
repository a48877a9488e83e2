package core

import (
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/transport"
)

// This file owns the requests of operations on records, from the operation to
// the link and back. What waits for room, and what is sent when its turn comes,
// is for [lease.RegisterOp] to decide, as it is for [process.Attempt] with
// claims: see flow.

// registerRequest is one request on its way; it is a transport.Command. While
// it waits for room, i.mu guards it. From Append on it belongs to the link,
// until Reply.
type registerRequest struct {
	i     *registerCall
	req   protocol.Request
	loads int // how often the scripts have been loaded for it
}

// offer sends a request, or has it wait for room at its node. Called with i.mu
// held. It reports whether the link is to be flushed. The lock keeps Reply out
// until the operation knows where its request is.
func (i *registerCall) offer(r *protocol.Request) (flush bool) {
	n := i.q.nodes.at(r.Node)
	way := i.in.Offer(r, n.flow.backlog.Behind)
	if way == protocol.Drop {
		return false
	}
	c := &registerRequest{i: i, req: *r}
	if way == protocol.Hand && n.link.Append(c, urgency(r.Class)) != transport.Full {
		return true
	}
	i.in.Waits(&c.req)
	if n.put(r.Class, c) {
		return false
	}
	i.in.Departed(&c.req) // the Quorum closes: it has an error as answer
	n.link.Append(c, transport.Certain)
	return true
}

// transmit see queued. It runs on pump's goroutine, and takes i.mu.
func (c *registerRequest) transmit(l *connection) bool {
	i := c.i
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.in.Depart(&c.req) {
		return true
	}
	if l.link.Append(c, urgency(c.req.Class)) == transport.Full {
		return false
	}
	i.in.Departed(&c.req)
	return true
}

// transmit see queued.
func (c *adminRequest) transmit(l *connection) bool {
	return l.link.Append(c, transport.Normal) != transport.Full
}

// notify sends a command whose answer is of no interest, the end of a watch,
// after the operations on records that wait for room. watches.close may call it
// for thousands of watches at once, of some kilobytes each. See
// TestManyWatchesSurviveAReconnect.
func (l *connection) notify(command []byte) {
	c := &adminRequest{command: command}
	waits := l.flow.backlog.Behind(protocol.Records) || !c.transmit(l)
	if waits && l.put(protocol.Records, c) {
		return
	}
	if waits {
		l.link.Append(c, transport.Certain) // the Quorum closes: it has an error as answer
	}
	l.link.Flush()
}

func (c *registerRequest) Append(dst []byte) []byte {
	return c.i.q.command(dst, c.i.spec, &c.i.terms, c.req)
}

// Reply takes the answer. It runs on the reader's goroutine, as [call.Reply]
// does, and judges the answer before it takes i.mu for the same reason: what
// follows from the verdict may take the lock of any attempt.
func (c *registerRequest) Reply(v []resp.Value, err error) {
	i, node := c.i, c.req.Node
	var a protocol.Answer
	if err = i.q.members.checkSet(node, err); err == nil {
		a, err = script.DecodeRecord(v)
	}
	var verdict protocol.Verdict
	if err == nil {
		verdict = i.q.driver.judge(i.spec, &c.req, &a)
	}
	i.mu.Lock()
	now := i.q.now()
	switch {
	case i.over:
	// The node has not carried the request out. It goes again behind the
	// scripts, and the RegisterOp goes on to count it as under way.
	case forgotten(err) && c.loads < maxLoads:
		c.loads++
		i.q.nodes.at(node).reload(c)
	case err != nil:
		i.errs[node] = explain(i.spec, err)
		i.in.Fail(now, c.req, fault.ForGood(err))
	case !verdict.Counts():
		i.errs[node] = uncounted(verdict.Why)
		i.in.Reply(now, c.req, a, verdict)
	default:
		// What the node says against the operation is for the error only. What
		// it decides is for the RegisterOp.
		i.errs[node] = refusal(i.spec, a)
		switch {
		case a.Status == protocol.Missing:
			i.errs[node] = errQueued
		case a.Record != nil && a.Record.Forged && (i.in.Op != protocol.OpPut || a.Status == protocol.StatusSuperseded):
			i.errs[node] = errHidden
		case a.Status == protocol.StatusSuperseded:
			i.errs[node] = errSuperseded
		case a.Status == protocol.Ahead:
			i.errs[node] = errFuture
		case a.Record != nil && !a.Record.CaughtUp && i.in.Op != protocol.OpPut:
			i.errs[node] = errForgetful
		}
		i.in.Reply(now, c.req, a, verdict)
	}
	i.writeUnlock(now)
}
