package core

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/flow"
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/peers"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/transport"
)

// The operations on records that are in progress, and their requests on the way
// to a node and back. A registerCall passes answers, failures and the time to
// its lease.RegisterOp, and sends the requests that the RegisterOp returns. The
// RegisterOp decides which requests wait for room, and what is sent when their
// turn comes: see package flow.
// Invariant: an operation that has begun is in claims.records until it is
// over, so that a lost connection, a jumped clock and Close reach it.

// watcher is a Watch as pushes and the end of the Quorum see it.
type watcher interface {
	push(node int, t protocol.Ticket)
	look() // soon
	end()
}

// Register is the record of one name. Its rules are in lease/register.go.
// It has no state of its own, so it is safe for concurrent use.
type Register struct {
	q    *claims
	spec *Spec
}

// Register returns the record of s's name.
func (q *claims) Register(s *Spec) *Register { return &Register{q: q, spec: s} }

// registerCall drives one lease.RegisterOp, as attempt drives a claim. It is
// safe for concurrent use; mu guards the fields below mu. done receives once,
// when the operation is decided or given up. The fields above mu are set before
// the registerCall starts.
// Lock order: i.mu, then registry.mu or flow.mu. No lock of an attempt is taken
// under i.mu, because whether the hold is valid can be read without a lock.
type registerCall struct {
	q     *claims
	spec  *Spec
	terms protocol.Terms // for a read that registers a watch: the watch's id and for how long
	hold  Hold           // for an open or a put
	only  *peers.Node    // see attempt.only

	mu    sync.Mutex
	op    lease.RegisterOp
	err   error // why the operation has ended undecided, or why its hold ended before it
	over  bool
	done  chan struct{}
	timer *time.Timer
	errs  []error // per node
	asked uint32  // nodes for which a request was made, one bit per node
}

var (
	errSuperseded = errors.New("a later run has begun")
	errFuture     = errors.New("cannot store what another node has recorded, because it is too far ahead of " +
		"its clock: compare the nodes' clocks")
	errHidden = errors.New("has a record of this name that is too far ahead of its clock, so it cannot confirm " +
		"what was recorded: its clock was set back, or the record is forged; fix the clock or, if the clock is " +
		"right, delete the name's key that ends in }:r and the node's marker, which ends in the stamp of its " +
		"set; the other nodes will repair it")
)

// start begins the operation that its caller has filled in. The caller holds no
// lock.
func (r *Register) start(i *registerCall) *registerCall {
	q := r.q
	i.q, i.spec, i.done = q, r.spec, make(chan struct{}, 1)
	i.op.Succession = r.spec.decidesSuccessor
	i.errs = make([]error, q.Nodes.Size())
	i.mu.Lock() // once it is listed an event can find it, and must find it started
	q.records.add(i, i)
	now := q.Now()
	q.Driver.Client.StartRegisterOp(now, &i.op, i.spec.Name, i.spec.Set.NodeTimeout, i.spec.Set.TTL)
	i.only = q.Nodes.Only((1<<i.op.Nodes - 1) &^ i.op.Absent)
	// The hour is a placeholder: writeUnlock sets the timer.
	i.timer = time.AfterFunc(time.Hour, func() { i.event((*lease.RegisterOp).Tick) })
	i.writeUnlock(now)
	return i
}

// wait waits until the operation is decided. It returns an error if the
// operation fails or cannot be decided. If ctx ends or the Quorum closes, the
// operation ends too: a put that has been sent may still be recorded. One
// goroutine waits for one registerCall.
func (i *registerCall) wait(ctx context.Context) error {
	for waits := true; waits; {
		changed := i.q.Members.WaitForSet()
		waits = false
		i.only.Read(i.done)
		select {
		case <-i.done:
		case <-changed:
			waits = true
		case <-ctx.Done():
			i.end(fault.Cut(fault.ErrNoQuorum, fault.ContextError(ctx)))
		case <-i.q.Over:
			i.end(fault.ErrClosed)
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	switch outcome := i.op.Outcome(); {
	case i.err != nil: // even if a late answer has settled it after its hold ended
		return i.failure(i.err)
	case outcome == lease.Superseded:
		if slices.Contains(i.errs, errHidden) {
			return i.failure(fault.ErrLost) // no later run can help
		}
		return &fault.Failure{Err: fault.ErrLost}
	// Waiting cannot help: too many nodes refuse permanently.
	case outcome == lease.Refused:
		return i.failure(fault.ErrNoQuorum)
	}
	return nil
}

func (i *registerCall) outcome() lease.Outcome {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.op.Outcome()
}

// failure returns err with the state of every node that was asked. Called with
// i.mu held. An answer without an error counts as a vote, for the error text
// only. A node that has not been asked yet is not named.
func (i *registerCall) failure(err error) *fault.Failure {
	f := &fault.Failure{Err: err, Needed: i.op.Sets.Need()}
	for n, err := range i.errs {
		switch {
		case n >= i.op.Nodes || i.op.Absent&(1<<n) != 0, i.asked&(1<<n) == 0:
		case err == nil:
			f.Votes++
		default:
			f.Nodes = append(f.Nodes, fault.NodeFailure{Addr: i.q.Nodes.At(n).Addr, Err: err})
		}
	}
	return f
}

// end gives up the operation if it is not decided yet. Requests that a link
// already has are still sent, and a node may have received some of them.
func (i *registerCall) end(err error) {
	i.mu.Lock()
	if !i.over {
		i.err = err
		i.finish()
	}
	i.mu.Unlock()
}

// finish marks the operation as over. It is called once, with i.mu held.
// Answers that arrive later are dropped.
func (i *registerCall) finish() {
	i.over = true
	i.op.End()
	i.timer.Stop()
	i.q.records.drop(i)
	i.done <- struct{}{}
}

// event passes an event to the operation, unless it is over.
func (i *registerCall) event(f func(in *lease.RegisterOp, now protocol.Time)) {
	i.mu.Lock()
	now := i.q.Now()
	if !i.over {
		f(&i.op, now)
	}
	i.writeUnlock(now)
}

// writeUnlock queues the requests in order, and ends the operation if it is
// decided. It unlocks i.mu before it writes.
// Invariant: each event of the RegisterOp ends here. An open or a put depends
// on its hold: once the hold is lost, the RegisterOp decides how long to keep
// trying.
func (i *registerCall) writeUnlock(now protocol.Time) {
	if i.over {
		i.mu.Unlock()
		return
	}
	if i.hold != none && !i.op.Follow(now, i.hold.Valid()) {
		i.err = i.hold.Cause()
		i.finish()
		i.mu.Unlock()
		return
	}
	nodes := uint32(0)
	for k := range i.op.Out {
		r := &i.op.Out[k]
		for len(i.errs) <= r.Node { // the node has joined the set since the operation began
			i.errs = append(i.errs, nil)
		}
		i.asked |= 1 << r.Node
		if i.errs[r.Node] == nil {
			i.errs[r.Node] = fault.ErrNoAnswer
		}
		if i.enqueue(r) {
			nodes |= 1 << r.Node
		}
	}
	i.op.Out = i.op.Out[:0]
	if i.op.Outcome() != lease.Asking {
		i.finish()
	} else {
		i.timer.Reset(i.op.Wake().Sub(now))
	}
	i.mu.Unlock()
	i.q.Nodes.Flush(nodes)
}

// registerRequest is one request in flight; it is a transport.Command. While it
// waits for room, i.mu guards it. From Append to Reply it belongs to the link.
type registerRequest struct {
	i     *registerCall
	req   protocol.Request
	loads int // how often the scripts were loaded for this request
}

// enqueue sends a request, or makes it wait for room at its node. It reports
// whether the link needs a Flush. Called with i.mu held, so that Reply cannot
// run before the operation knows that its request was sent.
func (i *registerCall) enqueue(r *protocol.Request) (flush bool) {
	if !i.op.Goes(r) {
		return false
	}
	n, c := i.q.Nodes.At(r.Node), &registerRequest{i: i, req: *r}
	if !n.Behind(r.Class) && n.Link.Append(c, flow.Urgency(r.Class)) != transport.Full {
		return true
	}
	i.op.MarkWaiting(&c.req)
	if n.Put(r.Class, c) {
		return false
	}
	i.op.Sent(&c.req) // the Quorum is closing, so the answer is an error
	n.Link.Append(c, transport.Certain)
	return true
}

// Transmit: see [flow.Queued]. It runs on the goroutine of pump, and takes
// i.mu.
func (c *registerRequest) Transmit(l *flow.Connection) bool {
	i := c.i
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.op.Sending(&c.req) {
		return true
	}
	if l.Link.Append(c, flow.Urgency(c.req.Class)) == transport.Full {
		return false
	}
	i.op.Sent(&c.req)
	return true
}

// NeedsVote: see [transport.Vote].
func (c *registerRequest) NeedsVote() {}

func (c *registerRequest) Append(dst []byte) []byte {
	return c.i.q.command(dst, c.i.spec, &c.i.terms, c.req)
}

// Reply handles the answer. Like [call.Reply] it runs on the goroutine that
// reads from the node, and judges the answer before it takes i.mu: the actions
// that follow from the verdict may take the lock of any attempt.
func (c *registerRequest) Reply(v []resp.Value, err error) {
	i, node := c.i, c.req.Node
	var a protocol.Answer
	if err = i.q.Members.CheckSet(node, err); err == nil {
		a, err = script.DecodeRecord(v)
	}
	var verdict protocol.Verdict
	if err == nil {
		verdict = i.q.Judge(i.spec.shared, &c.req, &a)
	}
	i.mu.Lock()
	now := i.q.Now()
	switch {
	// The node has not carried the request out. It is sent again after the
	// scripts, and the RegisterOp keeps treating it as in flight. A put is sent
	// again even if its operation is over, because the caller of Retire does not
	// wait for it.
	case flow.IsNoScript(err) && c.loads < flow.MaxLoads && (!i.over || c.req.Op == protocol.OpPut):
		c.loads++
		i.q.Nodes.At(node).Reload(c)
	case i.over:
	case err != nil:
		i.q.Nodes.At(node).Writes.TryAfterRefusal(err)
		i.errs[node] = explain(i.spec, err)
		i.op.Fail(now, c.req, fault.Permanent(err))
	case !verdict.Counts():
		i.errs[node] = peers.Uncounted(verdict.Why)
		i.op.Reply(now, c.req, a, verdict)
	default:
		// errs is only for the error text. The RegisterOp decides what the
		// answer means.
		i.errs[node] = refusal(i.spec, a)
		switch {
		case a.Status == protocol.Missing:
			i.errs[node] = fault.ErrAhead
		case a.Record != nil && a.Record.Forged && (i.op.Op != protocol.OpPut ||
			a.Status == protocol.StatusSuperseded):
			i.errs[node] = errHidden
		case a.Status == protocol.StatusSuperseded:
			i.errs[node] = errSuperseded
		case a.Status == protocol.Ahead:
			i.errs[node] = errFuture
		case a.Record != nil && !a.Record.CaughtUp && (i.op.Op != protocol.OpPut || i.op.Over):
			i.errs[node] = fault.ErrForgetful
		}
		i.op.Reply(now, c.req, a, verdict)
	}
	i.writeUnlock(now)
}
