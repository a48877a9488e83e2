package sim

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/process"
)

// The aims in this file walk towards a local queue that lets in the wrong
// caller, or none. Callers of each process share a value.

// localCalm: callers of two or three processes want the name all the time.
// Nothing fails.
var localCalm = generator{
	name: "localCalm",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 2+r.IntN(2))
		s.clean = true
		s.delay = time.Duration(50+r.IntN(500)) * time.Microsecond
		s.jitter, s.tail, s.latePush = s.delay, 0, 0
		s.callers, s.capacity, s.weights = 2+r.IntN(3), 1, []uint64{1}
		if r.IntN(3) > 0 {
			s.reading, s.capacity, s.weights = 1+r.IntN(3), 1<<30, []uint64{1, 1 << 30}
		}
		s.linger = [...]time.Duration{0, s.ttl / 20, 2 * s.ttl}[r.IntN(3)]
		s.hold = s.ttl / time.Duration([...]int{2000, 200, 50}[r.IntN(3)])
		s.think = s.hold * time.Duration([...]int{1, 4, 40}[r.IntN(3)]) / 2
		s.tryEvery, s.cancelEvery = [...]int{0, 6}[r.IntN(2)], [...]int{0, 3}[r.IntN(2)]
		s.length = min(s.ttl, 400*s.hold)
	},
	plan: (*world).allLoop,
}

// localOnly is what the aims start from in which one process is to be watched
// closely: messages take the same time, and so does each turn, nearly.
func localOnly(r *rand.Rand, s *setting, callers int) {
	plain(r, s, 2)
	s.clean = true
	s.delay = time.Duration(50+r.IntN(200)) * time.Microsecond
	s.jitter, s.tail, s.latePush, s.late = 0, 0, 0, 0
	s.callers, s.linger, s.capacity, s.weights = callers, 0, 1, []uint64{1}
}

func readWrite(s *setting) { s.reading, s.capacity, s.weights = 3, 1<<30, []uint64{1, 1 << 30} }

// localBusy: the callers of one process hand the claim over all the time, and a
// caller of another process waits. Turns are short, so that there may be many,
// or long.
var localBusy = generator{
	name: "localBusy",
	set: func(r *rand.Rand, s *setting) {
		localOnly(r, s, 4)
		s.ttl = 8 * time.Second
		s.guard = 2*s.ttl + 2*s.skew
		s.hold = s.ttl / time.Duration([...]int{2000, 20}[r.IntN(2)])
		s.think = s.hold / 10
		s.length = 3 * s.ttl / 2
	},
	plan: func(w *world) {
		w.procs[0].parts[0].loop()
		other := w.procs[1].parts[0].value.callers[0]
		w.then(w.ttl/100, func() { other.lock(process.Write, false) })
	},
}

// localReaders: more readers come before the others have left. A writer waits
// in their process, or in another one.
var localReaders = generator{
	name: "localReaders",
	set: func(r *rand.Rand, s *setting) {
		localOnly(r, s, 5)
		readWrite(s)
		s.hold, s.think = s.ttl/400, s.ttl/8000
		s.length = 5 * s.ttl
	},
	plan: func(w *world) {
		of := w.procs[w.rng.IntN(2)].parts[0].value
		for _, c := range w.procs[0].parts[0].value.callers[1:] {
			c.auto, c.only = true, process.Read
			c.rest()
		}
		w.then(w.around(w.hold), func() { of.callers[0].lock(process.Write, false) })
	},
}

// localTokens: two callers hand the claim over until its tokens are used up.
// Then a process whose clock is behind gets the next ticket.
var localTokens = generator{
	name: "localTokens",
	set: func(r *rand.Rand, s *setting) {
		localOnly(r, s, 3)
		s.residues, s.offsets = 2, true
		s.skew = s.ttl / 2
		s.guard = 2*s.ttl + 2*s.skew
		s.hold, s.think = 20*time.Microsecond, 2*time.Microsecond
		s.length = 200 * time.Millisecond
	},
	plan: func(w *world) {
		p, o := w.procs[0], w.procs[1]
		p.wall, o.wall = w.skew/2, -w.skew/2
		v := p.parts[0].value
		v.loop()
		most := process.HandOvers + w.rng.IntN(100)
		w.once(func() bool { return v.lease != nil && v.lease.n > most || v.turns > 2*most }, w.length, 0, func() {
			o.parts[0].value.callers[0].lock(process.Write, false)
		})
	},
}

// localMistake: while a writer becomes a reader, another goroutine unlocks by
// mistake. The next writer of the process waits, and a reader in another
// process.
var localMistake = generator{
	name: "localMistake",
	set: func(r *rand.Rand, s *setting) {
		localOnly(r, s, 2)
		readWrite(s)
		s.length = 2 * s.ttl
	},
	plan: func(w *world) {
		v := w.procs[0].parts[0].value
		c, next, reader := v.callers[0], v.callers[1], w.procs[1].parts[0].value.callers[0]
		c.keeps = true
		w.then(w.delay, func() { c.lock(process.Write, false) })
		w.once(func() bool { return c.doing == holding }, w.ttl, w.delay, func() {
			next.lock(process.Write, false)
			reader.lock(process.Read, false)
		})
		w.then(w.around(w.slowest()), func() {
			c.downgrade()
			v.unlock(process.Write)
		})
	},
}

// localStopped: a process stands still just when a caller has found its claim
// admitted, for longer than its lease.
var localStopped = generator{
	name: "localStopped",
	set: func(r *rand.Rand, s *setting) {
		localOnly(r, s, 2)
		s.clean = false
		s.length = 6 * s.ttl
	},
	plan: func(w *world) {
		p := w.procs[0]
		v := p.parts[0].value
		v.callers[0].lock(process.Write, false)
		w.once(func() bool { return v.getter != nil && v.pending == nil }, w.ttl, 0, p.pause)
		w.then(w.ttl+w.around(w.ttl), p.resume)
		w.then(w.around(w.ttl/10), func() { v.callers[1].lock(process.Write, false) })
	},
}

// localRenewed: an Unlock finds the claim past its deadline, just before an
// answer that came in time is handled. Another process wants the name.
var localRenewed = generator{
	name: "localRenewed",
	set: func(r *rand.Rand, s *setting) {
		localOnly(r, s, 2)
		s.clean = false
		s.length = 6 * s.ttl
	},
	plan: func(w *world) {
		v := w.procs[0].parts[0].value
		c, other := v.callers[0], w.procs[1].parts[0].value.callers[0]
		c.keeps = true
		w.then(w.delay, func() { c.lock(process.Write, false) })
		w.once(func() bool { return c.doing == holding }, w.ttl, w.around(w.ttl/2), func() {
			v.stall = w.ttl
			c.unlock()
			v.stall = 0
		})
		w.then(w.around(w.delay), func() { other.lock(process.Write, false) })
	},
}

// localStorm: the same, and anything fails at any time.
var localStorm = generator{
	name: "localStorm",
	set: func(r *rand.Rand, s *setting) {
		s.record, s.counting, s.window = false, false, 0
		s.callers, s.capacity, s.weights = 2+r.IntN(3), 1, []uint64{1}
		if r.IntN(3) > 0 {
			s.reading, s.capacity, s.weights = 1+r.IntN(3), 1<<30, []uint64{1, 1 << 30}
		}
		s.linger = [...]time.Duration{0, s.ttl / 20, s.ttl}[r.IntN(3)]
		s.hold, s.think = max(s.hold, s.ttl/50), max(s.think, s.ttl/50)
	},
	plan: storm.plan,
}
