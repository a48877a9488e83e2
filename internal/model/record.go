package model

// The register that goes with a name: a Paxos acceptor whose ballots are the
// tickets of claims.
//
// Invariant: once a run has begun here (open), no earlier run puts anything
// here. Two majorities share a node, so a later run finds what an earlier one
// has recorded on a majority. A node that loses its data loses promises, too.
// So it does not count as evidence that nothing was recorded until it is caught
// up.

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// visit is the handling of one request for the record. It changes the name n in
// place.
type visit struct {
	node *Node
	n    *Name
	now  int64
	outs []Out
}

// record handles the four operations of a record. It leaves the queue as it
// is: a claim whose lease has ended counts as gone whether it has been dropped
// or not.
func (v *visit) record(t protocol.Terms, owner string, r protocol.Request) protocol.Answer {
	a := protocol.Answer{Status: protocol.OK, Incarnation: v.node.incarnation}
	switch {
	case r.Op == protocol.OpRead:
		v.watch(t, owner)
	case max(r.Stored.Ticket, promiseOf(r)) > v.node.top(v.now) && !v.node.off(Top):
		a.Status = protocol.Ahead
	case r.Op == protocol.OpOpen:
		a.Status = v.open(*r.Stored)
	case r.Op == protocol.OpPut:
		a.Status = v.put(*r.Stored)
	case r.Op == protocol.OpRepair:
		a.Status = v.repair(*r.Stored, *r.Promise)
	}
	a.Record = v.entry()
	return a
}

// promiseOf is the ticket of the promise that a repair brings.
func promiseOf(r protocol.Request) protocol.Ticket {
	if r.Op != protocol.OpRepair {
		return 0
	}
	return r.Promise.Ticket
}

// open is phase 1 of a run: the node promises to obey no earlier run. The run's
// claim must have the vote here, as only a claim that may hold the name may
// write.
func (v *visit) open(s protocol.Stored) protocol.Status {
	switch {
	case v.superseded(s.Version) || v.storedVersion().Run(s.Version) > 0:
		return protocol.StatusSuperseded
	case v.began(s.Version): // again
	case !v.n.votesFor(v.now, s.Version) && !v.node.off(Present):
		return protocol.Missing
	default:
		if v.n.promise == (protocol.Version{}) || !v.node.off(Promise) {
			v.promised(s)
		}
		v.keepRegister()
	}
	return protocol.OK
}

// put is phase 2: the run records. A run that has not opened here may put only
// while its claim has the vote here, and never after a later run has opened
// here.
func (v *visit) put(s protocol.Stored) protocol.Status {
	switch {
	case v.storedVersion().Run(s.Version) == 0 && v.storedVersion().Seq >= s.Seq: // again, or late
	case v.superseded(s.Version) || v.storedVersion().Compare(s.Version) > 0:
		return protocol.StatusSuperseded
	case !v.began(s.Version) && !v.n.votesFor(v.now, s.Version) && !v.node.off(Present):
		return protocol.Missing
	default:
		v.promised(s)
		v.store(s)
	}
	return protocol.OK
}

// repair brings the record and the promise that other nodes have. It only ever
// raises either. A promise that comes this way lets no run record (promiseIn is
// 0).
func (v *visit) repair(s protocol.Stored, promise protocol.Version) protocol.Status {
	if s.Run(promise) > 0 {
		promise = protocol.Version{Ticket: s.Ticket, ID: s.ID}
	}
	if v.superseded(promise) {
		return protocol.StatusSuperseded
	}
	if v.newestPromise().Run(promise) < 0 {
		v.n.promise, v.n.promiseIn = promise, 0
		v.keepRegister()
	}
	if v.storedVersion().Compare(s.Version) < 0 {
		v.store(s)
	}
	return protocol.OK
}

// storedVersion is the version that is recorded. One of the far future is as
// good as none: whatever comes takes its place. One that is hidden and less far
// ahead keeps lower runs out: it is true if the clock was set back.
func (v *visit) storedVersion() protocol.Version {
	if v.node.forged(v.now, v.n.stored.Ticket) {
		return protocol.Version{}
	}
	return v.n.stored.Version
}

// newestPromise is the promise of the newest run that has begun here, with the
// same exception.
func (v *visit) newestPromise() protocol.Version {
	if v.node.forged(v.now, v.n.promise.Ticket) {
		return protocol.Version{}
	}
	return v.n.promise
}

// superseded reports whether a run later than that of o has begun here.
func (v *visit) superseded(o protocol.Version) bool {
	return v.newestPromise().Run(o) > 0
}

// began reports whether the run of o is the newest that has begun here, in this
// incarnation. A promise of an earlier incarnation keeps lower runs out, but
// the node may have lost the promise of a newer one.
func (v *visit) began(o protocol.Version) bool {
	return v.n.promise.Run(o) == 0 && (v.n.promiseIn == v.node.incarnation || v.node.off(PromiseIncarnation))
}

// promised makes the run of s the newest that has begun here. The incarnation
// is kept with it: after a loss of memory the promise still keeps lower runs
// out, and is no leave to record (PromiseIncarnation).
func (v *visit) promised(s protocol.Stored) {
	v.n.promise, v.n.promiseIn = protocol.Version{Ticket: s.Ticket, ID: s.ID}, v.node.incarnation
}

// store records s, and pushes the change to the watchers. The push comes after
// the record: a client that gets it reads at once.
func (v *visit) store(s protocol.Stored) {
	v.n.stored = s
	v.n.stored.Keep = 0
	v.n.storedEnd = forGood
	if s.Keep > 0 {
		v.n.storedEnd = v.now + s.Keep.Milliseconds()
	}
	v.keepRegister()
	v.n.changed = v.now
	v.notifyWatchers()
}

// notifyWatchers pushes to watchers that the record has changed since they read
// it, in the order of their reads, a portion at most. The push ends the watch:
// a client that gets it reads, and thereby watches again. That read pushes to
// the next watchers. Without the portion one put under a name that thousands
// watch would block the node for all other names.
func (v *visit) notifyWatchers() {
	pushed := 0
	for _, w := range v.n.watchers {
		if w.Seen > v.n.changed || pushed == v.node.portion() {
			break
		}
		if pushed++; w.Expiry > v.now {
			p := protocol.Push{ID: w.ID, Incarnation: v.node.incarnation, Ticket: v.n.stored.Ticket, Changed: true}
			v.outs = append(v.outs, Out{w.Owner, p})
		}
	}
	v.n.watchers = slices.Delete(v.n.watchers, 0, pushed)
	if pushed < v.node.portion() || len(v.n.watchers) == 0 {
		v.n.changed = 0
	}
}

// keepRegister keeps record and promise for as long as the one lasts, and for
// an hour at least, in which no put of an earlier run can still be under way.
func (v *visit) keepRegister() {
	v.n.promiseEnd = v.now + protocol.Remember.Milliseconds()
	if v.n.stored.Version != (protocol.Version{}) {
		v.n.promiseEnd = max(v.n.promiseEnd, v.n.storedEnd)
	}
}

// watch notes, for one ttl at least and two at most, that a client wants to
// hear of changes; a ttl of 0 that it does no longer. An id that is zero wants
// to hear nothing.
func (v *visit) watch(t protocol.Terms, owner string) {
	if t.ID == (protocol.ID{}) {
		return
	}
	v.n.watchers = slices.DeleteFunc(v.n.watchers, func(w Watcher) bool { return w.ID == t.ID })
	if t.TTL == 0 {
		return
	}
	lasts := int64(1) << bits.Len64(uint64(t.TTL.Milliseconds()))
	v.n.watchers = append(v.n.watchers, Watcher{t.ID, owner, v.now, v.now + lasts})
	slices.SortFunc(v.n.watchers, func(a, b Watcher) int {
		return cmp.Or(cmp.Compare(a.Seen, b.Seen), cmp.Compare(a.Expiry, b.Expiry),
			cmp.Compare(a.ID.String(), b.ID.String()))
	})
	if v.n.changed > 0 {
		v.notifyWatchers()
		return
	}
	// A client that died leaves its watch. Each read removes two that have
	// ended, so they do not pile up.
	old := min(2, len(v.n.watchers))
	kept := slices.DeleteFunc(v.n.watchers[:old:old], func(w Watcher) bool { return w.Expiry <= v.now })
	v.n.watchers = append(kept, v.n.watchers[old:]...)
}

// entry is the record as the node returns it.
func (v *visit) entry() *protocol.Entry {
	if v.node.hidden(v.now, max(v.n.stored.Ticket, v.n.promise.Ticket)) {
		// The node cannot attest that nothing else was recorded: the hidden
		// version may have replaced it.
		e := &protocol.Entry{Forged: true}
		if !v.node.hidden(v.now, v.n.stored.Ticket) {
			e.Stored = v.n.stored
		}
		if !v.node.hidden(v.now, v.n.promise.Ticket) {
			e.Promise = v.n.promise
		}
		return v.left(e)
	}
	return v.left(&protocol.Entry{Stored: v.n.stored, CaughtUp: v.node.caughtUp, Promise: v.n.promise})
}

// left adds to an entry how much longer its record and its claim last.
func (v *visit) left(e *protocol.Entry) *protocol.Entry {
	if e.Version == (protocol.Version{}) {
		return e
	}
	if v.n.storedEnd != forGood && v.n.stored.Version != (protocol.Version{}) {
		e.Keep = time.Duration(v.n.storedEnd-v.now) * time.Millisecond
	}
	if i := v.n.find(v.n.stored.ID); i >= 0 && v.n.votesFor(v.now, v.n.stored.Version) {
		e.Left = time.Duration(v.n.claims[i].Expiry-v.now) * time.Millisecond
	}
	return e
}

// Forge puts a record and a promise here as only a write past the scripts can.
func (n *register) Forge(s protocol.Stored, promise protocol.Version) {
	n.stored, n.storedEnd = s, forGood
	n.promise, n.promiseIn, n.promiseEnd = promise, 0, forGood
}

// Forged reports whether the node keeps a version that it does not return at
// now.
func (n *Name) Forged(now int64) bool {
	newest := max(n.stored.Ticket, n.promise.Ticket)
	return newest > n.node.top(now) || forged(newest, now)
}

// HasRegister reports whether the node would list the name: it has recorded or
// promised something.
func (n *register) HasRegister() bool {
	return n.stored.Version != (protocol.Version{}) || n.promise != (protocol.Version{})
}

// Recorded returns what the node has recorded, for checks.
func (n *register) Recorded() protocol.Stored { return n.stored }

// RecordedUntil is Recorded, and when that ends; 0: it does not.
func (n *register) RecordedUntil() (s protocol.Stored, end int64) {
	if n.storedEnd != forGood {
		end = n.storedEnd
	}
	return n.stored, end
}

// farFuture is how far a record's version must be ahead of a node's clock to be
// taken for a forgery, or for the work of nodes whose clocks were wrong. No T0
// that is served is that far ahead: skews are at most 24 h.
const farFuture = 48 * time.Hour

// forged reports whether no ticket can be meant to be t when a node's clock
// shows millis.
func forged(t protocol.Ticket, millis int64) bool {
	return int64(t) > millis*1000+farFuture.Microseconds()
}

// top is the highest ticket that the fence may be raised to now: see
// [turn.claim].
func (n *Node) top(now int64) protocol.Ticket {
	return protocol.Ticket(max(0, now*1000+n.window().Half()))
}

// forged reports whether no client's clock can have given the ticket.
func (n *Node) forged(now int64, t protocol.Ticket) bool {
	return forged(t, now) && !n.off(FarFuture)
}

// hidden: the node would not store the version, so it is forged, or the clock
// was set back since.
func (n *Node) hidden(now int64, t protocol.Ticket) bool {
	return n.forged(now, t) || t > n.top(now) && !forged(t, now) && !n.off(NearFuture)
}
