package core

// The answers to the requests of claims, single or in a batch.

import (
	"cmp"
	"errors"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/flow"
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/peers"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/transport"
)

// Reply handles the answer. It runs on the goroutine that reads from the node,
// so it must not block.
// Invariant: an answer is judged before the claim sees it.
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
	// After a SCRIPT FLUSH the request is sent again, and the claim does not
	// notice.
	if flow.IsNoScript(err) && c.loads < flow.MaxLoads {
		if c.loads++; c.again(true) {
			a.mu.Unlock()
			return
		}
	}
	now := q.Now()
	var do []process.Action
	switch {
	case err != nil:
		q.Nodes.At(c.req.Node).Writes.TryAfterRefusal(err)
		a.failed(&c.req, explain(a.spec, err))
		if c.fail(now, err) {
			a.mu.Unlock()
			return
		}
	case !verdict.Counts():
		a.failed(&c.req, peers.Uncounted(verdict.Why))
		_, do = q.Driver.Client.Answer(now, &a.claim, a.spec.shared, &c.req, &ans, verdict)
	default:
		a.stats.record(a.claim.State.Phase(), c.req.Node, &ans)
		var doubt lease.Doubt
		doubt, do = q.Driver.Client.Answer(now, &a.claim, a.spec.shared, &c.req, &ans, verdict)
		a.answered(&c.req, &ans, doubt)
	}
	// Free c while a.mu is held, because enqueue still reads c under that lock
	// after the link has taken it. CarryOut comes last, because it locks other
	// attempts.
	c.free()
	a.stepUnlock(now, ordinary)
	q.Driver.CarryOut(do)
}

// forNow reports whether err says that the server has not carried out the
// request, for a reason that may be temporary.
func forNow(err error) bool {
	_, refused := errors.AsType[resp.Error](err)
	return refused && !fault.Permanent(err)
}

// fail makes the request fail with err, or schedules it to be sent again after
// a pause and returns true. Called with a.mu held.
func (c *call) fail(now protocol.Time, err error) (again bool) {
	a, n := c.a, c.a.q.Nodes.At(c.req.Node)
	stays, _ := a.claim.State.Node(c.req.Node, now)
	if !forNow(err) {
		a.claim.Fail(now, &c.req, fault.Permanent(err))
	} else if pause := a.claim.Refused(now, &c.req); pause > 0 {
		if a.q.pauses.put(c, n, pause) {
			return true
		}
		a.claim.Fail(now, &c.req, false)
		stays = true
	}
	if _, refused := errors.AsType[resp.Error](err); refused && stays && c.req.Op == protocol.OpLeave {
		a.q.pauses.refuse(n, explain(a.spec, err), c.Until(), &a.q.callbacks)
	}
	return false
}

// failed records why a request has failed. If it is a leave, an earlier error
// of the node is kept, because the earlier one explains more. Called with a.mu
// held.
func (a *attempt) failed(r *protocol.Request, err error) {
	if r.Op != protocol.OpLeave || a.errs[r.Node] == nil {
		a.setNodeError(r.Node, err)
	}
}

// answered records why an answer objects to the claim. If it does not object,
// the node's earlier error is removed. Called with a.mu held.
func (a *attempt) answered(r *protocol.Request, ans *protocol.Answer, d lease.Doubt) {
	if r.Op != protocol.OpLeave {
		a.setNodeError(r.Node, cmp.Or(a.q.Driver.Doubted(d, ans), refusal(a.spec, *ans)))
	}
}

// batch is the transport.Batch of one node. Reply is not safe for concurrent
// use, because only the node's reader calls it.
type batch struct {
	q      *claims
	values []resp.Value  // buffer for an answer that arrives as one text
	own    [4]resp.Value // buffer for the answer to one request
}

// Append begins the batch with the configuration that the Quorum uses,
// regardless of the settings in the specs of its requests. The link calls it
// with its lock held.
func (b *batch) Append(dst []byte, kind uint64, keys, args []byte, nKeys, nArgs int) []byte {
	n := b.q.Members.Named.Load()
	return script.AppendBatch(dst, n.Home.Marker(b.q.Set.Prefix), n.Guard, n.Retention, b.q.Channel,
		kind, keys, args, nKeys, nArgs)
}

// Reply gives each request its answer. It runs on the reader's goroutine.
func (b *batch) Reply(items []transport.Command, v []resp.Value, err error) {
	v = resp.Numbers(b.values, v)
	if err != nil || len(v) != script.BatchHead+len(items) {
		for i, c := range items {
			c.(*call).sendAlone(false, i == 0, cmp.Or(err, resp.ErrProtocol))
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
			c.sendAlone(true, false, nil)
		}
	}
}

// sendAlone sends a request of a batch again, by itself. err is the error of
// the batch, if the batch failed. contended means that the node's answer did
// not fit into the batch. Carrying out a join, a beat or a settle twice has the
// same effect as once.
func (c *call) sendAlone(contended, first bool, err error) {
	a := c.a
	a.mu.Lock()
	defer a.mu.Unlock()
	if contended {
		a.spec.shared.Meet(true)
	}
	if !forNow(err) {
		a.claim.Reached(c.req.Node)
	}
	if c.alone = true; !c.again(first && flow.IsNoScript(err)) {
		a.claim.Refused(a.q.Now(), &c.req) // everything else that the node may have done is recorded above
		c.free()
	}
}
