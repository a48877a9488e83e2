package core

// This file owns what a claim is in the runtime: what a primitive asks for, the
// attempt that drives it, what its holder sees, and what all claims of a Quorum
// share: where pushes and the events of a node find what is under way.
// Invariant: all claims of one value share one process.Name, because the clock
// of its tickets is there: a claim of this process must be above the claims
// that it has seen.

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/peers"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/wake"
)

// Spec is what a primitive asks for; one Spec serves many attempts. It is safe
// for concurrent use: NewSpec sets its fields.
type Spec struct {
	Name       string
	Kind       string // of the primitive, for the tracer and for onlookers
	Weight     uint64
	Capacity   uint64
	Counting   bool // a semaphore: votes alone do not suffice
	Notify     bool // push to the holder when a claim begins to wait
	ShortHold  bool // often given back at once: see lease.Fanout
	BoundLater bool // it is renewed without a bound until Hold.Bound
	Set        *setup.Settings
	shared     *process.Name // what all claims at the name share
	succession bool          // it is the register that decides which configuration follows
	side       string        // of the name: a lock, queue and record of its own, beside those of the name; empty: the name itself
}

// WithWeight returns a copy that asks for another weight.
func (s *Spec) WithWeight(weight uint64) *Spec {
	c := *s
	c.Weight = weight
	return &c
}

// quiet reports whether no other claim has been met at the name of late.
func (s *Spec) quiet() bool { return !s.shared.Contended() }

// registry is what is under way of a Quorum: attempts and watches by id, and
// operations on records. It is safe for concurrent use: mu guards all, and is
// held for one access to the map only. Lock order: the lock of what is listed,
// then mu.
// Invariant: an attempt is listed before its first request is queued. A node
// may push the vote before that goroutine goes on.
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

// drop reports whether it was listed.
func (r *registry[K, V]) drop(k K) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, had := r.all[k]
	delete(r.all, k)
	return had
}

// find returns the zero value for what has ended: nodes may push for that, too.
func (r *registry[K, V]) find(k K) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[k]
}

// list returns a copy, so the caller takes the locks of what is listed without
// mu. An attempt that begins meanwhile may be missing: it asks the nodes by
// itself, and when the Quorum closes, its Pending.Wait cancels it.
func (r *registry[K, V]) list() []V {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.all))
}

// Places is how many attempts of a process may be on the way to their first
// answers. It keeps nodes at 100 ms busy with 10,000 locks a second, and to
// begin so many takes a few milliseconds. Of 30,000 callers that lock at one
// moment each has the processor before the readers of the answers have it
// again: holds are not renewed, and connections are given up.
const Places = 1024

// intake has the places that are taken. The callers of further attempts wait,
// and the channel serves them in order.
// Invariant: a place that is taken is left once, when its attempt is not
// Underway any more.
type intake chan struct{}

func (i intake) take() bool {
	select {
	case i <- struct{}{}:
		return true
	default:
		return false
	}
}

func (i intake) leave() { <-i }

// claims is what the claims of a Quorum share.
type claims struct {
	*peers.Peers
	ticks, deadlines *wake.Scheduler[attempt]

	attempts registry[protocol.ID, *attempt]
	intake   intake
	pauses   pauses
	waiting  atomic.Int64 // how many claims wait for their turn
	telling  atomic.Int32 // Ended callbacks under way, whose leaves are not sent yet
}

// command appends a request. Invariant: the configuration that it names and the
// settings that it has are read at one moment. A node goes by these.
func (q *claims) command(dst []byte, s *Spec, t *protocol.Terms, r protocol.Request) []byte {
	n := q.Members.Named.Load()
	k := script.NewKeysBeside(s.Set.Prefix, s.Name, s.side).At(n.Home)
	return script.AppendCommand(dst, k, t, q.Channel, n.Guard, n.Retention, r)
}

// NewSpec fails for a name that cannot be used, before any node is asked.
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
// claim, and does what the claim says. It is safe for concurrent use. mu guards
// all fields from claim on, except the atomic alarms.
// Invariant: after each event of the claim stepUnlock runs before mu is free.
type attempt struct {
	q     *claims
	spec  *Spec
	owner Owner       // nil: no callbacks
	only  *peers.Node // of a set of one, while little else is under way: see [transport.Transport]

	standing atomic.Int64 // a standing, for readers without mu

	mu     sync.Mutex
	claim  process.Attempt
	since  protocol.Time // when the caller got the hold
	done   chan struct{} // receives at admission, or at the end of an attempt that was not admitted; nil when that has been seen
	ends   *time.Timer   // WithMaxHold
	errs   map[int]error // by node: the newest thing that it said against the claim
	waits  []waiter      // goroutines that wait for a condition
	place  bool          // it has one of the intake
	warned bool          // the application knows that little of the lease is left
	bare   bool          // the hold rested on a bare majority at its last beat
	seen   *seen         // for the tracer; nil: there is none

	alarms wake.Alarms[attempt]
}

// ending is what stepUnlock is to know beside the event.
type ending uint8

const (
	ordinary  ending = iota
	unflushed        // what is to be sent is for a Flush, see claims.tick
	closing          // the Quorum closes
)

// Owner gets the events of its hold. No lock is held during a callback. Its
// methods run on the goroutine of the event, and must not wait for a node.
type Owner interface {
	Ended()   // the hold has ended by itself, see Hold.Cause; called at most once
	Waiting() // a claim has begun to wait behind it
	Calm()    // none waits behind it any more

	// Warn calls f with the lease of those that hold it now, to warn them; not
	// if none does, or has its lease yet. It runs on a goroutine of its own.
	Warn(h Hold, f func(lease any))
}

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

// touch prefetches an attempt. Touching a whole batch before handling the first
// lets the cache misses overlap. The result has no meaning: it keeps the
// compiler from removing the reads.
func (a *attempt) touch() bool {
	return a.spec.quiet() && a.standing.Load() > int64(a.alarms.At(wake.Ticks))
}

// seen is what an attempt notes for the tracer; a.mu guards it.
type seen struct {
	asked     [peers.MaxNodes]uint8 // requests by node, until the claim is admitted
	contended bool
	queue     int // the highest rank
}

// note takes a request, or the answer to one. Called with a.mu held.
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

// waiter is a goroutine that waits until a condition of an attempt holds. A
// change that can make one hold calls wakeWaits before a.mu is free.
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

	// Without a.mu: the answers that make the condition hold need it. What
	// wakes this goroutine has called cond under a.mu.
	a.only.Read(w.woken)
	if len(w.woken) > 0 { // it has read the answer itself, and needs no timer
		return true
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

// wakeWaits wakes the goroutines whose conditions hold. Called with a.mu held.
// stepUnlock calls it after each event, and Transmit when it gives a leave up: a
// release that waits for that leave would otherwise wait for its whole bound.
func (a *attempt) wakeWaits() {
	a.waits = slices.DeleteFunc(a.waits, func(w waiter) bool {
		if w.cond() {
			w.woken <- struct{}{}
			return true
		}
		return false
	})
}

// MaxPasses is how many tokens one claim has.
const MaxPasses = process.HandOvers

// Hold is an attempt that was admitted. The zero value is none.
type Hold struct{ a *attempt }

// none is no hold.
var none Hold

// Token returns the fencing token of the n-th hand-over inside this process:
// ticket * 2^10 + n. Tokens of one claim rise with n, and those of a later
// claim are above all of them, because its ticket is higher. It reads the
// ticket without mu: a ticket does not change once the claim is admitted.
func (h Hold) Token(n int) uint64 { return uint64(h.a.claim.State.Ticket())*MaxPasses + uint64(n) }

// Valid reports whether the claim is held now.
func (h Hold) Valid() bool { return h.Standing().Valid }

// standing is how a claim stands, in one word that readers load without mu:
// until when it is held, 0 if it is not, and two bits. They take the place of
// the last nanoseconds.
type standing int64

const (
	waited    standing = 1 << iota // another claim waits behind it
	unrenewed                      // it is renewed no more

	standingBits = waited | unrenewed

	// The standings of a hold that an operator has ended, or Close.
	evicted = waited
	shut    = waited | unrenewed
)

func (s standing) until() protocol.Time { return protocol.Time(s &^ standingBits) }

// Cause returns why a hold has ended by itself that is not valid any more:
// ErrLost, ErrEvicted or ErrClosed. Its owner may not have been called yet.
func (h Hold) Cause() error {
	switch standing(h.a.standing.Load()) {
	case evicted:
		return fault.ErrEvicted
	case shut:
		return fault.ErrClosed
	}
	return fault.ErrLost
}

// ValidUntil returns the deadline of rule 5 as it stands.
func (h Hold) ValidUntil() time.Time {
	h.a.mu.Lock()
	defer h.a.mu.Unlock()
	return h.a.q.Clock.When(h.a.claim.Deadline())
}

// Standing returns how the claim stands now. It takes no lock, since a
// hand-over inside the process asks each time. standing holds deadline and
// waiters in one word, so the two belong together.
func (h Hold) Standing() process.Standing {
	s, now, fixed := standing(h.a.standing.Load()), h.a.q.Now(), h.a.spec.Set.NoRenewal
	valid, over := now < s.until(), s.until() == 0
	return process.Standing{At: now, Valid: valid, Over: over, Usable: valid && !fixed && s&unrenewed == 0, Fixed: fixed, Waiters: s&waited != 0 && !over}
}
