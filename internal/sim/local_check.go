package sim

import (
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/process"
)

// localCheck holds the callers of local queues to what the packages mutex and
// rwmutex promise.
type localCheck struct {
	lock          int    // of the values with this name
	written, read turnOf // with the highest token
}

type turnOf struct {
	token  uint64
	holder string
}

// acts: the caller may act as a holder.
func (c *caller) acts() bool {
	return (c.doing == holding || c.doing == changing) && !c.lease.ended && c.lease.a.valid() && !c.v.t.proc.mayBeWrong()
}

// entered: the token of a writer is above those of all turns before, and that
// of a reader is above those of all writers but one that has become a reader
// itself.
func (l *localCheck) entered(w *world, c *caller) {
	if !c.acts() {
		return
	}
	token, highest := c.lease.token(), l.written
	if c.mode == process.Write && l.read.token > highest.token {
		highest = l.read
	}
	shared := c.mode == process.Read && token == highest.token && c.v.queue.Held(process.Read) == c.lease.a
	if token <= highest.token && !shared {
		w.fail("token", "%s has the token %d after %s with %d", c.name, token, highest.holder, highest.token)
	}
	if t := (turnOf{token, c.name}); c.mode == process.Write {
		l.written = t
	} else if token > l.read.token {
		l.read = t
	}
}

// keptOut: a reader that is next waits no longer beside readers, once no writer
// waits anywhere.
func (v *value) keptOut() {
	var next *caller
	for _, c := range v.callers {
		if c.doing == waiting && c.turn == nil && (next == nil || c.line < next.line) {
			next = c
		}
	}
	w, a := v.t.proc.w, v.queue.Held(process.Read)
	if !w.clean || a == nil || next == nil || next.mode != process.Read || !a.Standing().Usable || a.Standing().Waiters {
		v.kept = 0
		return
	}
	if v.kept == 0 {
		v.kept = w.now
	} else if w.now > v.kept.add(3*w.delay) {
		w.fail("late", "%s waits beside readers, and no writer does", next.name)
	}
}

// always is what must be so at every moment.
func (l *localCheck) always(w *world) {
	var sum uint64
	holder := ""
	for t := range w.participants() {
		if t.lock != l.lock {
			continue
		}
		t.value.keptOut()
		for _, c := range t.value.callers {
			if c.lease != nil && c.lease.a.phase == lease.Lost && !c.lease.ended {
				w.fail("unaware", "%s holds what is lost and has not learned so", c.name)
			}
			if c.acts() {
				sum += c.weight()
				holder += " " + c.name
			}
			if w.clean && c.doing != holding && c.doing != changing && c.doing != resting && w.now > c.since.add(w.longestWait(w.callers*len(w.procs)*w.parts)) {
				w.fail("late", "%s has waited for longer than the callers before it may hold", c.name)
			}
		}
		if a := t.att; w.clean && a != nil && a.phase == lease.Waiting && w.now > a.settled.add(w.longestWait(len(w.procs)*w.parts-1)) {
			w.fail("late", "%v has waited for longer than other processes may keep the name", a)
		}
	}
	if sum > w.capacity {
		w.fail("capacity", "%s hold beside each other", holder)
	}
}

func (c *caller) weight() uint64 {
	if c.mode == process.Write {
		return c.v.t.proc.w.capacity
	}
	return 1
}
