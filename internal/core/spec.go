package core

import (
	"sync/atomic"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
)

// Spec is what a primitive asks for; one Spec serves many attempts. It is safe for
// concurrent use: NewSpec sets its fields, and only crowded and tickets change, atomically.
type Spec struct {
	Name     string
	Weight   uint64
	Capacity uint64
	Counting bool   // a semaphore: votes alone do not suffice
	Notify   bool   // push to the holder when a claim begins to wait
	Brief    bool   // often given back at once: see Quorum.later
	crowded  uint32 // see crowd
	Set      *Settings
	tickets  *protocol.TicketClock
	side     string // of the name: a lock, queue and record of its own, beside those of the name; empty: the name itself
}

func (s *Spec) keys() script.Keys {
	return script.NewKeysBeside(s.Set.Prefix, s.Name, s.side)
}

// WithWeight returns a copy that asks for another weight.
func (s *Spec) WithWeight(weight uint64) *Spec {
	return &Spec{ // not *s: others write to crowded
		Name: s.Name, Weight: weight, Capacity: s.Capacity, Counting: s.Counting, Notify: s.Notify, Brief: s.Brief,
		Set: s.Set, crowded: atomic.LoadUint32(&s.crowded), tickets: s.tickets, side: s.side,
	}
}

// crowd notes that others have been met at the name, or that they have not: then
// it is one for requests of many names.
func (s *Spec) crowd(others bool) {
	want := uint32(0)
	if others {
		want = 1
	}
	if atomic.LoadUint32(&s.crowded) != want {
		atomic.StoreUint32(&s.crowded, want)
	}
}

// quiet reports whether no other claim has been met at the name of late.
func (s *Spec) quiet() bool { return atomic.LoadUint32(&s.crowded) == 0 }

// NewSpec checks what a primitive asks for.
func (q *Quorum) NewSpec(s Spec) (*Spec, error) {
	if err := CheckName(s.Name); err != nil {
		return nil, err
	}
	s.tickets = new(protocol.TicketClock)
	return &s, nil
}
