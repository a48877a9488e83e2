package core

// How one request of a claim gets to its node, alone or in a batch. The way
// back is in reply.go. enqueue takes a call from the pool. The link appends it
// to its buffer, and later calls Reply, which puts the call back. Package
// transport decides which requests are sent together, and package script how
// they are encoded.
// Invariant: a call ends exactly once: in Reply, or when it turns out not to be
// needed (Transmit, sendAlone). Each request of a batch gets its own answer. A
// request that the batch has no answer for is sent again alone.

import (
	"errors"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/flow"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/transport"
)

// call is one request in flight; it is a transport.Command. While it waits for
// room, a.mu guards it. From Append to Reply it belongs to the link, and its
// fields are not written.
type call struct {
	a     *attempt
	req   protocol.Request
	loads uint8 // how often the scripts were loaded for this request
	alone bool  // not to be sent in a batch
}

// calls is a pool. A call can be reused after Reply, because the link does not
// touch it after that.
var calls = sync.Pool{New: func() any { return new(call) }}

// Until returns until when the link must send the request again if the
// connection breaks. A leave is sent again for as long as the lease that it
// ends could last, and counts as over then even if the node refuses it. All
// other requests are repeated by the claim itself.
func (c *call) Until() time.Time {
	if c.req.Op != protocol.OpLeave {
		return time.Time{}
	}
	return c.a.q.Clock.When(c.req.Sent.Add(c.a.spec.Set.TTL))
}

// NeedsVote: see [transport.Vote].
func (c *call) NeedsVote() {}

// Append encodes the request. The link calls it while holding its own lock, so
// Append takes no lock and does not block.
func (c *call) Append(dst []byte) []byte {
	a := c.a
	return a.q.command(dst, a.spec, &a.claim.State.Terms, c.req)
}

// Requests with the same Kind may share a batch; 0 means that this one is sent
// alone. A request of a contended name is sent alone, because its answer says
// more than a batch has room for. So is a request of a claim with a note,
// because all claims of a batch share one owner text.
func (c *call) Kind() uint64 {
	if c.alone || c.a.spec.note != "" || !c.a.spec.quiet() {
		return 0
	}
	return script.Kind(&c.a.claim.State.Terms, c.req)
}

// AppendItem encodes the keys and arguments of the request for a batch. The
// batch names the configuration, the guard time and the retention once for all
// its requests; see batch.Append.
func (c *call) AppendItem(keys, args []byte) (ks, as []byte, nKeys, nArgs int) {
	s := c.a.spec
	k := script.NewKeysBeside(s.Set.Prefix, s.Name, s.side)
	return script.AppendItem(keys, args, k, &c.a.claim.State.Terms, c.req)
}

// again sends c again and returns true. If the claim has sent its leave in the
// meantime, it returns false and sends nothing. Called with a.mu held.
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

// free puts the call back into the pool. Without the reset the call would keep
// its attempt alive.
func (c *call) free() {
	*c = call{}
	calls.Put(c)
}

var errTooLate = errors.New("the node was too slow to process the release before the lease expired")

// Transmit: see [flow.Queued]. process.Client.Sending decides what the claim
// wants by now: the request may have changed or become needless while it
// waited. It runs on the goroutine of pump, and takes a.mu.
func (c *call) Transmit(l *flow.Connection) bool {
	a := c.a
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.q.Driver.Client.Sending(a.q.Now(), &a.claim, a.spec.shared, &c.req) {
		if !c.req.Withdrawn {
			a.setNodeError(c.req.Node, errTooLate)
			a.wakeWaits()
		}
		c.free()
		return true
	}
	// The claim's next wake-up depends on when its request was sent, which
	// Sending has just set.
	if c.req.Op != protocol.OpLeave {
		a.q.ticks.Set(&a.alarms, a.claim.Wake())
	}
	took := l.Link.Append(c, flow.Urgency(c.req.Class))
	if took == transport.Full {
		a.claim.MarkWaiting(&c.req)
		return false
	}
	a.claim.Sent(&c.req, took == transport.Taken) // a.mu keeps Reply from freeing c
	return true
}

// enqueue sends a request. It makes the request wait if the link is full, or if
// requests of the same class or a more urgent one are waiting already, because
// it would overtake them. It reports whether the link needs a Flush. Called
// with a.mu held.
func (a *attempt) enqueue(r *protocol.Request) (flush bool) {
	n := a.q.Nodes.At(r.Node)
	c := calls.Get().(*call)
	c.a, c.req = a, *r
	took := transport.Full
	if !n.Behind(r.Class) {
		took = n.Link.Append(c, flow.Urgency(r.Class))
	}
	if took != transport.Full {
		a.claim.Sent(&c.req, took == transport.Taken) // a.mu keeps Reply from freeing c
		return took == transport.Taken
	}
	a.claim.MarkWaiting(&c.req)
	if !n.Put(r.Class, c) { // the Quorum is closing; the link answers with an error
		a.claim.Sent(&c.req, false)
		n.Link.Append(c, transport.Certain)
		return true
	}
	return false
}
