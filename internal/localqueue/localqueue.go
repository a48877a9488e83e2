// Package localqueue lets the goroutines of a process that share one value of a
// primitive take part in the protocol as one participant. They queue, pass a
// claim on between them without a round trip, and share a claim where they only
// read.
//
// [process.LocalQueue] decides all of that. This package has the lock around
// it, wakes goroutines, and asks package core for what is to be done at the
// nodes.
//
// The order of locks: [Queue] has one, mu, which is the innermost one here.
// What sends or waits (Begin, Wait, Release, Shrink, Renew) is called without
// mu.
package localqueue

import (
	"container/list"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/setup"
)

// Mode is how a goroutine holds a value.
type Mode = process.Mode

const (
	Write = process.Write // one goroutine holds it alone
	Read  = process.Read  // any number of goroutines hold it together
)

// Queue is one participant. It must not be copied. It is safe for concurrent
// use. It has no goroutine of its own: a caller that finds no claim in the
// process gets it from the nodes. If its context ends, the task goes to the
// next caller, with the place in the nodes' queue.
type Queue struct {
	quorum      *core.Quorum
	write, read *core.Spec // by mode
	err         error      // of the name; every attempt to lock reports it

	mu           sync.Mutex // guards what follows
	state        process.LocalQueue[*waiter, core.Hold]
	lease        *core.Lease // of the goroutines that hold it, or of the last ones
	leaseExposed bool        // a caller may have the lease
	timer        *time.Timer // calls lingered
}

// waiter is a goroutine in the queue. Invariant: once it has left the queue,
// turn gets exactly one value, unless GiveUp took it out.
type waiter struct {
	mode  Mode
	turn  chan turn
	place *list.Element
}

// turn is what a caller waits for: either the lock, or the task of getting it
// from the nodes: with a place in their queue already when pending is not nil.
type turn struct {
	locked  bool
	pending *core.Pending
}

// New returns the participant of a primitive that takes the lock with the
// given terms: write, and read where there are readers. Every attempt to lock
// reports an unusable name.
func New(quorum *core.Quorum, set *setup.Settings, write, read core.Spec) *Queue {
	q := &Queue{quorum: quorum}
	q.state.TTL, q.state.Linger = set.TTL, set.Linger
	q.write = q.complete(set, write)
	if read.Weight > 0 {
		q.read = q.complete(set, read)
	}
	return q
}

// complete completes what is asked for in one of the modes.
func (q *Queue) complete(set *setup.Settings, s core.Spec) (spec *core.Spec) {
	s.Set, s.Notify, s.ShortHold = set, true, true
	if spec, q.err = q.quorum.NewSpec(s); q.err != nil {
		return &s
	}
	return spec
}

func (q *Queue) Name() string { return q.write.Name }

// spec returns what is asked of the nodes for a mode. Queues without readers
// never ask for Read, so nil is never used.
func (q *Queue) spec(mode Mode) *core.Spec {
	if mode == Read {
		return q.read
	}
	return q.write
}

// none is no claim.
var none core.Hold

// renewLease makes the lease of the next turn under the claim; the one before
// has ended. Called with q.mu held. A lease that no caller has seen is used
// again: an uncontended Lock and Unlock then allocate nothing.
func (q *Queue) renewLease() {
	hold, n := q.state.Claim()
	if q.leaseExposed {
		q.lease, q.leaseExposed = hold.Lease(n), false
	} else {
		q.lease.Again(n)
	}
}

// want says to a holder that may ask that another waits. Called with q.mu held.
func (q *Queue) want() {
	if q.lease != nil && q.leaseExposed {
		q.lease.Want()
	}
}

// letIn wakes callers that hold the value now. Called without q.mu, and never
// blocks: turn has room for one.
func letIn(ws []*waiter) {
	for _, w := range ws {
		w.turn <- turn{locked: true}
	}
}

// next gives the task of getting the lock from the nodes to the next local
// waiter, with the place of the attempt that is queued there if it serves.
func (q *Queue) next(mode Mode, try bool, queued *core.Pending) {
	q.mu.Lock()
	t := q.state.Next(mode, try, queued != nil)
	q.mu.Unlock()
	if t.Withdraw {
		queued.Cancel()
	}
	if !t.Place {
		queued = nil
	}
	if t.Any {
		t.To.turn <- turn{pending: queued}
	}
}
