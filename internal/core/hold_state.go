package core

// The state of a hold: its token, until when it is held, why it has ended, and
// whether it would survive losing one more node.

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/report"
	"github.com/quorate/quorate/internal/setup"
)

// MaxPasses is how many tokens one claim has.
const MaxPasses = process.HandOvers

// Hold is an attempt that was admitted. The zero value means no hold.
type Hold struct{ a *attempt }

// none means no hold.
var none Hold

// Token returns the fencing token of the n-th hand-over inside this process:
// ticket * 2^10 + n. The tokens of one claim rise with n. A later claim has a
// higher ticket, so its tokens are higher than all of them. The ticket is read
// without mu, because it does not change after admission.
func (h Hold) Token(n int) uint64 { return uint64(h.a.claim.State.Ticket())*MaxPasses + uint64(n) }

// ID returns the id of the claim, as nodes report it.
func (h Hold) ID() string { return h.a.claim.State.ID.String() }

// Valid reports whether the claim is held now.
func (h Hold) Valid() bool { return h.HoldState().Valid }

// packedState is the state of a claim in one word, which readers load without
// mu: the deadline (0 if the claim is not held), with two flags in place of its
// lowest bits.
type packedState int64

const (
	waited    packedState = 1 << iota // another claim waits behind it
	unrenewed                         // the claim is no longer renewed

	packedBits = waited | unrenewed

	// Values without a deadline: the hold was ended by an operator (evicted) or
	// by Close (shut).
	evicted = waited
	shut    = waited | unrenewed
)

func (s packedState) until() protocol.Time { return protocol.Time(s &^ packedBits) }

// Cause returns why a hold that is no longer valid has ended, if it was not
// released: ErrLost, ErrEvicted or ErrClosed. It may return the cause before
// the owner has been called.
func (h Hold) Cause() error {
	switch packedState(h.a.packed.Load()) {
	case evicted:
		return fault.ErrEvicted
	case shut:
		return fault.ErrClosed
	}
	return fault.ErrLost
}

// ValidUntil returns the current deadline (rule 5). After the end of the hold it
// returns the last one: leader.HealthCheck asks how long ago a term expired. It
// takes mu because packed has no deadline after the end.
func (h Hold) ValidUntil() time.Time {
	h.a.mu.Lock()
	defer h.a.mu.Unlock()
	return h.a.q.Clock.When(h.a.claim.Deadline())
}

// HoldState returns the current state of the claim. It takes no lock, because
// every hand-over inside the process calls it. The deadline and the flag for
// waiters are loaded as one word, so they are consistent.
func (h Hold) HoldState() process.HoldState {
	s, now, fixed := packedState(h.a.packed.Load()), h.a.q.Now(), h.a.spec.Set.NoRenewal
	valid, over := now < s.until(), s.until() == 0
	return process.HoldState{
		At: now, Valid: valid, Over: over, Fixed: fixed,
		Usable: valid && !fixed && s&unrenewed == 0, Waiters: s&waited != 0 && !over,
	}
}

// bareHolds returns the holds that losing one more node would end although
// another node answers: see lease.State.Bare.
func bareHolds(q *claims) (all []report.BareHold) {
	for _, a := range q.attempts.list() {
		a.mu.Lock()
		rests := a.claim.State.Bare(q.Now())
		a.mu.Unlock()
		if rests == 0 {
			continue
		}
		b := report.BareHold{Name: a.spec.Name, Token: Hold{a}.Token(0)}
		for i, n := range q.Nodes.All() {
			if rests&(1<<i) != 0 {
				b.Nodes = append(b.Nodes, n.Addr)
			}
		}
		all = append(all, b)
	}
	slices.SortFunc(all, func(a, b report.BareHold) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Token, b.Token))
	})
	return all
}

// becomesBare reports whether the hold has come to depend on a bare majority
// since its last beat. Called with a.mu held.
func (a *attempt) becomesBare(now protocol.Time) bool {
	was := a.bare
	a.bare = a.claim.State.Bare(now) != 0
	return a.bare && !was
}

// tellBare reports to the observer that the hold depends on a bare majority.
// Called with no lock held.
func (a *attempt) tellBare() {
	a.q.Observer.Call(setup.Event{Kind: setup.EventBareHold, Name: a.spec.Name, Token: Hold{a}.Token(0)})
}
