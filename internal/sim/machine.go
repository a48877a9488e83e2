package sim

import (
	"time"

	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
)

// This file owns what a process runs on: its clock, and whether the process
// runs, stands still, sleeps or has ended.

// machine is that of one process.
type machine struct {
	clock
	p    *proc
	wall time.Duration // how far its T0s are off
	off  time.Duration // by how much they are wrong, beyond the skew

	asleep  bool   // its clock stands still
	slept   moment // since when
	waking  bool   // it did, and no node has answered since
	woke    protocol.Time
	excused moment // until then it cannot be held to what it does not know yet

	alive, paused bool
	closed        bool   // Close has been called
	epoch         uint32 // counts its lives
	inbox         []event
	timersFirst   bool // in traces: what resume handles first
}

// now is what the process's clock shows.
func (m *machine) now() protocol.Time { return m.local(m.p.w.now) }

// adjust has T0s be off by another time; two processes' never differ by more
// than the skew.
func (m *machine) adjust() {
	m.wall = m.off
	if s := int64(m.p.w.skew); s > 0 && m.p.w.offsets {
		m.wall += time.Duration(m.p.w.rng.Int64N(s+1) - s/2)
	}
}

// skewed is what the process takes for the nodes' clocks, where these show t.
// Nothing may rest on that but being served. A connection shows the clock of
// its node as it begins. Here connections may be there from the start, so until
// the process has heard of a node it takes what the first one would show if it
// had not jumped.
func (m *machine) skewed(t protocol.Ticket) protocol.Ticket {
	if n := m.p.w.nodes[0]; t < epoch/2 {
		t = protocol.Ticket((n.read(m.p.w.now) - int64(n.wrong)) / 1000)
	}
	return protocol.Ticket(int64(t) + m.wall.Microseconds())
}

// later does something to the process; it waits while the process is stopped.
func (m *machine) later(d time.Duration, fn func()) {
	m.p.w.queue.push(event{at: m.p.w.now.add(d), kind: evProc, proc: m.p, gen: m.epoch, fn: fn})
}

// close is what Close of a Quorum does: all claims leave, operations on the
// record end, and callers get an error. The process is gone when the leaves are
// answered, or after a node timeout. A new one takes its place later.
func (m *machine) close() {
	p, w := m.p, m.p.w
	if !m.alive || m.paused || m.closed {
		return
	}
	w.log("process %s closes", p.name)
	m.closed = true
	p.carryOut(p.client.Close(m.now()))
	p.eachOp(func(i *registerOp) { i.end(false) })
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
	m.later(w.nodeTimeout, func() {
		if w.clean {
			m.leftNothing()
		}
		m.crash()
		w.at(w.around(w.think), m.restart)
	})
}

// leftNothing: no node keeps a claim of the process.
func (m *machine) leftNothing() {
	p, w := m.p, m.p.w
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

// crash ends the process: nothing is left, and no message is sent.
func (m *machine) crash() {
	p := m.p
	p.w.log("process %s crashes", p.name)
	p.w.tape.note("kill %s", p.label)
	defer p.w.tape.within()()
	m.alive, m.paused, m.asleep, m.inbox = false, false, false, nil
	for _, part := range p.parts {
		part.vanish()
	}
	for _, l := range p.links {
		l.snap()
		l.leaves, l.backlog = nil, process.Backlog[*message]{}
	}
	p.ops = nil
	m.epoch++ // what is still to happen in its old life does not
}

// restart is a new process in its place, which knows nothing.
func (m *machine) restart() {
	p := m.p
	if m.alive {
		return
	}
	p.w.log("process %s is started", p.name)
	p.w.tape.note("start %s", p.label)
	defer p.w.tape.within()()
	m.alive, m.closed = true, false
	m.waking, m.excused = false, 0
	m.adjust()
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

func (m *machine) pause() {
	p := m.p
	if m.alive && !m.paused {
		p.w.log("process %s stops", p.name)
		p.w.tape.note("pause %s", p.label)
		m.paused = true
	}
}

// resume: what has come in is handled now. Whether timers or messages come
// first is the operating system's choice.
func (m *machine) resume() {
	p := m.p
	if !m.paused {
		return
	}
	p.w.log("process %s goes on", p.name)
	if p.w.wire == nil {
		m.timersFirst = p.w.rng.IntN(2) == 0
	}
	p.w.tape.note("resume %s%s", p.label, map[bool]string{true: " timers"}[m.timersFirst])
	m.paused = false
	if m.asleep {
		end := p.w.tape.within()
		m.wake()
		end()
	}
	inbox := m.inbox
	m.inbox = nil
	for _, timers := range []bool{m.timersFirst, !m.timersFirst} {
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

// sleep stops the process and its clock, as a machine does that sleeps. Its
// connections may be gone when it wakes. Until it has heard of a node then, it
// cannot know. Whatever has the process go on before ends the sleep.
func (m *machine) sleep(d time.Duration, breaks bool) {
	p := m.p
	if !m.alive || m.paused {
		return
	}
	w := p.w
	w.log("process %s falls asleep, and its clock stands still", p.name)
	w.stats.Sleeps++
	w.tape.note("sleep %s", p.label)
	m.asleep, m.slept = true, w.now
	end := w.tape.within() // pause without a line on the tape
	m.pause()
	end()
	if w.wire != nil && w.wire.manual {
		return
	}
	since := w.now
	w.at(d, func() {
		if !m.asleep || m.slept != since {
			return
		}
		m.wake()
		for _, l := range p.links {
			if breaks {
				l.snap()
			}
		}
		m.resume()
	})
}

// wake has the clock go on with what it showed when it stopped. Invariant: the
// clock of a process that is not asleep never goes back.
func (m *machine) wake() {
	p := m.p
	p.w.tape.note("wake %s", p.label)
	m.clock.offset -= int64(float64(p.w.now-m.slept) * m.clock.rate)
	m.asleep, m.waking, m.woke = false, true, m.local(p.w.now)
}

// mayBeWrong: the process has slept, and cannot know that its leases have
// ended.
func (m *machine) mayBeWrong() bool { return m.asleep || m.waking || m.p.w.now < m.excused }
