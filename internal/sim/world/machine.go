package world

import (
	"time"

	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/course"
)

// What a process runs on: its clock, and whether the process is running,
// paused, asleep or dead.

// machine is that of one process.
type machine struct {
	Clock course.Clock
	p     *Proc
	Wall  time.Duration // how far its T0s are off
	Off   time.Duration // by how much they are wrong, beyond the skew

	asleep  bool          // its clock stands still
	slept   course.Moment // since when
	waking  bool          // it did, and no node has answered since
	woke    protocol.Time
	excused course.Moment // until then it cannot be held to what it does not know yet

	Alive, Paused bool
	closed        bool   // Close has been called
	Epoch         uint32 // counts its lives
	inbox         []Event
	TimersFirst   bool // in traces: what resume handles first
}

// Now is what the process's clock shows.
func (m *machine) Now() protocol.Time { return m.Clock.Local(m.p.World.Now) }

// Adjust has T0s be off by another time; two processes' never differ by more
// than the skew.
func (m *machine) Adjust() {
	m.Wall = m.Off
	if s := int64(m.p.World.Skew); s > 0 && m.p.World.Offsets {
		m.Wall += time.Duration(m.p.World.RNG.Int64N(s+1) - s/2)
	}
}

// skewed is what the process takes for the nodes' clocks, where these show t.
// Nothing may rest on that but being served. A connection shows the clock of
// its node as it begins. Here connections may be there from the start, so until
// the process has heard of a node it takes what the first one would show if it
// had not jumped.
func (m *machine) skewed(t protocol.Ticket) protocol.Ticket {
	if n := m.p.World.Nodes[0]; t < Epoch/2 {
		t = protocol.Ticket((n.Clock.Read(m.p.World.Now) - int64(n.Clock.Wrong)) / 1000)
	}
	return protocol.Ticket(int64(t) + m.Wall.Microseconds())
}

// Later does something to the process; it waits while the process is stopped.
func (m *machine) Later(d time.Duration, fn func()) {
	m.p.World.Queue.Push(m.p.World.Now.Add(d),
		Event{At: m.p.World.Now.Add(d), Kind: evProc, Proc: m.p, Gen: m.Epoch, fn: fn})
}

// Close is what Close of a Quorum does: all claims leave, operations on the
// record end, and callers get an error. The process is gone when the leaves are
// answered, or after a node timeout. A new one takes its place later.
func (m *machine) Close() {
	p, w := m.p, m.p.World
	if !m.Alive || m.Paused || m.closed {
		return
	}
	w.Log("process %s closes", p.Name)
	m.closed = true
	p.CarryOut(p.Client.Close(m.Now()))
	p.RegisterOps.each(func(i *RegisterOp) { i.Finish(false) })
	for _, t := range p.Parts {
		if t.Value != nil {
			for _, c := range t.Value.Callers {
				c.Auto = false
			}
		}
		if a := t.Att; a != nil && !a.Claim.State.Phase().Final() {
			t.Release()
		}
		t.vanish()
	}
	m.Later(w.NodeTimeout, func() {
		if w.Clean {
			m.leftNothing()
		}
		m.Crash()
		w.At(w.Around(w.Think), m.Restart)
	})
}

// leftNothing: no node keeps a claim of the process.
func (m *machine) leftNothing() {
	p, w := m.p, m.p.World
	for _, n := range w.Nodes {
		for i := range max(1, w.Locks) {
			for _, c := range n.Data(i).Claims(n.Millis()) {
				if c.Owner == p.Name {
					w.Fail("closed", "process %s has closed, and node %d keeps a claim of it", p.Name, n.Index)
				}
			}
		}
	}
}

// Crash ends the process: nothing is left, and no message is sent.
func (m *machine) Crash() {
	p := m.p
	p.World.Log("process %s crashes", p.Name)
	p.World.Tape.Note("kill %s", p.Label)
	defer p.World.Tape.Within()()
	m.Alive, m.Paused, m.asleep, m.inbox = false, false, false, nil
	for _, part := range p.Parts {
		part.vanish()
	}
	for _, l := range p.Links {
		l.Snap()
		l.leaves, l.backlog = nil, process.Backlog[*Message]{}
	}
	p.RegisterOps.Ops = nil
	p.tasks.end()
	m.Epoch++ // what is still to happen in its old life does not
}

// Restart is a new process in its place, which knows nothing.
func (m *machine) Restart() {
	p := m.p
	if m.Alive {
		return
	}
	p.World.Log("process %s is started", p.Name)
	p.World.Tape.Note("start %s", p.Label)
	defer p.World.Tape.Within()()
	m.Alive, m.closed = true, false
	m.waking, m.excused = false, 0
	m.Adjust()
	if p.begin(); p.Follower.Members != nil {
		p.Follower.join()
	}
	p.StartClockChecks()
	for _, l := range p.Links {
		l.Connect()
	}
	for _, part := range p.Parts {
		if part.Value != nil && part.Value.Callers[0].Auto {
			part.Value.Loop()
		}
		part.idleFor(p.World.Around(p.World.Think))
	}
	if p.World.Record {
		p.RegisterOps.Reads()
	}
	for _, x := range p.World.Exchangers {
		if x.P == p {
			x.begin()
		}
	}
}

func (m *machine) Pause() {
	p := m.p
	if m.Alive && !m.Paused {
		p.World.Log("process %s stops", p.Name)
		p.World.Tape.Note("pause %s", p.Label)
		m.Paused = true
	}
}

// Resume: what has come in is handled now. Whether timers or messages come
// first is the operating system's choice.
func (m *machine) Resume() {
	p := m.p
	if !m.Paused {
		return
	}
	p.World.Log("process %s goes on", p.Name)
	if p.World.Wire == nil {
		m.TimersFirst = p.World.RNG.IntN(2) == 0
	}
	p.World.Tape.Note("resume %s%s", p.Label, map[bool]string{true: " timers"}[m.TimersFirst])
	m.Paused = false
	if m.asleep {
		end := p.World.Tape.Within()
		m.Wake()
		end()
	}
	inbox := m.inbox
	m.inbox = nil
	for _, timers := range []bool{m.TimersFirst, !m.TimersFirst} {
		for _, e := range inbox {
			if (e.Kind == EvTimer) == timers {
				p.take(e)
			}
		}
	}
	defer p.World.Tape.Within()()
	for _, l := range p.Links {
		l.Connect()
	}
}

// Sleep stops the process and its clock, as a machine does that sleeps. Its
// connections may be gone when it wakes. Until it has heard of a node then, it
// cannot know. Whatever has the process go on before ends the sleep.
func (m *machine) Sleep(d time.Duration, breaks bool) {
	p := m.p
	if !m.Alive || m.Paused {
		return
	}
	w := p.World
	w.Log("process %s falls asleep, and its clock stands still", p.Name)
	w.Stats.Sleeps++
	w.Tape.Note("sleep %s", p.Label)
	m.asleep, m.slept = true, w.Now
	end := w.Tape.Within() // pause without a line on the tape
	m.Pause()
	end()
	if w.Manual {
		return
	}
	since := w.Now
	w.At(d, func() {
		if !m.asleep || m.slept != since {
			return
		}
		m.Wake()
		for _, l := range p.Links {
			if breaks {
				l.Snap()
			}
		}
		m.Resume()
	})
}

// Wake has the clock go on with what it showed when it stopped.
// Invariant: the clock of a process that is not asleep never goes back.
func (m *machine) Wake() {
	p := m.p
	p.World.Tape.Note("wake %s", p.Label)
	m.Clock.Offset -= int64(float64(p.World.Now-m.slept) * m.Clock.Rate)
	m.asleep, m.waking, m.woke = false, true, m.Now()
}

// MayBeWrong: the process has slept, and cannot know that its leases have
// ended.
func (m *machine) MayBeWrong() bool { return m.asleep || m.waking || m.p.World.Now < m.excused }
