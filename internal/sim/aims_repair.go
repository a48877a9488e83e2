package sim

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
)

// Aims at the repair of nodes that lost their data. In most of them no claim
// and no record matters: the nodes have further names, and one of them loses
// these.

// named is what these aims start from.
func named(r *rand.Rand, s *setting, procs, names int) {
	plain(r, s, procs)
	s.capacity, s.weights, s.names = 1, []uint64{1}, names
	s.eager = true
	s.delay, s.jitter, s.tail = min(s.delay, time.Millisecond), min(s.jitter, time.Millisecond), 0
	s.length = 4 * s.guard
}

// repairBeforeGuardEnds: a node takes a put and forgets it. While that still
// counts for the client that put, another node takes the put, too: it is
// recorded. That one cannot be asked when the guard time of the first is over.
var repairBeforeGuardEnds = generator{
	name: "repairBeforeGuardEnds",
	set:  stretched.set,
	plan: func(w *world) {
		ns := w.shuffled()
		a, b, c := ns[0], ns[1], ns[2]
		p, other := w.procs[0], w.procs[1]
		e := p.parts[0]
		e.puts = true // without a run, which would have the other nodes list the name
		w.then(w.delay, func() { e.acquire(false) })
		w.once(holds(e), w.ttl, 0, func() {
			p.cut(b, c)
			other.cut(a)
			v := protocol.Version{Ticket: e.att.Ticket(), ID: e.att.ID, Seq: 1}
			p.startRegisterOp(e.att, lease.RegisterOp{Op: protocol.OpPut, Stored: protocol.Stored{Version: v}}, func(*registerOp, bool) { e.release() })
			e.puts = false
		})
		w.once(func() bool { return a.model.Recorded().Ticket > 0 }, w.ttl, 4*w.delay, func() {
			w.wipe(a, false)
			other.to(a).heal(true)
		})
		w.then(2*w.nodeTimeout, func() { p.mend(b) })
		w.once(func() bool { return w.ledger.best.Ticket > 0 }, w.ttl, 0, b.pause)
		w.then(w.guard+w.ttl, func() {
			b.resume()
			p.to(c).heal(true)
		})
	},
}

// losesDataAgain: a node lost its data and is brought all names but one, whose
// run is under way. Then it loses its data again, and its connections stay.
var losesDataAgain = generator{
	name: "losesDataAgain",
	set:  func(r *rand.Rand, s *setting) { named(r, s, 1, 20); s.hold = s.ttl / 20 },
	plan: func(w *world) {
		a := w.shuffled()[0]
		p := w.procs[0]
		w.held["name 003"] = true
		w.then(w.nodeTimeout, func() { w.wipe(a, false) })
		w.once(func() bool { return len(a.names) == 19 }, w.guard+w.ttl, w.nodeTimeout, func() {
			a.forget()
			p.parts[0].acquire(true) // the node notices
			clear(w.held)
		})
		w.then(2*w.guard, func() { w.caughtUp(a) })
	},
}

// listerLosesData: three of five nodes have the names. One of them loses its
// data, and another one that is asked to repair it loses its data after it was
// found caught up, and before it lists names. The third cannot be asked.
var listerLosesData = generator{
	name: "listerLosesData",
	set:  func(r *rand.Rand, s *setting) { named(r, s, 1, 3); s.nodes, s.think = 5, s.ttl/20 },
	plan: func(w *world) {
		ns := w.shuffled()
		a, b, c := ns[0], ns[1], ns[2]
		clear(ns[3].names)
		clear(ns[4].names)
		p := w.procs[0]
		w.then(w.nodeTimeout, func() {
			p.cut(c)
			w.wipe(a, false)
		})
		looks := 0
		w.once(func() bool { return a.turnOf != nil }, w.guard+w.ttl, 0, func() { looks = b.looks })
		w.once(func() bool { return b.looks > looks }, w.nodeTimeout, 0, func() {
			b.forget()
			p.parts[0].acquire(true) // the node notices
		})
		w.then(2*w.ttl, func() { p.mend(c) })
		w.then(2*w.guard, func() { w.caughtUp(a) })
	},
}

// undecidedName: a node lost its data, and the run of one name is under way for
// a while. All other names are brought meanwhile.
var undecidedName = generator{
	name: "undecidedName",
	set:  func(r *rand.Rand, s *setting) { named(r, s, 1+r.IntN(3), 80) },
	plan: func(w *world) {
		a := w.shuffled()[0]
		w.held["name 003"] = true
		w.then(w.nodeTimeout, func() { w.wipe(a, w.rng.IntN(2) == 0) })
		w.then(w.guard+w.ttl, func() {
			if len(a.names) < 79 {
				w.fail("stuck", "node %d has %d names: it waits for one that is not decided", a.idx, len(a.names))
			}
			clear(w.held)
		})
		w.then(w.ttl, func() { w.caughtUp(a) })
	},
}

// decidedName: a node lost its data, and no run is under way that would decide
// a name.
var decidedName = generator{
	name: "decidedName",
	set:  func(r *rand.Rand, s *setting) { named(r, s, 1+r.IntN(3), 5) },
	plan: func(w *world) {
		a := w.shuffled()[0]
		w.undecided["name 003"] = true
		w.then(w.nodeTimeout, func() { w.wipe(a, false) })
		w.then(w.guard+w.ttl, func() { w.caughtUp(a) })
	},
}

// repairWaits: a node lost its data. When its guard time is over another node
// does not answer for a while. No connection ends.
var repairWaits = generator{
	name: "repairWaits",
	set:  func(r *rand.Rand, s *setting) { named(r, s, 1, 5) },
	plan: func(w *world) {
		ns := w.shuffled()
		a, b := ns[0], ns[1]
		w.then(w.nodeTimeout, func() { w.wipe(a, false) })
		w.then(w.guard-w.nodeTimeout, b.pause)
		w.then(w.ttl, b.resume)
		w.then(w.ttl, func() { w.caughtUp(a) })
	},
}

// repairTogether: several processes repair a node, and nothing fails meanwhile.
var repairTogether = generator{
	name: "repairTogether",
	set: func(r *rand.Rand, s *setting) {
		named(r, s, 4, 80)
		s.turns = true
	},
	plan: func(w *world) {
		a := w.shuffled()[0]
		w.then(w.nodeTimeout, func() { w.wipe(a, false) })
		w.then(w.guard+w.ttl, func() { w.caughtUp(a) })
	},
}

// missedResize: a Resize has reached two nodes of three. Claims hear of that,
// and the third node is brought the number.
var missedResize = generator{
	name: "missedResize",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 2)
		s.capacity, s.weights, s.counting = 3, []uint64{1}, true
		s.shortHold = false
		s.hold = s.ttl / 2
		s.length = 8 * s.ttl
	},
	plan: func(w *world) {
		ns := w.shuffled()
		w.allLoop()
		w.then(w.around(w.ttl), func() { w.permits.resize(w, 2, ns[:2]) })
		w.then(4*w.ttl, func() {
			if limit, _ := ns[2].model.Limit(); limit != 2 {
				w.fail("stuck", "node %d has not been brought the number of permits", ns[2].idx)
			}
		})
	},
}
