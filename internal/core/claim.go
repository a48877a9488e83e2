package core

// What a claim is in the runtime: what a primitive asks for, the attempt that
// drives the claim, and what all claims of a Quorum share.
// Invariant: all claims of one value share one process.Name, because it has the
// clock that their tickets come from: each ticket must be higher than those of
// all claims that this process has seen.

import (
	"cmp"
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
	Name       string
	Kind       string // the kind of primitive, for the tracer and for onlookers
	Weight     uint64
	Capacity   uint64
	Counting   bool // a semaphore: the lower claims must be counted too, votes alone are not enough
	Notify     bool // push to the holder when a claim begins to wait
	ShortHold  bool // usually released at once: see lease.Fanout
	BoundLater bool // WithMaxHold and WithoutRenewal apply only after Hold.Bound is called
	Set        *setup.Settings
	shared     *process.Name // what all claims at the name share
	// The name belongs to the register that decides which configuration comes
	// next.
	decidesSuccessor bool
	// Selects a second lock, queue and record with the same name; empty selects
	// the ordinary ones.
	side string
	// The user's note as it follows the channel in a claim's owner text: "" or
	// a space and the note.
	note string
}

// WithNote returns a copy whose claims show the note, after the one that s has.
func (s *Spec) WithNote(note string) *Spec {
	c := *s
	c.note = cmp.Or(s.note, " ") + note
	return &c
}

// WithWeight returns a copy that asks for another weight.
func (s *Spec) WithWeight(weight uint64) *Spec {
	c := *s
	c.Weight = weight
	return &c
}

// quiet reports whether this process has recently met no other claim at the
// name.
func (s *Spec) quiet() bool { return !s.shared.Contended() }

// registry lists what a Quorum has in progress: attempts and watches by id, and
// operations on records. It is safe for concurrent use: mu guards the map, and
// is held for a single access only. The lock of an entry is taken before mu.
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

// find returns the entry, or the zero value if it has ended. Nodes may still
// push to an attempt or a watch that has ended.
func (r *registry[K, V]) find(k K) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[k]
}

// list returns a copy, so that the caller can take the locks of the entries
// without holding mu. An attempt that begins in the meantime may be missing.
// That is harmless: a new attempt asks the nodes anyway, and its Pending.Wait
// cancels it if the Quorum closes.
func (r *registry[K, V]) list() []V {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.all))
}

// MaxStarting is how many attempts of a process may be waiting for their first
// answers. With nodes that take 100 ms to answer this allows 10,000 locks a
// second, and starting that many attempts takes a few milliseconds. Without a
// limit, 30,000 callers that lock at the same moment would all run before the
// reader goroutines are scheduled again. Meanwhile holds would not be renewed,
// and connections would be given up as dead.
const MaxStarting = 1024

// startLimiter lets MaxStarting attempts start at a time. Further callers wait
// in the order in which they came.
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

// claims has what a Quorum has in progress at its nodes, and what all of that
// shares: claims, operations on records, and watches.
type claims struct {
	*peers.Peers
	ticks, deadlines *wake.Scheduler[attempt]

	attempts  registry[protocol.ID, *attempt]
	records   registry[*registerCall, *registerCall]
	watches   registry[protocol.ID, watcher]
	starts    startLimiter
	pauses    pauses
	waiting   atomic.Int64 // how many claims are waiting for their turn
	callbacks callbacks
}

// callbacks are the Ended callbacks and calls of the logger that are running.
// Close waits for them: the leaves of holds that end are sent after their
// callback.
type callbacks struct{ running atomic.Int32 }

// start runs f, which calls the application, in a goroutine that Close waits
// for, if end has not seen that there is none.
func (c *callbacks) start(f func()) {
	c.running.Add(1)
	go func() {
		f()
		c.running.Add(-1)
	}()
}

// command appends a request.
// Invariant: the configuration and the settings in a request are read at the
// same moment, because the node relies on their belonging together.
func (q *claims) command(dst []byte, s *Spec, t *protocol.Terms, r protocol.Request) []byte {
	n := q.Members.Named.Load()
	k := script.NewKeysBeside(s.Set.Prefix, s.Name, s.side).At(n.Home)
	return script.AppendCommand(dst, k, t, q.Channel+s.note, n.Guard, n.Retention, r)
}

// NewSpec completes the Spec of a primitive. It fails if the name is unusable.
// It does not ask a node.
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

// attempt drives one process.Attempt: it passes events and the time to the
// claim, and carries out what the claim decides. It is safe for concurrent use.
// mu guards all fields from claim on, except the atomic alarms.
// Invariant: after each event of the claim stepUnlock runs before mu is
// released.
type attempt struct {
	q     *claims
	spec  *Spec
	owner Owner // nil: no callbacks
	// The node, if the set has only one and that node is not busy; then the
	// waiting goroutine reads its answers itself, see [transport.Transport].
	// Otherwise nil.
	only *peers.Node

	packed atomic.Int64 // a packedState, for readers without mu

	mu    sync.Mutex
	claim process.Attempt
	since protocol.Time // when the caller got the hold
	// Receives once, when the attempt is admitted or ends without admission;
	// nil after the caller has received.
	done         chan struct{}
	maxHoldTimer *time.Timer   // WithMaxHold
	errs         map[int]error // each node's newest objection to the claim
	waits        []waiter      // goroutines that wait for a condition
	counted      bool          // the attempt still counts against startLimiter
	warned       bool          // the application was warned that the lease is about to end
	bare         bool          // the hold rested on a bare majority at its last beat
	stats        *traceStats   // for the tracer; nil: there is none

	alarms wake.Alarms[attempt]
}

// ending tells stepUnlock how to end the event.
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

	// Warn calls f with the holder's lease. It does nothing if no caller holds
	// the claim, or if the holder does not have its lease yet. It runs on its
	// own goroutine.
	Warn(h Hold, f func(lease any))
}

// setNodeError records a node's newest objection to the claim; nil removes it.
// Called with a.mu held.
func (a *attempt) setNodeError(node int, err error) {
	switch {
	case err == nil:
		delete(a.errs, node)
	case a.errs == nil:
		a.errs = map[int]error{node: err}
	default:
		a.errs[node] = err
	}
}

// touch prefetches an attempt. Touching a whole batch before handling its first
// attempt lets the cache misses overlap. The result means nothing; it keeps the
// compiler from removing the reads.
func (a *attempt) touch() bool {
	return a.spec.quiet() && a.packed.Load() > int64(a.alarms.At(wake.Ticks))
}

// traceStats is what an attempt records for the tracer; a.mu guards it.
type traceStats struct {
	asked     [peers.MaxNodes]uint8 // how many requests each node was sent before the claim was admitted
	contended bool
	queue     int // the highest rank in a queue that a node has shown
}

// record counts a request, or takes in the answer ans if that is not nil.
// Called with a.mu held.
func (s *traceStats) record(phase lease.Phase, node int, ans *protocol.Answer) {
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
	woken chan struct{} // buffered, so that waking never blocks
}

// until waits for cond to become true, for at most d or until ctx ends, and
// reports whether it did.
func (a *attempt) until(ctx context.Context, d time.Duration, cond func() bool) bool {
	a.mu.Lock()
	if cond() {
		a.mu.Unlock()
		return true
	}
	w := waiter{cond, make(chan struct{}, 1)}
	a.waits = append(a.waits, w)
	a.mu.Unlock()

	// Read needs a.mu for the answers that make the condition true, so a.mu is
	// not held here. Whoever sends on woken has checked cond under a.mu.
	a.only.Read(w.woken)
	select {
	case <-w.woken: // Read has handled the answer, so no timer is needed
		return true
	default: // a receive, since len(w.woken) would not order cond's writes before the caller's reads
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
// held: by stepUnlock after each event, and by Transmit when it gives up a
// leave, so that a release waiting for that leave does not wait for its whole
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
