package sim

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/process"
)

// This file owns how a process ends, stands still and begins again: Close of a
// Quorum, crashes, pauses; and WithMaxHold.

// close is what Close of a Quorum does: all claims leave, operations on the
// record end, and callers get an error. The process is gone when the leaves are
// answered, or after a node timeout. A new one takes its place later.
func (p *proc) close() {
	w := p.w
	if !p.alive || p.paused || p.closed {
		return
	}
	w.log("process %s closes", p.name)
	p.closed = true
	p.carryOut(p.client.Close(p.now()))
	for _, i := range append([]*registerOp(nil), p.registerOps...) {
		i.end(false)
	}
	for _, t := range p.parts {
		if t.value != nil {
			for _, c := range t.value.callers {
				c.auto = false
			}
		}
		if a := t.att; a != nil && !a.Phase().Final() {
			t.release()
		}
		t.vanish()
	}
	p.later(w.nodeTimeout, func() {
		if w.clean {
			p.leftNothing()
		}
		p.crash()
		w.at(w.around(w.think), p.restart)
	})
}

// leftNothing: no node keeps a claim of the process.
func (p *proc) leftNothing() {
	w := p.w
	for _, n := range w.nodes {
		for i := range w.of {
			for _, c := range n.data(i).Claims(n.millis(w.now)) {
				if c.Owner == p.name {
					w.fail("closed", "process %s has closed, and node %d keeps a claim of it", p.name, n.idx)
				}
			}
		}
	}
}

// limit has the renewal of a hold stop after a while, counted from now.
func (a *attempt) limit() {
	p := a.part.proc
	d := p.w.maxHold
	if d == 0 || a.mute {
		return
	}
	a.ends = p.w.now.add(d)
	set := a.ends
	p.later(d, func() {
		if a.ends == set && !a.Phase().Final() && !p.w.unbound {
			a.mute = true
			p.w.tape.note("mute %s", a.part.label())
			a.before()
			a.StopRenewal()
			a.after()
		}
	})
}

// closing: processes close while they hold, wait and begin, and nothing fails.
// What they leave is passed on promptly, and no node keeps anything of them.
var closing = generator{
	name: "closing",
	set: func(r *rand.Rand, s *setting) {
		severalNames(r, s)
		s.clean, s.bootstrap, s.record = true, true, false
		s.tail, s.window = min(s.tail, s.nodeTimeout/8), 0
		s.delay = min(s.delay, s.nodeTimeout/16)
		s.jitter = min(s.jitter, s.nodeTimeout/16)
		if !s.counting && r.IntN(2) == 0 {
			s.callers, s.linger = 2, s.ttl/20
		}
		s.length = 4 * s.ttl
	},
	plan: func(w *world) {
		w.lateMessages = false
		w.wallsApart()
		w.allLoop()
		for range 2 + w.rng.IntN(6) {
			p := w.procs[w.rng.IntN(len(w.procs))]
			w.at(time.Duration(w.rng.Int64N(int64(w.length))), p.close)
		}
	},
}

// maxHolds: a holder keeps what it holds, and its renewal ends after a while.
// So does that of a claim that is handed over inside of a process, counted from
// the hand-over. Every waiter is served though no holder lets go by itself.
var maxHolds = generator{
	name: "maxHolds",
	set: func(r *rand.Rand, s *setting) {
		severalNames(r, s)
		s.procs, s.parts, s.locks, s.record = 2, 1, 1, false
		s.maxHold = s.ttl / time.Duration(1+r.IntN(4))
		if s.counting {
			s.capacity, s.weights, s.counting = 1, []uint64{1}, false
		}
		s.callers = [...]int{0, 0, 3}[r.IntN(3)]
		s.hold = s.ttl / 2
		s.cancelEvery, s.tryEvery = 0, 0
		s.length = 4 * s.ttl
	},
	plan: func(w *world) {
		w.allLoop()
		for range w.rng.IntN(4) {
			l := w.procs[w.rng.IntN(len(w.procs))].links[w.rng.IntN(len(w.nodes))]
			w.at(time.Duration(w.rng.Int64N(int64(w.length))), l.snap)
		}
		// One participant never lets go by itself.
		if t := w.procs[0].parts[0]; t.value == nil {
			w.then(w.delay, func() { t.keeps = true })
		}
	},
}

// passes: a claim that is handed over is bound from then on.
func (a *attempt) passes(s process.Standing) process.Standing {
	if s.Usable {
		a.limit()
	}
	return s
}

// crash ends the process: nothing is left, and no message is sent.
func (p *proc) crash() {
	p.w.log("process %s crashes", p.name)
	p.w.tape.note("kill %s", p.label)
	defer p.w.tape.within()()
	p.alive, p.paused, p.asleep, p.inbox = false, false, false, nil
	for _, part := range p.parts {
		part.vanish()
	}
	for _, l := range p.links {
		l.snap()
		l.leaves, l.backlog = nil, process.Backlog[*message]{}
	}
	p.registerOps = nil
	p.epoch++ // what is still to happen in its old life does not
}

// restart is a new process in its place, which knows nothing.
func (p *proc) restart() {
	if p.alive {
		return
	}
	p.w.log("process %s is started", p.name)
	p.w.tape.note("start %s", p.label)
	defer p.w.tape.within()()
	p.alive, p.closed = true, false
	p.waking, p.excused = false, 0
	p.adjust()
	if p.begin(); p.members != nil {
		p.join()
	}
	p.begins()
	for _, l := range p.links {
		l.connect()
	}
	for _, part := range p.parts {
		if part.value != nil && part.value.callers[0].auto {
			part.value.loop()
		}
		part.idleFor(p.w.around(p.w.think))
	}
	if p.w.record {
		p.reads()
	}
	for _, x := range p.w.exchangers {
		if x.p == p {
			x.begin()
		}
	}
}

func (p *proc) pause() {
	if p.alive && !p.paused {
		p.w.log("process %s stops", p.name)
		p.w.tape.note("pause %s", p.label)
		p.paused = true
	}
}

// resume: what has come in is handled now. Whether timers or messages come
// first is the operating system's choice.
func (p *proc) resume() {
	if !p.paused {
		return
	}
	p.w.log("process %s goes on", p.name)
	if p.w.wire == nil {
		p.timersFirst = p.w.rng.IntN(2) == 0
	}
	p.w.tape.note("resume %s%s", p.label, map[bool]string{true: " timers"}[p.timersFirst])
	p.paused = false
	if p.asleep {
		end := p.w.tape.within()
		p.wake()
		end()
	}
	inbox := p.inbox
	p.inbox = nil
	for _, timers := range []bool{p.timersFirst, !p.timersFirst} {
		for _, e := range inbox {
			if (e.kind == evTimer) == timers {
				p.take(e)
			}
		}
	}
	defer p.w.tape.within()()
	for _, l := range p.links {
		l.connect()
	}
}
