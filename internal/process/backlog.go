package process

import (
	"sync/atomic"

	"github.com/quorate/quorate/internal/fifo"
	"github.com/quorate/quorate/internal/invariant"
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
)

// ClassOf returns the class of a request of a claim that is in the given phase.
func ClassOf(phase lease.Phase, op protocol.Op) protocol.Class {
	switch {
	case op == protocol.OpLeave || phase == lease.Holding:
		return protocol.Renewals
	case op == protocol.OpJoin:
		return protocol.Joins
	}
	return protocol.Waits
}

// Backlog holds the requests of one client for which one node has no room yet.
// It is not safe for concurrent use, except for Behind.
// Invariant: at most one request of a claim is in the backlog, so the backlog
// cannot reorder the requests of one claim.
type Backlog[T any] struct {
	queues [protocol.Classes]fifo.Queue[T]
	turn   int           // how many requests below Renewals were taken: an index into turns
	wait   atomic.Uint32 // the classes that have requests waiting, a bit for each
}

// turns is the order in which the classes below Renewals are served. If the
// class whose turn it is has no requests, the most urgent class that has some
// is served. Without turns, waiting claims could keep every new claim out.
var turns = [...]protocol.Class{protocol.Joins, protocol.Waits, protocol.Records, protocol.Waits}

func (b *Backlog[T]) Put(k protocol.Class, r T) {
	if invariant.On {
		defer b.check(k)
	}
	b.queues[k].Push(r)
	b.wait.Store(b.wait.Load() | 1<<k)
}

// Behind reports whether requests of the class or of a more urgent one wait. It
// is safe for concurrent use.
func (b *Backlog[T]) Behind(k protocol.Class) bool {
	return b.wait.Load()&(2<<k-1) != 0
}

func (b *Backlog[T]) Len() (n int) {
	for k := range b.queues {
		n += b.queues[k].Len()
	}
	return n
}

// Next returns the class of the request to send next.
func (b *Backlog[T]) Next() (k protocol.Class, ok bool) {
	if k := turns[b.turn%len(turns)]; b.queues[protocol.Renewals].Len() == 0 && b.queues[k].Len() > 0 {
		return k, true
	}
	for k := range protocol.Classes {
		if b.queues[k].Len() > 0 {
			return k, true
		}
	}
	return 0, false
}

// Take removes and returns the oldest request of a class that has some.
func (b *Backlog[T]) Take(k protocol.Class) T {
	if invariant.On {
		defer b.check(k)
	}
	r := b.queues[k].Pop()
	if k != protocol.Renewals {
		b.turn++
	}
	if b.queues[k].Len() == 0 {
		b.wait.Store(b.wait.Load() &^ (1 << k))
	}
	return r
}

// Return puts a request back that Take has just removed, because there was no
// room for it.
func (b *Backlog[T]) Return(k protocol.Class, r T) {
	if invariant.On {
		defer b.check(k)
	}
	b.queues[k].Return(r)
	b.wait.Store(b.wait.Load() | 1<<k)
}
