package core

// This file owns an acquisition from Begin to Release, as the primitives see
// it. A primitive calls Begin, then Wait until it has a Hold or an error. A
// Pending becomes a Hold by its admission: both are the attempt, seen by
// callers that may do different things with it.
// Invariant: each attempt that Begin started is ended by Cancel, by Release or
// by its claim.

import (
	"cmp"
	"context"
	"math/bits"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
)

// Pending is an acquisition under way. It outlives any one context, so that a
// place in the queue can be passed on inside the process.
// It is not safe for concurrent use: one goroutine at a time waits or cancels.
type Pending struct {
	q     *Quorum
	spec  *Spec
	try   bool
	owner Owner
	a     *attempt // nil: it has not begun, as no set is known or no place was free
}

// Owner gets the events of its hold. No lock is held during a callback. Its
// methods run on the goroutine of the event, and must not wait for a node.
type Owner interface {
	Ended()   // the hold has ended by itself, see Hold.Cause; called at most once
	Waiting() // a claim has begun to wait behind it
	Calm()    // none waits behind it any more

	// Turn returns the lease of those that hold it now, to warn them; nil: none
	// does, or has its lease yet. It runs on a goroutine of its own.
	Turn(h *Hold) *Lease
}

// Begin starts an acquisition, without waiting for a node. o may be nil.
func (q *Quorum) Begin(s *Spec, try bool, o Owner) (*Pending, error) {
	if q.IsClosed() {
		return nil, &fault.Failure{Err: fault.ErrClosed}
	}
	if err := q.Members.OutOfSet(s.Set); err != nil {
		return nil, &fault.Failure{Err: err}
	}
	p := &Pending{q: q, spec: s, try: try, owner: o}
	if q.Members.Serves(try) && (s.succession || q.intake.take()) {
		p.a = q.start(s, try, o)
	}
	return p, nil
}

// start begins an attempt, once this client counts on a set and there is a
// place. That of a change of the set needs none: it may be what the others wait
// for.
// Invariant: what the set bounds is looked at again here. Begin may not have
// known the set yet, and an attempt that has lapsed may have done so with a
// change of the set.
func (p *Pending) start(ctx context.Context) error {
	p.a = nil
	if err := p.q.Members.Await(ctx, p.try); err != nil {
		return err
	}
	if !p.spec.succession {
		if err := p.q.intake.enter(ctx, p.q, p.try); err != nil {
			return err
		}
	}
	if err := p.q.Members.OutOfSet(p.spec.Set); err != nil {
		if !p.spec.succession {
			p.q.intake.leave()
		}
		return &fault.Failure{Err: err}
	}
	p.a = p.q.start(p.spec, p.try, p.owner)
	return nil
}

// Wait waits until the claim is admitted or cannot be, the context ends or the
// Quorum is closed. When the context ends the claim is still queued: Wait
// again, or Cancel. After any other error there is nothing left to cancel.
func (p *Pending) Wait(ctx context.Context) (*Hold, error) {
	q := p.q
	if p.a == nil {
		if err := p.start(ctx); err != nil {
			return nil, err
		}
	}
	for {
		select {
		case <-p.a.done:
		default:
			changed := q.Members.Forgotten(p.try)
			p.a.only.Read(p.a.done)
			select {
			case <-p.a.done:
			case <-changed:
				continue
			case <-ctx.Done():
				return nil, p.failure(ctx)
			case <-q.Over:
				p.Cancel()
				return nil, p.a.failure(fault.ErrClosed)
			}
		}
		phase := p.a.take()
		if phase != lease.Holding && !p.a.spec.succession {
			// The set may have changed since Begin looked.
			if err := q.Members.OutOfSet(p.spec.Set); err != nil {
				p.Cancel()
				return nil, &fault.Failure{Err: err}
			}
		}
		switch phase {
		case lease.Holding:
			if q.IsClosed() {
				p.Cancel()
				return nil, p.a.failure(fault.ErrClosed)
			}
			return (*Hold)(p.a), nil
		case lease.Busy:
			return nil, p.a.failure(fault.ErrHeld)
		case lease.TooHeavy:
			return nil, p.a.tooHeavy()
		case lease.Rejected:
			return nil, p.a.rejected()
		case lease.NoQuorum:
			return nil, p.a.failure(fault.ErrNoQuorum)
		}
		// It has lapsed, or was ended.
		switch {
		case q.IsClosed(), phase == lease.Left:
			return nil, p.a.failure(fault.ErrClosed)
		case p.a.claim.Try:
			return nil, p.a.failure(fault.ErrNoQuorum)
		case p.a.spec.succession: // another configuration counts now, and another register
			return nil, p.a.failure(fault.ErrLost)
		}
		if err := p.start(ctx); err != nil { // lapsed: a new id and a new ticket
			return nil, err
		}
	}
}

// failure says what the context's end has cut short. With answers of a quorum
// the claim has its place, and others are ahead of it. With fewer it is not
// known whether there are others.
func (p *Pending) failure(ctx context.Context) error {
	p.a.mu.Lock()
	known := p.a.claim.Known(p.a.q.Now())
	p.a.mu.Unlock()
	sentinel := fault.ErrHeld
	if !known {
		sentinel = fault.ErrNoQuorum
	}
	return p.a.failure(fault.Cut(sentinel, fault.ContextError(ctx)))
}

// Queued reports whether the attempt goes on after Wait, which its context has
// cut short. It reads done without a.mu: take, in this goroutine, writes it.
func (p *Pending) Queued() bool { return p.a == nil || p.a.done != nil }

// Begun reports whether the nodes are being asked, or have been. Otherwise Wait
// begins, once a set is known and this process has a place for one more.
func (p *Pending) Begun() bool { return p.a != nil }

// Cancel withdraws the claim from every node, without waiting for them. The
// leaves go out although the caller's context has ended.
func (p *Pending) Cancel() {
	if p.a != nil {
		p.a.leave()
	}
}

// Acquire is Begin, Wait, and Cancel when the context ends.
func (q *Quorum) Acquire(ctx context.Context, s *Spec, try bool, o Owner) (*Hold, error) {
	p, err := q.Begin(s, try, o)
	if err != nil {
		return nil, err
	}
	hold, err := p.Wait(ctx)
	if err != nil {
		p.Cancel()
	}
	return hold, err
}

// MaxPasses is how many tokens one claim has.
const MaxPasses = process.HandOvers

// Hold is an admitted claim: an attempt that has come to something.
type Hold attempt

// Token returns the fencing token of the n-th hand-over inside this process:
// ticket * 2^10 + n. Tokens of one claim rise with n, and those of a later
// claim are above all of them, because its ticket is higher. It reads the
// ticket without mu: a ticket does not change once the claim is admitted.
func (h *Hold) Token(n int) uint64 { return uint64(h.claim.Ticket())*MaxPasses + uint64(n) }

// Valid reports whether the claim is held now.
func (h *Hold) Valid() bool { return h.Standing().Valid }

// The standings of a claim that an operator has ended, or Close.
const (
	evicted = 1
	shut    = 3
)

// Cause returns why a hold has ended by itself that is not valid any more:
// ErrLost, ErrEvicted or ErrClosed. Its owner may not have been called yet.
func (h *Hold) Cause() error {
	switch h.standing.Load() {
	case evicted:
		return fault.ErrEvicted
	case shut:
		return fault.ErrClosed
	}
	return fault.ErrLost
}

// ValidUntil returns the deadline of rule 5 as it stands.
func (h *Hold) ValidUntil() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.q.Clock.When(h.claim.Deadline())
}

// Standing returns how the claim stands now. It takes no lock, since a
// hand-over inside the process asks each time. standing holds deadline and
// waiters in one word, so the two belong together.
func (h *Hold) Standing() process.Standing {
	standing, now, fixed := h.standing.Load(), h.q.Now(), h.spec.Set.NoRenewal
	valid := int64(now) < standing&^3
	return process.Standing{At: now, Valid: valid, Usable: valid && !fixed && standing&2 == 0, Fixed: fixed, Waiters: standing&1 != 0 && standing > shut}
}

// Pass lets the claim serve another holder of this process, if it is usable.
// The time of WithMaxHold starts again for that holder.
func (h *Hold) Pass() process.Standing {
	s := h.Standing()
	if s.Usable && h.ends != nil && !h.ends.Reset(h.spec.Set.MaxHold) {
		h.ends.Stop()
		s.Usable = false // its renewal has just been stopped
	}
	return s
}

// Bound has WithMaxHold or WithoutRenewal bound a hold whose spec has
// BoundLater, from now on. The time of WithoutRenewal is a lease. If more than
// a sixteenth of this one is over, the nodes are asked for another first.
func (h *Hold) Bound() {
	set := h.spec.Set
	if set.MaxHold == 0 && !set.NoRenewal {
		return
	}
	a := (*attempt)(h)
	a.event(func(c *process.Attempt, now protocol.Time) {
		switch {
		case c.Phase() != lease.Holding:
			return
		case !set.NoRenewal:
			a.ends = time.AfterFunc(set.MaxHold, a.stopRenewal)
			return
		case c.Deadline().Sub(now) < set.TTL-set.TTL/16:
			c.Renew(now)
		}
		c.StopRenewal()
	})
}

// Shrink makes the claim lighter. It reports whether the claim was held.
// The nodes learn it with the next requests. Until then they count the larger
// weight, which admits fewer claims and never too many.
func (h *Hold) Shrink(weight uint64) bool {
	(*attempt)(h).event(func(c *process.Attempt, now protocol.Time) { c.Shrink(now, weight) })
	return h.Valid()
}

// Release leaves every node. It does not wait for them.
func (h *Hold) Release() {
	(*attempt)(h).leave()
}

// Released waits until a quorum is known to be free of the claim, the nodes
// have had their time, or the context ends. A node is free of it if it confirms
// the release or was never asked; both count as Votes of the error.
func (h *Hold) Released(ctx context.Context) error {
	a := (*attempt)(h)
	a.until(ctx, a.q.Driver.Furthest(a.spec.Set), func() bool {
		free, all := a.claim.Free()
		return a.claim.Sets.Met(free) || all
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	free, _ := a.claim.Free()
	f := &fault.Failure{Err: fault.ErrNoQuorum, Votes: bits.OnesCount32(free), Needed: a.claim.Sets.Need()}
	if a.claim.Sets.Met(free) {
		return nil
	}
	if ctx.Err() != nil {
		f.Err = fault.Cut(fault.ErrNoQuorum, ctx.Err())
	}
	for i, n := range a.q.Nodes.All() {
		if free&(1<<i) == 0 && a.claim.Asks(i) {
			f.Nodes = append(f.Nodes, fault.NodeFailure{Addr: n.Addr, Err: cmp.Or(a.errs[i], fault.ErrNoAnswer)})
		}
	}
	return f
}

// Renew asks every node for a new lease and waits until q have given it, the
// nodes have had their time twice, or the context ends.
func (h *Hold) Renew(ctx context.Context) error {
	a := (*attempt)(h)
	var want protocol.Time
	a.event(func(c *process.Attempt, now protocol.Time) {
		want = now.Add(a.spec.Set.TTL - lease.Drift(a.spec.Set.TTL))
		c.Renew(now)
	})
	phase := lease.Holding
	renewed := a.until(ctx, 2*a.q.Driver.Furthest(a.spec.Set), func() bool {
		phase = a.claim.Phase()
		return phase != lease.Holding || a.claim.Deadline() >= want
	})
	switch {
	case phase == lease.Left && a.q.IsClosed():
		return &fault.Failure{Err: fault.ErrClosed}
	case phase == lease.Left: // another goroutine has released it
		return &fault.Failure{Err: fault.ErrNotHeld}
	case phase != lease.Holding:
		return a.failure(h.Cause())
	case renewed:
		return nil
	case ctx.Err() != nil:
		return a.failure(fault.Cut(fault.ErrNoQuorum, ctx.Err()))
	}
	return a.failure(fault.ErrNoQuorum)
}
