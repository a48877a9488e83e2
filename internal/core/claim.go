package core

// What a claim is in the runtime: what a primitive asks for, the attempt that
// drives the claim, and what all claims of a Quorum share.
// Invariant: all claims of one value share one process.Name, because it
// contains the clock of their tickets: the ticket of a claim must be above
// those of the claims that this process has seen.

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/peers"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/wake"
)

// Spec is what a primitive asks for. One Spec serves many attempts. NewSpec
// sets its fields, so it is safe for concurrent use.
type Spec struct {
	Name             string
	Kind             string // of the primitive, for the tracer and for onlookers
	Weight           uint64
	Capacity         uint64
	Counting         bool // a semaphore: votes alone do not suffice
	Notify           bool // push to the holder when a claim begins to wait
	ShortHold        bool // often given back at once: see lease.Fanout
	BoundLater       bool // it is renewed without limit until Hold.Bound is called
	Set              *setup.Settings
	shared           *process.Name // what all claims at the name share
	decidesSuccessor bool          // the name is that of the register that decides which configuration follows
	side             string        // a second lock, queue and record at the same name; empty: those of the name itself
	note             string        // what follows the channel in the owner of a claim: "" or a space and the note
}

func (s *Spec) withNote(note string) *Spec {
	c := *s
	c.note = " " + note
	return &c
}

// WithWeight returns a copy that asks for another weight.
func (s *Spec) WithWeight(weight uint64) *Spec {
	c := *s
	c.Weight = weight
	return &c
}

// quiet reports whether no other claim has recently been met at the name.
func (s *Spec) quiet() bool { return !s.shared.Contended() }

// registry lists what a Quorum has in progress: attempts and watches by id, and
// operations on records. It is safe for concurrent use: mu guards all, and is
// held for one access to the map only. The lock of an entry is taken before mu.
// Invariant: an attempt is listed before its first request is queued, because a
// node may push the vote before the goroutine that starts the attempt
// continues.
type registry[K comparable, V any] struct {
	mu  sync.Mutex
	all map[K]V
}

func (r *registry[K, V]) add(k K, v V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[K]V{}
	}
	r.all[k] = v
}

// drop removes an entry and reports whether it was listed.
func (r *registry[K, V]) drop(k K) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, had := r.all[k]
	delete(r.all, k)
	return had
}

// find returns the entry, or the zero value if it has ended: nodes may push for
// that too.
func (r *registry[K, V]) find(k K) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[k]
}

// list returns a copy, so the caller takes the locks of the entries without
// holding mu. An attempt that begins in the meantime may be missing. It asks
// the nodes anyway, and if the Quorum closes its Pending.Wait cancels it.
func (r *registry[K, V]) list() []V {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.all))
}

// MaxStarting is how many attempts of a process may be waiting for their first
// answers. With nodes that take 100 ms to answer this allows 10,000 locks a
// second, and starting that many attempts takes a few milliseconds. If 30,000
// callers lock at the same moment without this limit, all would run before the
// reader goroutines are scheduled again: holds are not renewed, and connections
// are given up.
const MaxStarting = 1024

// startLimiter lets MaxStarting attempts start at a time. Callers of further
// attempts wait in the order of the channel.
// Invariant: each successful tryAcquire or acquire is followed by exactly one
// release, when AwaitsFirstAnswers is false for the attempt.
type startLimiter chan struct{}

func (l startLimiter) tryAcquire() bool {
	select {
	case l <- struct{}{}:
		return true
	default:
		return false
	}
}

func (l startLimiter) release() { <-l }

// claims is what the claims of a Quorum share.
type claims struct {
	*peers.Peers
	ticks, deadlines *wake.Scheduler[attempt]

	attempts registry[protocol.ID, *attempt]
	starts   startLimiter
	pauses   pauses
	waiting  atomic.Int64 // how many claims wait for their turn
	telling  atomic.Int32 // how many Ended callbacks are running; their leaves are sent afterwards
}

// command appends a request. Invariant: the configuration and the settings in
// the request are read at the same moment, since the node relies on both.
func (q *claims) command(dst []byte, s *Spec, t *protocol.Terms, r protocol.Request) []byte {
	n := q.Members.Named.Load()
	k := script.NewKeysBeside(s.Set.Prefix, s.Name, s.side).At(n.Home)
	return script.AppendCommand(dst, k, t, q.Channel+s.note, n.Guard, n.Retention, r)
}

// NewSpec returns a Spec for a primitive. It fails if the name is unusable,
// without asking a node.
func (q *claims) NewSpec(s Spec) (*Spec, error) {
	if err := setup.CheckName(s.Name); err != nil {
		return nil, err
	}
	made := &struct { // the two are used together
		spec Spec
		name process.Name
	}{spec: s}
	made.name.Name, made.name.Counting = s.Name, s.Counting
	made.spec.shared = &made.name
	return &made.spec, nil
}

// attempt drives one process.Attempt: it passes the time and the events to the
// claim, and carries out what the claim returns. It is safe for concurrent use.
// mu guards all fields from claim on, except the atomic alarms.
// Invariant: after each event of the claim stepUnlock runs before mu is
// released.
type attempt struct {
	q     *claims
	spec  *Spec
	owner Owner       // nil: no callbacks
	only  *peers.Node // the node of a set of one while it is not busy, nil otherwise: see [transport.Transport]

	packed atomic.Int64 // a packedState, for readers without mu

	mu      sync.Mutex
	claim   process.Attempt
	since   protocol.Time // when the caller got the hold
	done    chan struct{} // receives at admission, or at the end of an attempt that was not admitted; nil when that has been seen
	ends    *time.Timer   // WithMaxHold
	errs    map[int]error // by node: its newest objection to the claim
	waits   []waiter      // goroutines that wait for a condition
	counted bool          // startLimiter counts it
	warned  bool          // the application was warned that little of the lease is left
	bare    bool          // the hold rested on a bare majority at its last beat
	seen    *seen         // for the tracer; nil: there is none

	alarms wake.Alarms[attempt]
}

// ending says how stepUnlock must end the event.
type ending uint8

const (
	ordinary  ending = iota
	unflushed        // do not flush: the caller flushes for many claims, see claims.tick
	closing          // the Quorum closes
)

// Owner receives the events of its hold. No lock is held during a callback. The
// methods run on the goroutine of the event, and must not wait for a node.
type Owner interface {
	Ended()   // the hold was lost, evicted or closed, see Hold.Cause; called at most once
	Waiting() // a claim has begun to wait behind it
	Calm()    // no claim waits behind it any more

	// Warn calls f with the lease of the holder, to warn it. It does not if
	// nothing holds the claim or the holder does not have its lease yet. It
	// runs on its own goroutine.
	Warn(h Hold, f func(lease any))
}

// note keeps the newest objection of a node to the claim; a nil err removes it.
// Called with a.mu held.
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

// touch prefetches an attempt. Touching a whole batch before handling the first
// lets the cache misses overlap. The result has no meaning: it keeps the
// compiler from removing the reads.
func (a *attempt) touch() bool {
	return a.spec.quiet() && a.packed.Load() > int64(a.alarms.At(wake.Ticks))
}

// seen is what an attempt records for the tracer; a.mu guards it.
type seen struct {
	asked     [peers.MaxNodes]uint8 // how many requests each node got before the claim was admitted
	contended bool
	queue     int // the highest rank in a queue that a node has shown
}

// note records a request, or the answer ans if that is not nil. Called with
// a.mu held.
func (s *seen) note(phase lease.Phase, node int, ans *protocol.Answer) {
	switch {
	case s == nil || phase >= lease.Holding:
	case ans == nil:
		s.asked[node]++
	default:
		s.queue = max(s.queue, ans.Rank)
		s.contended = s.contended || ans.Status == protocol.OK && !ans.Vote
	}
}

// waiter is a goroutine that waits until a condition of an attempt holds. Every
// change that can make a condition true calls wakeWaits before a.mu is
// released.
type waiter struct {
	cond  func() bool   // called with a.mu held
	woken chan struct{} // has room for one, so that waking it never blocks
}

// until waits for cond to become true, at most d or until ctx ends, and reports
// whether it did.
func (a *attempt) until(ctx context.Context, d time.Duration, cond func() bool) bool {
	a.mu.Lock()
	if cond() {
		a.mu.Unlock()
		return true
	}
	w := waiter{cond, make(chan struct{}, 1)}
	a.waits = append(a.waits, w)
	a.mu.Unlock()

	// Called without a.mu, since the answers that make the condition true need
	// it. Whoever sends on woken has checked cond under a.mu.
	a.only.Read(w.woken)
	select {
	case <-w.woken: // Read has handled the answer, so no timer is needed
		return true
	default: // len(w.woken) would not order what cond has written before what the caller reads
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-w.woken:
		return true
	case <-ctx.Done():
	case <-timer.C:
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waits = slices.DeleteFunc(a.waits, func(o waiter) bool { return o.woken == w.woken })
	return len(w.woken) > 0 // at the last moment
}

// wakeWaits wakes the goroutines whose conditions are true. Called with a.mu
// held. stepUnlock calls it after each event, and Transmit when it gives up a
// leave: otherwise a release that waits for that leave would wait for its full
// time limit.
func (a *attempt) wakeWaits() {
	a.waits = slices.DeleteFunc(a.waits, func(w waiter) bool {
		if w.cond() {
			w.woken <- struct{}{}
			return true
		}
		return false
	})
}
