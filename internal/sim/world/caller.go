package world

import (
	"container/list"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/sim/course"
)

// Caller is a goroutine.
type Caller struct {
	Value *Value
	Name  string
	Auto  bool // it wants the value over and over; else a generator says when
	Mode  process.Mode
	try   bool
	Doing doing
	Turn  *turn // has come, and the caller has not run since
	Lease *localTurn
	Since course.Moment // waiting: from when on
	Line  int           // and its number
	place *list.Element
	tries int // how often it wanted the value
}

type doing uint8

const (
	Resting doing = iota
	Waiting       // for a turn in the queue
	Acquiring
	Holding
	Changing // holds, and a Downgrade is under way
)

// turn is what a caller that waits gets: the value, or the task of getting it.
type turn struct {
	lease *localTurn // nil: the task
	place bool       // with an attempt that is queued already
}

// Rest is what a caller does until it wants the value again.
func (c *Caller) Rest() {
	w := c.Value.Part.Proc.World
	c.Doing, c.Lease = Resting, nil
	if !c.Auto || w.Draining {
		return
	}
	c.Value.Part.Proc.Later(w.Around(w.Think), func() {
		if w.Draining || c.Doing != Resting {
			return
		}
		mode := process.Write
		if w.Reading > 0 && w.RNG.IntN(4) < w.Reading {
			mode = process.Read
		}
		c.Lock(mode, w.TryEvery > 0 && w.RNG.IntN(w.TryEvery) == 0)
		if tries := c.tries; w.CancelEvery > 0 && w.RNG.IntN(w.CancelEvery) == 0 {
			c.Value.Part.Proc.Later(w.Around(w.Hold), func() {
				if c.tries == tries {
					c.GiveUp()
				}
			})
		}
	})
}

func (c *Caller) Lock(mode process.Mode, try bool) {
	v, w := c.Value, c.Value.Part.Proc.World
	if c.Doing != Resting || !v.Part.Proc.Alive {
		return
	}
	c.Mode, c.try, c.Since = mode, try, w.Now
	c.tries++
	do, before := v.Queue.Lock(mode, try)
	switch do {
	case process.LockEntered:
		v.renew()
		c.enter(v.Lease)
	case process.LockJoined:
		c.enter(v.Lease)
	case process.LockGet:
		c.get(before, false)
	case process.LockRefused:
		c.Rest()
	case process.LockWait:
		c.place = v.Queue.Wait(c, mode)
		v.lines++
		c.Doing, c.Line = Waiting, v.lines
	}
}

// get has the caller get the claim.
func (c *Caller) get(before *Attempt, place bool) {
	v := c.Value
	c.Doing, v.getter = Acquiring, c
	if before != nil {
		before.leave()
	}
	if place {
		v.progress()
		return
	}
	v.Part.Weight = 1
	if c.Mode == process.Write {
		v.Part.Weight = v.Part.Proc.World.Capacity
	}
	v.Part.Att = nil
	v.Part.Acquire(c.try)
}

// grant gives a caller its turn, which it finds when it runs.
func (c *Caller) grant(t *turn) {
	v, w := c.Value, c.Value.Part.Proc.World
	for _, o := range v.Callers {
		if o.Doing == Waiting && o.Turn == nil && o.Line < c.Line {
			w.Fail("order", "%s gets its turn before %s, which has waited for longer", c.Name, o.Name)
		}
	}
	c.Turn = t
	v.schedule(func() {
		if c.Turn != t {
			return
		}
		if c.Turn = nil; t.lease != nil {
			c.enter(t.lease)
		} else {
			c.get(nil, t.place)
		}
	})
}

// GiveUp: the caller's context ends.
func (c *Caller) GiveUp() {
	v := c.Value
	switch {
	case c.Doing == Waiting:
		in, gone := v.Queue.GiveUp(c.place)
		t := c.Turn
		c.Turn = nil
		c.Rest()
		v.letIn(in)
		switch {
		case gone:
		case t.lease != nil:
			v.Unlock(c.Mode)
		default:
			v.next(c.Mode, false, t.place)
		}
	case c.Doing == Acquiring && v.Pending != nil && v.Pending.Seen < lease.Holding:
		v.getter = nil
		c.Rest()
		v.next(c.Mode, c.try, true)
	}
}

// enter: the caller holds the value.
func (c *Caller) enter(l *localTurn) {
	w := c.Value.Part.Proc.World
	c.Doing, c.Lease = Holding, l
	w.Stats.Turns++
	w.Judge.Entered(c)
	switch {
	case w.Wire != nil:
	case c.Mode == process.Write && w.Reading > 0 && w.RNG.IntN(4) == 0:
		c.Value.Part.Proc.Later(w.Around(w.Hold), func() { c.Downgrade(); c.unlockLater() })
	default:
		c.unlockLater()
	}
}

func (c *Caller) unlockLater() {
	w, tries := c.Value.Part.Proc.World, c.tries
	c.Value.Part.Proc.Later(w.Around(w.Hold), func() {
		switch {
		case c.tries != tries || c.Doing != Holding && c.Doing != Changing:
		case c.Doing == Changing:
			c.unlockLater()
		default:
			c.Unlock()
		}
	})
}

func (c *Caller) Unlock() {
	mode := c.Mode
	c.Rest()
	if c.Value.Unlock(mode) == process.UnlockNotHeld {
		c.Value.Part.Proc.World.Fail("held", "%s unlocks what it holds, and the queue does not know", c.Name)
	}
}

// Downgrade makes the caller a reader. The claim gets lighter a moment later.
func (c *Caller) Downgrade() {
	v := c.Value
	a, ok := v.Queue.Downgrade()
	if !ok {
		return
	}
	c.Doing = Changing
	v.schedule(func() {
		a.event(func() { a.Claim.Shrink(a.Now(), 1) })
		shrunk := a.InForce()
		c.Doing = Holding
		if shrunk {
			c.Mode = process.Read
		}
		v.letIn(v.Queue.Downgraded(shrunk))
	})
}
