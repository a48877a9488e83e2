package core

// This file owns the life of one attempt in the runtime: its start, the events
// that reach its claim, what follows from a change of phase, and its end.
// An attempt is driven by several goroutines, one at a time under its mu:
//
//	the caller's        start, take, leave, Extend's renewal
//	a reader's          answers and pushes of one node, see call.go and node.go
//	the ticks scheduler what the claim wants at a time: a beat, a repetition
//	one per deadline    the end of a hold
//	pump's              a request that had waited for room, see flow.go

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/flow"
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/peers"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/rule"
	"github.com/quorate/quorate/internal/wake"
)

// attempt drives one process.Attempt: it passes the time and the events to the
// claim, and does what the claim says. It is safe for concurrent use. mu guards
// all fields from claim on, except the atomic alarms.
// Invariant: after each event of the claim stepUnlock runs before mu is free.
type attempt struct {
	q     *Quorum
	spec  *Spec
	owner Owner       // nil: no callbacks
	only  *peers.Node // of a set of one, while little else is under way: see [transport.Transport]

	// standing is for readers without mu: until when the claim is held, or 0.
	// The lowest bit, a nanosecond, says whether a claim waits behind it, the
	// next one that it is renewed no more. At the end it may be evicted, or
	// shut.
	standing atomic.Int64

	mu     sync.Mutex
	claim  process.Attempt
	since  protocol.Time // when the caller got the hold
	done   chan struct{} // receives at admission, or at the end of an attempt that was not admitted; nil when that has been seen
	ends   *time.Timer   // WithMaxHold
	errs   map[int]error // by node: the newest thing that it said against the claim
	waits  []wait        // goroutines that wait for a condition
	place  bool          // it has one of the intake
	warned bool          // the application knows that little of the lease is left
	late   bool          // the observer knows that its renewal is late
	seen   *seen         // for the tracer; nil: there is none

	alarms wake.Alarms[attempt]
}

// ending is what endUnlock is to know beside the event.
type ending uint8

const (
	ordinary  ending = iota
	unflushed        // what is to be sent is for a Flush, see Quorum.tick
	closing          // the Quorum closes
)

// note keeps a node's newest word against the claim. Called with a.mu held.
func (a *attempt) note(node int, err error) {
	switch {
	case err == nil:
		delete(a.errs, node)
	case a.errs == nil:
		a.errs = map[int]error{node: err}
	default:
		a.errs[node] = err
	}
}

// start makes an attempt and sends its joins. The caller holds no lock, and has
// a place of the intake, which goes to the attempt. It waits for no node. An
// unhealthy node gets the join too, but no decision waits for its answer.
func (q *Quorum) start(s *Spec, try bool, o Owner) *attempt {
	id := peers.NewID()
	a := &attempt{q: q, spec: s, done: make(chan struct{}, 1), owner: o, place: !s.succession}
	a.alarms.Init(a)
	if q.Set.Trace != nil {
		a.seen = new(seen)
	}
	begin, wall := process.Begin{
		Terms: protocol.Terms{ID: id, Weight: s.Weight, Capacity: s.Capacity, TTL: s.Set.TTL, Counting: s.Counting, Notify: s.Notify},
		Name:  s.Name, Try: try, ShortHold: s.ShortHold, Succession: s.succession, NoRenewal: s.Set.NoRenewal && !s.BoundLater, NodeTimeout: s.Set.NodeTimeout, Drift: lease.Drift(s.Set.TTL), Rules: rule.Protocol(),
	}, time.Now()
	busy := false
	for i, n := range q.Nodes.All() {
		state := n.Link.State(wall)
		busy = busy || state.Busy
		q.Driver.Client.See(&begin, i, process.Link{Up: state.Err == nil, Waiting: state.Waiting, Busy: state.Busy || s.Set.MinimalFanout})
	}
	a.mu.Lock() // a push that finds the registered attempt must find it started
	q.attempts.add(id, a)
	now := q.Now()
	q.Driver.Client.Start(now, &a.claim, s.shared, &begin)
	if !busy {
		a.only = q.Nodes.Only(a.claim.Sets.All())
	}
	for i, n := range q.Nodes.All() {
		if begin.Unhealthy&(1<<i) != 0 {
			a.note(i, n.Err()) // a try may be over before the link has refused the join
		}
	}
	a.stepUnlock(now)
	return a
}

// event takes the time under the lock: time does not go back for a claim.
func (a *attempt) event(f func(c *process.Attempt, now protocol.Time)) {
	a.mu.Lock()
	now := a.q.Now()
	f(&a.claim, now)
	a.stepUnlock(now)
}

// tick wakes the attempts that are due. Their requests, mostly renewals, are
// queued first and written together: with a write for each, most of the time
// that 100,000 renewals take would go into system calls. It runs on the
// goroutine of the ticks scheduler.
//
// Note: Here is an incorrect version:
//
//	for _, d := range due {
//		d.Sleeper().tick(ordinary)
//	}
func (q *Quorum) tick(due []wake.Alarm[attempt]) {
	for ; len(due) > flow.Together; due = due[flow.Together:] {
		q.tick(due[:flow.Together])
		// Where processors are few, the readers of the answers would otherwise
		// wait until all that is due has been sent.
		runtime.Gosched()
	}
	for _, d := range due {
		d.Sleeper().touch()
	}
	for _, d := range due {
		if len(due) > 1 {
			d.Sleeper().tick(unflushed)
		} else {
			d.Sleeper().tick(ordinary)
		}
	}
	if len(due) > 1 {
		q.Nodes.Flush(q.Nodes.Mask())
	}
}

// touch prefetches an attempt. Touching a whole batch before handling the first
// lets the cache misses overlap. The result has no meaning: it keeps the
// compiler from removing the reads.
func (a *attempt) touch() bool {
	return a.spec.quiet() && a.standing.Load() > int64(a.alarms.At(wake.Ticks))
}

func (a *attempt) tick(how ending) {
	a.mu.Lock()
	now := a.q.Now()
	a.claim.Tick(now)
	if a.q.Observer.Wanted() {
		a.noteLate(now)
	}
	a.endUnlock(now, how)
}

// queue hands the claim's requests to the links, and returns the nodes whose
// links need a Flush, a bit for each. Called with a.mu held.
// Invariant: the requests of one claim reach a link in the order of Out. A
// leave before its own join would leave the name taken for a lease with no
// holder.
func (a *attempt) queue() (nodes uint32) {
	for i := range a.claim.Out {
		r := &a.claim.Out[i]
		a.seen.note(a.claim.Phase(), r.Node, nil)
		if a.offer(r) {
			nodes |= 1 << r.Node
		}
	}
	a.claim.Sent()
	return nodes
}

// It is the function of the timer of WithMaxHold. The hold then ends by itself
// at its deadline, and is reported as lost.
func (a *attempt) stopRenewal() {
	a.event(func(c *process.Attempt, _ protocol.Time) { c.StopRenewal() })
}

// leave withdraws the claim from every node. It does not wait. Whether a hold
// was lost or released is decided with the lock held, and once.
func (a *attempt) leave() {
	a.event(func(c *process.Attempt, now protocol.Time) { c.Leave(now) })
}

// take returns the phase of the attempt to a caller that takes the hold, if
// there is one. It is called once, after done has received.
func (a *attempt) take() lease.Phase {
	a.mu.Lock()
	now := a.q.Now()
	phase := a.claim.Take(now)
	if phase == lease.Holding {
		a.since = now
	}
	a.done = nil
	a.stepUnlock(now)
	return phase
}

// close ends an attempt because its Quorum closes. Its leaves are queued here
// and sent by the links, which close after it.
func (a *attempt) close() {
	a.mu.Lock()
	now := a.q.Now()
	a.claim.Leave(now)
	a.endUnlock(now, closing)
}
