package process

import (
	"github.com/quorate/quorate/internal/lease"
	"sync/atomic"
)

// Name is what all claims of one process at one name share. It is safe for
// concurrent use. Nothing rests on it but how soon claims settle, and how many
// nodes are asked.
type Name struct {
	Name     string
	Counting bool // a semaphore's

	contended atomic.Bool
	tickets   lease.TicketClock
}

// Contended reports whether other claims were met at the name of late.
func (n *Name) Contended() bool { return n.contended.Load() }

// Meet says that other claims were met at the name, or that none were. The word
// is one for requests of many names, so it is written only when it changes.
func (n *Name) Meet(others bool) {
	if n.contended.Load() != others {
		n.contended.Store(others)
	}
}
