package trial

import (
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/sim/world"
)

// acts: the caller may act as a holder.
func acts(c *world.Caller) bool {
	return (c.Doing == world.Holding || c.Doing == world.Changing) && !c.Lease.Ended && c.Lease.Att.InForce() &&
		!c.Value.Part.Proc.MayBeWrong()
}

// entered: the token of a writer is above those of all turns before, and that
// of a reader is above those of all writers but one that has become a reader
// itself.
func (l *localCheck) entered(w *Schedule, c *world.Caller) {
	if !acts(c) {
		return
	}
	token, highest := c.Lease.Token(), l.written
	if c.Mode == process.Write && l.read.token > highest.token {
		highest = l.read
	}
	shared := c.Mode == process.Read && token == highest.token && c.Value.Queue.Held(process.Read) == c.Lease.Att
	if token <= highest.token && !shared {
		w.Fail("token", "%s has the token %d after %s with %d", c.Name, token, highest.holder, highest.token)
	}
	if t := (turnOf{token, c.Name}); c.Mode == process.Write {
		l.written = t
	} else if token > l.read.token {
		l.read = t
	}
}

// keptOut: a reader that is next waits no longer alongside readers, once no
// writer waits anywhere.
func (l *localCheck) keptOut(w *Schedule, v *world.Value) {
	var next *world.Caller
	for _, c := range v.Callers {
		if c.Doing == world.Waiting && c.Turn == nil && (next == nil || c.Line < next.Line) {
			next = c
		}
	}
	a := v.Queue.Held(process.Read)
	if !w.Clean || a == nil || next == nil || next.Mode != process.Read || !a.HoldState().Usable ||
		a.HoldState().Waiters {
		v.KeptOut = 0
		return
	}
	if v.KeptOut == 0 {
		v.KeptOut = w.Now
	} else if w.Now > v.KeptOut.Add(3*w.Delay) {
		w.Fail("late", "%s waits beside readers, and no writer does", next.Name)
	}
}

// always is what must be so at every moment.
func (l *localCheck) always(w *Schedule) {
	var sum uint64
	holder := ""
	for t := range w.Participants() {
		if t.Lock != l.lock {
			continue
		}
		l.keptOut(w, t.Value)
		for _, c := range t.Value.Callers {
			if c.Lease != nil && c.Lease.Att.Seen == lease.Lost && !c.Lease.Ended {
				w.Fail("unaware", "%s holds what is lost and has not learned so", c.Name)
			}
			if acts(c) {
				sum += l.weight(w, c)
				holder += " " + c.Name
			}
			if w.Clean && c.Doing != world.Holding && c.Doing != world.Changing && c.Doing != world.Resting &&
				w.Now > c.Since.Add(w.longestWait(w.Callers*len(w.Procs)*w.Parts)) {
				w.Fail("late", "%s has waited for longer than the callers before it may hold", c.Name)
			}
		}
		if a := t.Att; w.Clean && a != nil && a.Seen == lease.Waiting &&
			w.Now > a.Settled.Add(w.longestWait(len(w.Procs)*w.Parts-1)) {
			w.Fail("late", "%v has waited for longer than other processes may keep the name", a)
		}
	}
	if sum > w.Capacity {
		w.Fail("capacity", "%s hold beside each other", holder)
	}
}

func (l *localCheck) weight(w *Schedule, c *world.Caller) uint64 {
	if c.Mode == process.Write {
		return w.Capacity
	}
	return 1
}
