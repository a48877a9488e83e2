package sim

import (
	"container/list"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/process"
)

// caller is a goroutine.
type caller struct {
	v     *value
	name  string
	auto  bool         // it wants the value over and over; else a generator says when
	keeps bool         // a generator says when it unlocks
	only  process.Mode // it wants no other; 0: any
	mode  process.Mode
	try   bool
	doing doing
	turn  *turn // has come, and the caller has not run since
	lease *localTurn
	since moment // waiting: from when on
	line  int    // and its number
	place *list.Element
	tries int // how often it wanted the value
}

type doing uint8

const (
	resting doing = iota
	waiting       // for a turn in the queue
	acquiring
	holding
	changing // holds, and a Downgrade is under way
)

// turn is what a caller that waits gets: the value, or the task of getting it.
type turn struct {
	lease *localTurn // nil: the task
	place bool       // with an attempt that is queued already
}

// rest is what a caller does until it wants the value again.
func (c *caller) rest() {
	w := c.v.t.proc.w
	c.doing, c.lease = resting, nil
	if !c.auto || w.draining {
		return
	}
	c.v.t.proc.later(w.around(w.think), func() {
		if w.draining || c.doing != resting {
			return
		}
		mode := process.Write
		if w.reading > 0 && w.rng.IntN(4) < w.reading {
			mode = process.Read
		}
		if c.only > 0 {
			mode = c.only
		}
		c.lock(mode, w.tryEvery > 0 && w.rng.IntN(w.tryEvery) == 0)
		if tries := c.tries; w.cancelEvery > 0 && w.rng.IntN(w.cancelEvery) == 0 {
			c.v.t.proc.later(w.around(w.hold), func() {
				if c.tries == tries {
					c.giveUp()
				}
			})
		}
	})
}

func (c *caller) lock(mode process.Mode, try bool) {
	v, w := c.v, c.v.t.proc.w
	if c.doing != resting || !v.t.proc.alive {
		return
	}
	c.mode, c.try, c.since = mode, try, w.now
	c.tries++
	do, before := v.queue.Lock(mode, try)
	switch do {
	case process.LockEntered:
		v.renew()
		c.enter(v.lease)
	case process.LockJoined:
		c.enter(v.lease)
	case process.LockGet:
		c.get(before, false)
	case process.LockRefused:
		c.rest()
	case process.LockWait:
		c.place = v.queue.Wait(c, mode)
		v.lines++
		c.doing, c.line = waiting, v.lines
	}
}

// get has the caller get the claim.
func (c *caller) get(before *attempt, place bool) {
	v := c.v
	c.doing, v.getter = acquiring, c
	if before != nil {
		before.leave()
	}
	if place {
		v.progress()
		return
	}
	v.t.weight = 1
	if c.mode == process.Write {
		v.t.weight = v.t.proc.w.capacity
	}
	v.t.att = nil
	v.t.acquire(c.try)
}

// grant gives a caller its turn, which it finds when it runs.
func (c *caller) grant(t *turn) {
	v, w := c.v, c.v.t.proc.w
	for _, o := range v.callers {
		if o.doing == waiting && o.turn == nil && o.line < c.line {
			w.fail("order", "%s gets its turn before %s, which has waited for longer", c.name, o.name)
		}
	}
	c.turn = t
	v.schedule(func() {
		if c.turn != t {
			return
		}
		if c.turn = nil; t.lease != nil {
			c.enter(t.lease)
		} else {
			c.get(nil, t.place)
		}
	})
}

// giveUp: the caller's context ends.
func (c *caller) giveUp() {
	v := c.v
	switch {
	case c.doing == waiting:
		in, gone := v.queue.GiveUp(c.place)
		t := c.turn
		c.turn = nil
		c.rest()
		v.letIn(in)
		switch {
		case gone:
		case t.lease != nil:
			v.unlock(c.mode)
		default:
			v.next(c.mode, false, t.place)
		}
	case c.doing == acquiring && v.pending != nil && v.pending.phase < lease.Holding:
		v.getter = nil
		c.rest()
		v.next(c.mode, c.try, true)
	}
}

// enter: the caller holds the value.
func (c *caller) enter(l *localTurn) {
	w := c.v.t.proc.w
	c.doing, c.lease = holding, l
	w.stats.Turns++
	c.v.turns++
	w.of[c.v.t.lock].local.entered(w, c)
	switch {
	case w.wire != nil || c.keeps && !w.draining:
	case c.mode == process.Write && w.reading > 0 && w.rng.IntN(4) == 0:
		c.v.t.proc.later(w.around(w.hold), func() { c.downgrade(); c.unlockLater() })
	default:
		c.unlockLater()
	}
}

func (c *caller) unlockLater() {
	w, tries := c.v.t.proc.w, c.tries
	c.v.t.proc.later(w.around(w.hold), func() {
		switch {
		case c.tries != tries || c.doing != holding && c.doing != changing:
		case c.doing == changing:
			c.unlockLater()
		default:
			c.unlock()
		}
	})
}

func (c *caller) unlock() {
	mode := c.mode
	c.rest()
	if c.v.unlock(mode) == process.UnlockNotHeld {
		c.v.t.proc.w.fail("held", "%s unlocks what it holds, and the queue does not know", c.name)
	}
}

// downgrade makes the caller a reader. The claim gets lighter a moment later.
func (c *caller) downgrade() {
	v := c.v
	a, ok := v.queue.Downgrade()
	if !ok {
		return
	}
	c.doing = changing
	v.schedule(func() {
		a.event(func() { a.Shrink(a.local(), 1) })
		shrunk := a.valid()
		c.doing = holding
		if shrunk {
			c.mode = process.Read
		}
		v.letIn(v.queue.Downgraded(shrunk))
	})
}
