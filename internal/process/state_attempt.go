//go:build search

package process

import (
	"encoding/binary"
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
	"slices"
)

// Copies of an [Attempt] for searching many futures, and its state as bytes.
// lease/state.go does the same for a [lease.Claim].
// Invariant: a copy shares no request with its original. The outbox modifies a
// waiting request in place, so the search would otherwise change a state that
// it has already seen.

func (a *Attempt) Clone() *Attempt {
	b := *a
	b.Claim = *a.Claim.Clone()
	if a.outbox.unsent != nil {
		b.outbox.unsent = new([32]*protocol.Request)
		for i, r := range a.outbox.unsent {
			if r != nil {
				q := *r
				b.outbox.unsent[i] = &q
			}
		}
	}
	return &b
}

// Permuted: see [lease.Claim.Permuted].
func (a *Attempt) Permuted(order []int) *Attempt {
	b := a.Clone()
	b.Claim = *a.Claim.Permuted(order)
	for _, set := range []*uint32{&b.outbox.sent, &b.outbox.flying, &b.outbox.merged, &b.outbox.free} {
		was := *set
		*set = 0
		for i, from := range order {
			*set |= was >> from & 1 << i
		}
	}
	if a.outbox.unsent == nil {
		return b
	}
	unsent := *b.outbox.unsent
	for i, from := range order {
		if b.outbox.unsent[i] = unsent[from]; b.outbox.unsent[i] != nil {
			b.outbox.unsent[i].Node = i
		}
	}
	return b
}

func (a *Attempt) Valid(now protocol.Time) bool {
	return a.State.Phase() == lease.Holding && now < a.Deadline()
}

// Unsent returns the request that waits for room at a node, nil if none does.
// The runtime has it in its [Backlog].
func (a *Attempt) Unsent(node int) *protocol.Request { return a.outbox.waitingAt(node) }

// Over reports whether an attempt is finished: it has ended, and none of its
// requests waits for room.
func (a *Attempt) Over() bool {
	waits := func(r *protocol.Request) bool { return r != nil }
	return a.State.Phase().Final() && (a.outbox.unsent == nil ||
		!slices.ContainsFunc(a.outbox.unsent[:], waits))
}

// AppendState appends everything that the attempt's future depends on, as
// [Claim.AppendState] does. For an attempt that has ended, only the requests
// that wait for room matter. State that is only reported is left out: which
// nodes are free of the claim, and what a caller knows.
func (a *Attempt) AppendState(b []byte, now protocol.Time) []byte {
	b = append(b, byte(a.State.Phase()))
	if !a.State.Phase().Final() {
		b = a.Claim.AppendState(b, now)
		b = lease.AppendFlags(b, a.outbox.fresh)
		b = binary.AppendUvarint(b, uint64(a.outbox.sent))
		b = binary.AppendUvarint(b, uint64(a.outbox.flying))
		b = binary.AppendUvarint(b, uint64(a.outbox.merged))
	}
	for i := range int(a.State.Nodes) {
		r := a.outbox.waitingAt(i)
		if r == nil {
			b = append(b, 0)
			continue
		}
		b = append(b, byte(r.Op), byte(r.Class))
		b = lease.AppendFlags(b, r.List, r.Patient)
		b = binary.AppendUvarint(b, uint64(r.Ticket))
		b = a.State.AppendTime(b, r.Sent, now)
	}
	return b
}
