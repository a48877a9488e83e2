package process

import (
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
	"sync/atomic"
)

// ClassOf returns the class of a request of a claim in that phase.
func ClassOf(phase lease.Phase, op protocol.Op) protocol.Class {
	switch {
	case op == protocol.OpLeave || phase == lease.Holding:
		return protocol.Renewals
	case op == protocol.OpJoin:
		return protocol.Joins
	}
	return protocol.Waits
}

// Backlog holds the requests of one client for one node that the node has no
// room for yet. It is not safe for concurrent use, except for Behind.
// Invariant: at most one request of a claim is in the backlog, because a newer
// request replaces an older one that has not been sent. So the order in which
// the backlog gives requests out cannot turn the requests of one claim around.
type Backlog[T any] struct {
	queues [protocol.Classes][]T
	heads  [protocol.Classes]int
	turn   int
	wait   atomic.Uint32 // classes of which requests wait, a bit for each
}

// turns is the order in which the classes below Renewals are served. A class
// that has nothing gives its turn to the most urgent one that has. Without
// turns waiting claims could keep every new claim out.
var turns = [...]protocol.Class{protocol.Joins, protocol.Waits, protocol.Records, protocol.Waits}

func (b *Backlog[T]) Put(k protocol.Class, r T) {
	b.queues[k] = append(b.queues[k], r)
	b.wait.Store(b.wait.Load() | 1<<k)
}

// Behind reports whether requests of the class or of a more urgent one wait. It
// is safe for concurrent use.
func (b *Backlog[T]) Behind(k protocol.Class) bool {
	return b.wait.Load()&(2<<k-1) != 0
}

func (b *Backlog[T]) Len() (n int) {
	for k := range b.queues {
		n += len(b.queues[k]) - b.heads[k]
	}
	return n
}

// Next returns the class of the request that is to be sent next.
func (b *Backlog[T]) Next() (k protocol.Class, ok bool) {
	if k := turns[b.turn%len(turns)]; len(b.queues[protocol.Renewals]) == 0 && len(b.queues[k]) > 0 {
		return k, true
	}
	for k := range protocol.Classes {
		if len(b.queues[k]) > 0 {
			return k, true
		}
	}
	return 0, false
}

// Take removes and returns the oldest request of a class that has some.
func (b *Backlog[T]) Take(k protocol.Class) T {
	var none T
	q, h := b.queues[k], &b.heads[k]
	r := q[*h]
	q[*h] = none
	if *h++; k != protocol.Renewals {
		b.turn++
	}
	switch {
	case *h == len(q):
		b.queues[k], *h = nil, 0
		b.wait.Store(b.wait.Load() &^ (1 << k))
	case *h >= 1024 && *h > len(q)/2:
		b.queues[k], *h = append([]T(nil), q[*h:]...), 0
	}
	return r
}

// Return puts a request back that Take has just removed: there was no room for
// it.
func (b *Backlog[T]) Return(k protocol.Class, r T) {
	if h := &b.heads[k]; *h > 0 {
		*h--
		b.queues[k][*h] = r
		return
	}
	b.queues[k] = append([]T{r}, b.queues[k]...)
	b.wait.Store(b.wait.Load() | 1<<k)
}
