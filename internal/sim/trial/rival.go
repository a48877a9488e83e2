package trial

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/world"
)

// NewRival returns one whose leases are as long as ours, or, if it is lossy,
// longer.
func NewRival(w *Schedule, lossy bool) *Rival {
	r := &Rival{World: w, Clock: course.NewClock(w.RNG, &w.Setting), Lease: w.TTL, lossy: lossy}
	if lossy && w.RNG.IntN(2) == 0 {
		r.Lease = w.TTL * time.Duration(1+w.RNG.IntN(6))
	}
	w.Rival = r
	return r
}

func (r *Rival) Valid() bool { return r.Clock.Local(r.World.Now) < r.Until }

// Try is one round of Redlock.
func (r *Rival) Try() {
	w := r.World
	if w.Draining {
		return
	}
	r.count++
	value := fmt.Sprintf("rival %d", r.count)
	began := r.Local(w.Now)
	set, answered, over := 0, 0, false
	decide := func() {
		switch {
		case over:
		case set > len(w.Nodes)/2 && r.Local(w.Now) < r.End(began):
			over = true
			w.Log("the rival holds")
			r.Holds(r.End(began))
			w.Checks.Always()
			w.At(w.Around(w.Hold), func() { r.release(value) })
		case answered == len(w.Nodes):
			over = true
			r.release(value)
		}
	}
	for _, n := range w.Nodes {
		ok := false
		r.ask(n, func() { ok = n.SetPlain(value, r.Lease) }, func() {
			if answered++; ok {
				set++
			}
			decide()
		})
	}
	if r.lossy {
		w.At(w.NodeTimeout, func() {
			answered = len(w.Nodes)
			decide()
		})
	}
}

// Holds notes until when it holds.
func (r *Rival) Holds(until protocol.Time) {
	r.Until = until
	if x := r.World.Tape; x != nil {
		end := r.World.Now
		if until > 0 {
			end = r.When(until)
		}
		x.Note("rival until %v", time.Duration(end)-time.Second)
	}
}

// End is until when it takes keys that it began to set at a moment for its own.
func (r *Rival) End(began protocol.Time) protocol.Time {
	return began.Add(r.Lease - r.Lease/100 - 2*time.Millisecond)
}

// ask has a node do something, and then tells.
func (r *Rival) ask(n *world.Node, do, tell func()) {
	w := r.World
	lost := func() bool { return r.lossy && w.RNG.IntN(12) == 0 }
	delay := func() time.Duration {
		d := n.Delay()
		if r.lossy && w.RNG.IntN(12) == 0 {
			d += time.Duration(w.RNG.Int64N(int64(2 * w.TTL)))
		}
		return d
	}
	if lost() {
		return
	}
	var arrive func()
	arrive = func() {
		switch {
		case n.Down || n.Refuse:
		case n.Paused:
			w.At(w.NodeTimeout, arrive)
		default:
			if do(); !lost() {
				w.At(delay(), tell)
			}
		}
	}
	w.At(delay(), arrive)
}

// release deletes the keys, and comes back later.
func (r *Rival) release(value string) {
	w := r.World
	r.Holds(0)
	w.Log("the rival releases")
	for _, n := range w.Nodes {
		r.ask(n, func() { n.DelPlain(value) }, func() {})
	}
	w.At(w.Around(w.Think)+4*(w.Delay+w.Jitter+w.Tail), r.Try)
}
