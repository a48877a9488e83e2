package core

import (
	"cmp"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// call is one request on its way; it is a transport.Command. While it waits for room,
// a.mu guards it. From Append on it belongs to the link, until Reply. It fills a cache
// line, because another processor may take the answers.
type call struct {
	a     *attempt
	req   protocol.Request
	loads uint8 // how often the scripts have been loaded for it
	alone bool  // not to be sent in a batch

	class     protocol.Class // while it waits for room, see flow
	withdrawn bool           // and is not wanted any more
}

// calls are spare ones: a link is done with a command when it calls Reply,
// which it does once.
var calls = sync.Pool{New: func() any { return new(call) }}

// Until makes a leave outlast a broken connection, for as long as the lease
// that it is to end could last; everything else is the claim's to send again.
func (c *call) Until() time.Time {
	if c.req.Op != protocol.OpLeave {
		return time.Time{}
	}
	return c.a.q.clock.when(c.req.Sent.Add(c.a.spec.Set.TTL))
}

// Append encodes the request.
func (c *call) Append(dst []byte) []byte {
	a := c.a
	return script.AppendCommand(dst, a.spec.keys(), &a.claim.Terms, a.q.channel, a.q.set.Guard, a.q.set.Retention, c.req)
}

// Kind says which other requests it may share a batch with; 0: none.
func (c *call) Kind() uint64 {
	if c.alone || !c.a.spec.quiet() {
		return 0
	}
	return script.Kind(&c.a.claim.Terms, c.req)
}

// AppendItem encodes the request as one of a batch.
func (c *call) AppendItem(keys, args []byte) (ks, as []byte, nKeys, nArgs int) {
	return script.AppendItem(keys, args, c.a.spec.keys(), &c.a.claim.Terms, c.req)
}

// again sends the request once more, unless it would come after its own leave.
// Called with a.mu held.
func (c *call) again(load bool) bool {
	a := c.a
	if c.req.Op != protocol.OpLeave && a.claim.Phase().Final() {
		return false
	}
	n := a.q.nodes[c.req.Node]
	if load {
		n.reload(c)
	} else {
		n.send(c)
	}
	return true
}

// free puts the call back. Without the reset a spare call would keep its attempt alive.
func (c *call) free() {
	*c = call{}
	calls.Put(c)
}

// Reply takes the answer; it runs on the node's reader goroutine, and so must not
// block. Decoding runs without a.mu: it concerns the node only.
func (c *call) Reply(v []resp.Value, err error) {
	a := c.a
	var ans protocol.Answer
	switch {
	case err != nil:
	case c.req.Op == protocol.OpLeave:
		_, err = script.DecodeLeave(v)
	default:
		ans, err = a.q.believe(c, v)
	}
	a.mu.Lock()
	if forgotten(err) && c.loads < maxLoads {
		if c.loads++; c.again(true) {
			a.mu.Unlock()
			return
		}
	}
	a.outbox.Landed(&c.req)
	now := a.q.now()
	if err == nil {
		a.q.fanout.Answered(now, c.req.Node, now.Sub(c.req.Sent), a.spec.Set.NodeTimeout)
	}
	switch {
	case c.req.Op == protocol.OpLeave:
		a.replies++
		switch {
		case err == nil:
			a.acks |= 1 << c.req.Node
		case a.errs[c.req.Node] == nil: // else it is known why the claim came to nothing there
			a.note(c.req.Node, err)
		}
	case err != nil:
		a.note(c.req.Node, explain(a.spec, err))
		a.claim.Fail(now, c.req, forGood(err))
	default:
		a.note(c.req.Node, cmp.Or(a.q.mismatch(&a.claim, c.req, ans), refusal(a.spec, ans)))
		if ans.Foreign && (ans.Wait == 0 || ans.Wait > foreignPoll) {
			ans.Wait = foreignPoll
		}
		a.claim.Answer(now, c.req, ans)
		if _, counts := a.claim.Node(c.req.Node, now); ans.Vote && !counts && ans.Late > 0 {
			a.note(c.req.Node, &LateError{Late: ans.Late})
		}
		if c.req.Op == protocol.OpJoin && ans.Status == protocol.OK {
			// Nodes that are asked later may not know the claims that the first nodes know.
			a.met = a.met || !ans.Vote || !ans.Told || ans.Sum > 0
			a.spec.crowd(a.met)
		}
		if a.claim.MissedResize(&ans) {
			a.q.repairs.missedResize(a.spec)
		}
	}
	c.free()
	a.flushUnlock(now)
}

// believe reads the answer to what is not a leave, and takes from it what
// concerns the whole Quorum.
func (q *Quorum) believe(c *call, v []resp.Value) (protocol.Answer, error) {
	ans, err := script.Decode(v)
	if err == nil {
		err = q.distrust(c.req, &ans)
	}
	if err != nil {
		return ans, err
	}
	q.heard(c.req.Node, ans)
	if ans.Ticket > c.req.Ticket && c.req.Op != protocol.OpBeat {
		q.saw(c.a.spec, ans.Ticket) // else it is the claim's own, or an earlier one's
	}
	if protocol.Lacks(&ans, c.a.spec.Counting) {
		q.repairs.look(q.nodes[c.req.Node])
	}
	return ans, nil
}

// foreignPoll is how often the head of a queue asks whether another Redlock
// client still holds the redlock key. A node publishes every other release, but not
// that one. The other waiters do not ask.
const foreignPoll = 100 * time.Millisecond

// refusal is what an answer says against the claim.
func refusal(s *Spec, a protocol.Answer) error {
	switch {
	case a.Status == protocol.Recovering:
		return &RecoveringError{Wait: a.Wait}
	case a.Status == protocol.Clash:
		return &ClashError{Asked: s.Capacity, InForce: a.Capacity}
	case a.Foreign:
		return errForeign
	}
	return nil
}
