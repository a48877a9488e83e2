package sim

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
)

// The aims in this file walk towards nodes that have no room for all that a
// process wants sent.

// hasty: waiters that change their minds at once, each process with room for
// one request or two at each node. Nothing fails, so nothing is left behind.
var hasty = generator{
	name: "hasty",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 1+r.IntN(3))
		s.clean = true
		s.parts = 2 + r.IntN(2)
		s.window = 1 + r.IntN(2)
		s.tail = 0
		s.delay = min(s.delay, s.ttl/1000)
		s.jitter = s.delay * time.Duration(1+9*r.IntN(2))
		s.cancelEvery = 2
		s.hold, s.think = s.delay, s.delay*4
		s.length = s.ttl / 20
	},
	plan: (*world).allLoop,
}

// congested: a process holds, and so many of its participants want the same
// name that each of their requests waits for about a lease for room. The hold
// is kept. When it ends, the next one is served.
var congested = generator{
	name: "congested",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 1)
		s.parts = 12 + r.IntN(6)
		s.window = 1
		s.nodeTimeout = s.ttl / 20
		s.delay, s.tail = s.ttl/20, 0
		s.jitter = s.delay / 4
		s.hold, s.think = s.delay, s.delay
		s.length = 4 * s.ttl
	},
	plan: func(w *world) {
		p := w.procs[0]
		t := p.parts[0]
		w.then(w.delay, func() { t.acquire(false) })
		w.once(holds(t), w.ttl, 0, func() {
			for _, o := range p.parts[1:] {
				o.loop()
			}
		})
		for range 6 {
			w.then(w.ttl/2, func() { w.expectHeld(t, "its renewals go first") })
		}
		w.then(0, t.release)
	},
}

// unplugged: as hasty, and connections break.
var unplugged = generator{
	name: "unplugged",
	set: func(r *rand.Rand, s *setting) {
		hasty.set(r, s)
		s.clean, s.cancelEvery = false, 0
	},
	plan: func(w *world) {
		w.lateMessages = w.rng.IntN(2) == 0
		w.allLoop()
		for range 1 + w.rng.IntN(8) {
			w.at(time.Duration(w.rng.Int64N(int64(w.length))), func() {
				w.procs[w.rng.IntN(len(w.procs))].to(w.nodes[w.rng.IntN(len(w.nodes))]).snap()
			})
		}
	},
}

// brimful: a process holds several claims, and each node has room for one
// request. All nodes stand still twice, with a join under way. Each time the
// renewals wait, and are sent just in time. All holds are kept, because a lease
// counts from when its request is sent.
var brimful = generator{
	name: "brimful",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 1)
		s.capacity, s.weights = 1<<30, []uint64{1}
		s.parts, s.shortHold = 4+r.IntN(4), false // two of them only take the room
		s.nodeTimeout = s.ttl / 2
		s.delay, s.tail = s.ttl/1000, 0
		s.jitter = s.delay / 4
		s.length = 6 * s.ttl
	},
	plan: func(w *world) {
		parts := w.procs[0].parts
		holders := parts[2:]
		for _, t := range holders {
			w.then(w.around(w.delay), func() { t.acquire(false) })
		}
		w.then(w.ttl/20, func() { w.window = 1 })
		w.then(w.ttl*time.Duration(50+w.rng.IntN(50))/100, func() {})
		for i, still := range []time.Duration{50, 80} { // hundredths of a lease
			w.once(w.procs[0].allAnswered, w.ttl/10, 0, func() {
				parts[i].acquire(false)
				for _, n := range w.nodes {
					n.pause()
				}
			})
			w.then(w.ttl*still/100, func() {
				for _, n := range w.nodes {
					n.resume()
				}
			})
			w.then(w.ttl/20, func() {})
		}
		w.then(w.ttl/10, func() {
			parts[0].release()
			parts[1].release()
			for _, t := range holders {
				w.expectHeld(t, "its renewals were sent in time")
				t.release()
			}
		})
	},
}

// recordsWait: a process works on records and reads them, beside claims that
// wait, and each node has room for one to four requests. No more are
// unanswered, and each operation on a record is decided.
var recordsWait = generator{
	name: "recordsWait",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 1+r.IntN(2))
		s.capacity, s.weights, s.record = 1, []uint64{1}, true
		s.clean = true
		s.parts = 2 + r.IntN(4)
		s.window = 1 + r.IntN(4)
		s.delay, s.tail = min(s.delay, s.ttl/1000), 0
		s.jitter = s.delay * time.Duration(1+r.IntN(4))
		s.hold, s.think = s.ttl/20, s.ttl/20
		s.length = 2 * s.ttl
	},
	plan: func(w *world) {
		w.allLoop()
		for range 4 + w.rng.IntN(8) {
			p := w.procs[w.rng.IntN(len(w.procs))]
			w.at(time.Duration(w.rng.Int64N(int64(w.length))), func() {
				p.startNamedOp(w.ttl, nil, nil, lease.RegisterOp{Op: protocol.OpRead}, func(i *registerOp, _ bool) {
					if i.Outcome() == lease.Asking {
						w.fail("late", "%v: not decided within a ttl, though the nodes have room in time", i)
					}
				})
			})
		}
	},
}

// throng: more claims ask for permits at one moment than a node lists, and
// there is room for all of them. All are admitted.
var throng = generator{
	name: "throng",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 4)
		s.parts, s.portion = 5, 1 // a list of eight claims
		s.counting, s.weights, s.capacity = true, []uint64{1}, uint64(20+r.IntN(3))
		s.shortHold = false
		s.delay, s.tail, s.latePush = min(s.delay, s.ttl/10000), 0, 0
		s.jitter = s.delay * time.Duration(1+r.IntN(4))
		s.length = 2 * s.ttl
	},
	plan: func(w *world) {
		w.then(w.delay, func() {
			for _, p := range w.procs {
				for _, t := range p.parts {
					p.later(time.Duration(w.rng.Int64N(int64(w.delay))), func() { t.acquire(false) })
				}
			}
		})
		w.expectAll(w.ttl / 2)
	},
}

// patchy: as throng, where the claims come to the nodes in three orders. Each
// process reaches two nodes first, and the last one all of them. So the lists
// of its claims begin after other claims at each node, and one node has too
// many for a list.
var patchy = generator{
	name: "patchy",
	set: func(r *rand.Rand, s *setting) {
		throng.set(r, s)
		s.nodes, s.parts, s.residues, s.late = 3, 6, 64, 0
		s.ttl = 8 * time.Second
		s.skew = s.ttl / 2
		s.guard = 2*s.ttl + 2*s.skew
		s.capacity = uint64(14 + r.IntN(2)) // two, two, six and four claims
		s.length = 2 * s.ttl
	},
	plan: func(w *world) {
		ns := w.shuffled()
		for i, few := range []int{2, 2, 6, 4} {
			p := w.procs[i]
			p.off = time.Duration(i) * w.skew / 8
			p.adjust()
			p.parts = p.parts[:few]
			if i < 3 {
				p.to(ns[i]).cut(requests)
			}
			for _, t := range p.parts {
				w.then(w.delay/8, func() { t.acquire(false) })
			}
			w.then(4*w.delay+2*w.jitter, func() {})
		}
		for i, p := range w.procs[:3] {
			w.then(0, func() { p.mend(ns[i]) })
		}
		w.expectAll(w.ttl / 2)
	},
}

// flood: a process wants far more holds at one moment than its nodes can renew.
// It keeps those that it gets. The others wait at the process, some give up,
// and the rest gets holds as those end.
var flood = generator{
	name: "flood",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 1)
		s.capacity, s.weights, s.shortHold = 1<<30, []uint64{1}, false
		s.parts, s.window, s.places = 60, 2, 1+r.IntN(8)
		s.nodeTimeout = s.ttl / 20
		s.delay, s.tail = s.ttl/time.Duration(40+r.IntN(40)), 0
		s.jitter = s.delay / 2
		s.length = 12 * s.ttl
	},
	plan: func(w *world) {
		parts := w.procs[0].parts
		w.then(w.delay, func() {
			for _, t := range parts {
				t.acquire(false)
			}
		})
		gone := map[*participant]bool{}
		w.then(6*w.ttl, func() {
			// A claim whose joins came far apart is admitted with little left
			// of its first lease. Nothing is wrong with one that is lost so.
			if w.stats.Lost > len(parts)/20 {
				w.fail("lost", "%d holds, though renewals go first", w.stats.Lost)
			}
			for _, t := range parts[len(parts)-10:] {
				t.release()
				gone[t] = true
			}
		})
		for range 40 {
			w.then(w.ttl/8, func() {
				for _, t := range parts {
					if t.att != nil && t.att.valid() {
						gone[t] = true
						t.release()
					}
				}
			})
		}
		w.then(0, func() {
			if len(gone)+w.stats.Lost < len(parts) { // a hold that was lost was one
				w.fail("late", "%d of %d have not had a hold", len(parts)-len(gone), len(parts))
			}
		})
	},
}

// leaveRefused: a majority of the nodes is busy with another program's script
// as the holder leaves. Another client wants the lock when that has ended.
var leaveRefused = generator{
	name: "leave refused",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 2)
		s.length = 3 * s.ttl
	},
	plan: func(w *world) {
		busy := w.shuffled()[:len(w.nodes)/2+1]
		e, f := w.procs[0].parts[0], w.procs[1].parts[0]
		w.then(w.around(w.nodeTimeout), func() { e.acquire(false) })
		w.once(holds(e), w.ttl, w.around(w.nodeTimeout), func() {
			for _, n := range busy {
				n.refuses(true, true)
			}
			e.release()
		})
		w.then(w.around(w.nodeTimeout), func() {
			for _, n := range busy {
				n.refuses(false, false)
			}
			f.acquire(false)
		})
		w.then(w.ttl/2, func() {
			if !w.draining && f.att != nil && !f.att.valid() {
				w.fail("late", "%v is not served, though the lock has been released", f.att)
			}
		})
	},
}
