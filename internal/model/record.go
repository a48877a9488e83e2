package model

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// Watcher is somebody who wants to hear of changes of the record.
type Watcher struct {
	ID     protocol.ID
	Owner  string
	Expiry int64
}

// record handles the four operations of a record. It leaves the queue as it
// is: a claim whose lease has ended counts as gone whether it has been dropped
// or not.
func (v *visit) record(t protocol.Terms, owner string, r protocol.Request) protocol.Answer {
	a := protocol.Answer{Status: protocol.OK, Incarnation: v.inc}
	switch r.Op {
	case protocol.OpRead:
		v.watch(t, owner)
	case protocol.OpOpen:
		switch {
		case v.overtaken(r.Stored.Version) || v.stored.Run(r.Stored.Version) > 0:
			a.Status = protocol.Overtaken
		case v.began(r.Stored.Version): // again
		case !v.votesFor(r.Stored.Version) && !v.off(Present):
			a.Status = protocol.Missing
		default:
			if v.promise == (protocol.Version{}) || !v.off(Promise) {
				v.promised(*r.Stored)
			}
			v.remember()
		}
	case protocol.OpPut:
		switch {
		case v.stored.Run(r.Stored.Version) == 0 && v.stored.Seq >= r.Stored.Seq: // again, or late
		case v.overtaken(r.Stored.Version) || v.stored.Compare(r.Stored.Version) > 0:
			a.Status = protocol.Overtaken
		case !v.began(r.Stored.Version) && !v.votesFor(r.Stored.Version) && !v.off(Present):
			a.Status = protocol.Missing
		default:
			v.promised(*r.Stored)
			v.store(*r.Stored)
		}
	case protocol.OpRepair:
		promise := *r.Promise
		if r.Stored.Run(promise) > 0 {
			promise = protocol.Version{Ticket: r.Stored.Ticket, ID: r.Stored.ID}
		}
		if v.overtaken(promise) {
			a.Status = protocol.Overtaken
			break
		}
		if v.promise.Run(promise) < 0 {
			v.promise, v.promiseIn = promise, 0
			v.remember()
		}
		if v.stored.Compare(r.Stored.Version) < 0 {
			v.store(*r.Stored)
		}
	}
	a.Record = v.entry()
	return a
}

// overtaken: a run later than that of o has begun here.
func (v *visit) overtaken(o protocol.Version) bool {
	return v.promise.Run(o) > 0
}

// began: the run of o is the newest that has begun here, and the node has
// forgotten nothing since. A promise of an earlier incarnation keeps lower runs
// out, but newer ones may have been forgotten.
func (v *visit) began(o protocol.Version) bool {
	return v.promise.Run(o) == 0 && (v.promiseIn == v.inc || v.off(PromiseAnew))
}

func (v *visit) promised(s protocol.Stored) {
	v.promise, v.promiseIn = protocol.Version{Ticket: s.Ticket, ID: s.ID}, v.inc
}

// votesFor: the claim of o is here, at its ticket, and has the vote.
func (v *visit) votesFor(o protocol.Version) bool {
	i := v.find(o.ID)
	return i >= 0 && v.claims[i].Voted && v.claims[i].Ticket == o.Ticket && v.claims[i].Expiry > v.now
}

func (v *visit) store(s protocol.Stored) {
	v.stored = s
	v.stored.Keep = 0
	v.storedEnd = forGood
	if s.Keep > 0 {
		v.storedEnd = v.now + s.Keep.Milliseconds()
	}
	v.remember()
	v.watchers = slices.DeleteFunc(v.watchers, func(w Watcher) bool { return w.Expiry <= v.now })
	for _, w := range v.watchers {
		v.outs = append(v.outs, Out{w.Owner, protocol.Push{ID: w.ID, Incarnation: v.inc, Ticket: s.Ticket, Changed: true}})
	}
}

// remember keeps record and promise for as long as the one lasts, and for an
// hour at least, in which no put of an earlier run can still be under way.
func (v *visit) remember() {
	v.promiseEnd = v.now + protocol.Remember.Milliseconds()
	if v.stored.Version != (protocol.Version{}) {
		v.promiseEnd = max(v.promiseEnd, v.storedEnd)
	}
}

// watch notes, for one ttl, that somebody wants to hear of changes; a ttl of 0
// that he does no longer. An id that is zero wants to hear nothing.
func (v *visit) watch(t protocol.Terms, owner string) {
	if t.ID == (protocol.ID{}) {
		return
	}
	v.watchers = slices.DeleteFunc(v.watchers, func(w Watcher) bool { return w.ID == t.ID })
	if t.TTL > 0 {
		v.watchers = append(v.watchers, Watcher{t.ID, owner, v.now + t.TTL.Milliseconds()})
	}
	slices.SortFunc(v.watchers, func(a, b Watcher) int {
		return cmp.Or(cmp.Compare(a.Expiry, b.Expiry), cmp.Compare(a.ID.String(), b.ID.String()))
	})
}

// entry is what the node tells of its record.
func (v *visit) entry() *protocol.Entry {
	e := &protocol.Entry{Stored: v.stored, Whole: v.whole, Promise: v.promise}
	if v.storedEnd != forGood && v.stored.Version != (protocol.Version{}) {
		e.Keep = time.Duration(v.storedEnd-v.now) * time.Millisecond
	}
	if i := v.find(v.stored.ID); i >= 0 && v.votesFor(v.stored.Version) {
		e.Left = time.Duration(v.claims[i].Expiry-v.now) * time.Millisecond
	}
	return e
}

// Complete says that the node has been told what it had forgotten, in the
// incarnation inc.
func (n *Node) Complete(inc protocol.Incarnation) {
	if n.marked && n.inc == inc {
		n.whole = true
	}
}

// Remembers reports whether the node would list the name: it has recorded or promised something.
func (n *Node) Remembers() bool {
	return n.stored.Version != (protocol.Version{}) || n.promise != (protocol.Version{})
}

// Recorded returns what the node has recorded, for checks.
func (n *Node) Recorded() protocol.Stored { return n.stored }

// Whole reports whether the node is a witness of what is not recorded.
func (n *Node) Whole() bool { return n.marked && n.whole }
