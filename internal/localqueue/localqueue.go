// Package localqueue makes the goroutines of a process that share one value of
// a primitive a single participant in the protocol. They queue for the value,
// hand a claim to each other without a round trip, and share a claim while they
// only read.
//
// [process.LocalQueue] decides all of that. This package has the lock around
// it, wakes goroutines, and asks package core to do what is needed at the
// nodes.
//
// Lock order: [Queue] has one lock, mu, which is the innermost here. Functions
// that send or wait (Begin, Wait, Release, Shrink, Renew) are called without
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
// process gets one from the nodes. If the context of that caller ends, the next
// caller takes over the task, together with the place in the queue at the
// nodes.
type Queue struct {
	quorum      *core.Quorum
	write, read *core.Spec // by mode
	err         error      // set if the name is unusable; every attempt to lock returns it

	mu           sync.Mutex // guards what follows
	state        process.LocalQueue[*waiter, core.Hold]
	lease        *core.Lease // of the goroutines that hold the value now, or held it last
	leaseExposed bool        // a caller may have the lease
	timer        *time.Timer // calls lingered
}

// waiter is a goroutine in the local queue. Invariant: once it has left the
// queue, it receives exactly one turn, unless GiveUp removed it.
type waiter struct {
	mode  Mode
	turn  chan turn
	place *list.Element
}

// turn is what a waiting caller receives: either the lock, or the task of
// getting it from the nodes. In the second case pending is not nil if an
// attempt is already queued at the nodes.
type turn struct {
	locked  bool
	pending *core.Pending
}

// New returns the participant of a primitive. write and read are the terms on
// which it locks; read is the zero value if the primitive has no readers. If
// the name is unusable, every attempt to lock returns the error.
func New(quorum *core.Quorum, set *setup.Settings, write, read core.Spec) *Queue {
	q := &Queue{quorum: quorum}
	q.state.TTL, q.state.Linger = set.TTL, set.Linger
	q.write = q.complete(set, write)
	if read.Weight > 0 {
		q.read = q.complete(set, read)
	}
	return q
}

// complete returns the full spec for one of the modes.
func (q *Queue) complete(set *setup.Settings, s core.Spec) (spec *core.Spec) {
	s.Set, s.Notify, s.ShortHold = set, true, true
	if spec, q.err = q.quorum.NewSpec(s); q.err != nil {
		return &s
	}
	return spec
}

func (q *Queue) Name() string { return q.write.Name }

// spec returns what the nodes are asked for in a mode. Queues without readers
// never ask for Read, so a nil spec is never used.
func (q *Queue) spec(mode Mode) *core.Spec {
	if mode == Read {
		return q.read
	}
	return q.write
}

// none means no claim.
var none core.Hold

// renewLease makes the lease for the next turn under the claim; the lease of
// the turn before has ended. Called with q.mu held. A lease that no caller has
// seen is reused, so an uncontended Lock and Unlock allocate nothing.
func (q *Queue) renewLease() {
	hold, n := q.state.Claim()
	if q.leaseExposed {
		q.lease, q.leaseExposed = hold.Lease(n), false
	} else {
		q.lease.Again(n)
	}
}

// want tells the holder that a caller waits, if the holder can ask for that.
// Called with q.mu held.
func (q *Queue) want() {
	if q.lease != nil && q.leaseExposed {
		q.lease.Want()
	}
}

// letIn wakes callers that hold the value now. It is called without q.mu, and
// it never blocks because turn has a buffer of one.
func letIn(ws []*waiter) {
	for _, w := range ws {
		w.turn <- turn{locked: true}
	}
}

// next gives the task of getting the lock from the nodes to the next local
// waiter. If the attempt that is queued at the nodes suits that waiter, it
// takes over the attempt too; otherwise the attempt is cancelled.
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
