package core

// An acquisition from Begin to Release, as the primitives see it. A primitive
// calls Begin, then Wait until it has a Hold or an error. A Pending becomes a
// Hold when it is admitted. Both refer to the same attempt, but allow different
// operations.
// Invariant: each attempt that Begin started is ended by Cancel, by Release, or
// by its claim when the lease ends.

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/peers"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/setup"
)

// Pending is an acquisition in progress. It does not end with the context of a
// caller, so that another caller of this process can take over its place in the
// queue.
type Pending struct {
	q     *claims
	spec  *Spec
	try   bool
	owner Owner
	a     *attempt // nil until it begins: no set is known yet, or too many attempts are starting
}

// Begin starts an acquisition, without waiting for a node. o may be nil. Begin
// takes only the user's note from ctx: the acquisition does not end with ctx.
func (q *claims) Begin(ctx context.Context, s *Spec, try bool, o Owner) (*Pending, error) {
	if q.IsClosed() {
		return nil, &fault.Failure{Err: fault.ErrClosed}
	}
	note, err := setup.NoteOf(ctx)
	if err != nil {
		return nil, &fault.Failure{Err: err}
	}
	if note != "" {
		s = s.WithNote(note)
	}
	if err := q.Members.CheckSettings(s.Set); err != nil {
		return nil, &fault.Failure{Err: err}
	}
	p := &Pending{q: q, spec: s, try: try, owner: o}
	if q.Members.CanBegin(try) && (s.decidesSuccessor || q.starts.tryAcquire()) {
		p.a = q.start(s, try, o)
	}
	return p, nil
}

// start is the slow path of Begin: it waits until the set is known and another
// attempt may start, then starts it. A claim that decides a change of the set
// does not count against the limit, because the attempts that do may be waiting
// for that change. start checks the settings again, because the set may have
// changed since Begin.
func (p *Pending) start(ctx context.Context) error {
	p.a = nil
	if err := p.q.Members.Await(ctx, p.try); err != nil {
		return err
	}
	if !p.spec.decidesSuccessor {
		if err := p.q.starts.acquire(ctx, p.q.Peers, p.try); err != nil {
			return err
		}
	}
	if err := p.q.Members.CheckSettings(p.spec.Set); err != nil {
		if !p.spec.decidesSuccessor {
			p.q.starts.release()
		}
		return &fault.Failure{Err: err}
	}
	p.a = p.q.start(p.spec, p.try, p.owner)
	return nil
}

var errCrowded = fmt.Errorf(
	"%d locks of this process are waiting for their first answers, and this one waits behind them", MaxStarting)

// acquire waits until another attempt may start. It fails if ctx ends or the
// Quorum closes. A try waits no longer than a node may take to answer.
func (l startLimiter) acquire(ctx context.Context, ps *peers.Peers, try bool) error {
	if l.tryAcquire() {
		return nil
	}
	var late <-chan time.Time
	if try {
		timer := time.NewTimer(ps.Driver.LongestTimeout(&ps.Set))
		defer timer.Stop()
		late = timer.C
	}
	f := &fault.Failure{
		Err: fmt.Errorf("%w: %w", fault.ErrNoQuorum, errCrowded), Needed: ps.Driver.Client.Group().Sets.Need(),
	}
	select {
	case l <- struct{}{}: // Close may have listed the attempts that it will end, without this one
		if !ps.IsClosed() {
			return nil
		}
		l.release()
		f.Err = fault.ErrClosed
	case <-late:
	case <-ctx.Done():
		_ = f.Cut(ctx)
	case <-ps.Over:
		f.Err = fault.ErrClosed
	}
	return f
}

// Wait waits until the claim is admitted or cannot be, ctx ends, or the Quorum
// is closed. If ctx ends the claim is still queued: call Wait again, or Cancel.
// After any other error there is nothing to cancel.
func (p *Pending) Wait(ctx context.Context) (Hold, error) {
	q := p.q
	if p.a == nil {
		if err := p.start(ctx); err != nil {
			return none, err
		}
	}
	for {
		select {
		case <-p.a.done:
		default:
			changed := q.Members.WaitForSet()
			p.a.only.Read(p.a.done)
			select {
			case <-p.a.done:
			case <-changed:
				continue
			case <-ctx.Done():
				return none, p.failure(ctx)
			case <-q.Over:
				p.Cancel()
				return none, p.a.failure(fault.ErrClosed)
			}
		}
		phase := p.a.take()
		if phase != lease.Holding && !p.a.spec.decidesSuccessor {
			// The set may have changed since Begin checked the settings.
			if err := q.Members.CheckSettings(p.spec.Set); err != nil {
				p.Cancel()
				return none, &fault.Failure{Err: err}
			}
		}
		switch phase {
		case lease.Holding:
			if q.IsClosed() {
				p.Cancel()
				return none, p.a.failure(fault.ErrClosed)
			}
			return Hold{p.a}, nil
		case lease.Busy:
			return none, p.a.failure(fault.ErrHeld)
		case lease.TooHeavy:
			return none, p.a.tooHeavy()
		case lease.Rejected:
			return none, p.a.rejected()
		case lease.NoQuorum:
			return none, p.a.failure(fault.ErrNoQuorum)
		}
		// The claim has lapsed, or was ended.
		switch {
		case q.IsClosed(), phase == lease.Left:
			return none, p.a.failure(fault.ErrClosed)
		case p.a.claim.State.Try:
			return none, p.a.failure(fault.ErrNoQuorum)
		// A new configuration is in use, and another register decides its
		// successor.
		case p.a.spec.decidesSuccessor:
			return none, p.a.failure(fault.ErrLost)
		}
		if err := p.start(ctx); err != nil { // it has lapsed: start again with a new id and a new ticket
			return none, err
		}
	}
}

// failure returns the error of a Wait that ctx has ended. If a quorum has
// answered, the claim is queued behind others. With fewer answers it is unknown
// whether there are others.
func (p *Pending) failure(ctx context.Context) error {
	sentinel := fault.ErrHeld
	p.a.mu.Lock()
	if !p.a.claim.State.Known(p.a.q.Now()) {
		sentinel = fault.ErrNoQuorum
	}
	p.a.mu.Unlock()
	return p.a.failure(fault.Cut(sentinel, fault.ContextError(ctx)))
}

// Queued reports whether the attempt goes on although the context of Wait has
// ended. It reads done without a.mu, because only take writes done, in this
// same goroutine.
func (p *Pending) Queued() bool { return p.a == nil || p.a.done != nil }

// Begun reports whether the nodes have been asked. If not, Wait starts the
// attempt once a set is known and startLimiter admits it.
func (p *Pending) Begun() bool { return p.a != nil }

// Cancel withdraws the claim from every node, without waiting for them. The
// leaves are sent even though the context of the caller has ended.
func (p *Pending) Cancel() {
	if p.a != nil {
		p.a.leave()
	}
}

// Acquire calls Begin and Wait, and Cancel if Wait fails.
func (q *claims) Acquire(ctx context.Context, s *Spec, try bool, o Owner) (Hold, error) {
	p, err := q.Begin(ctx, s, try, o)
	if err != nil {
		return none, err
	}
	hold, err := p.Wait(ctx)
	if err != nil {
		p.Cancel()
	}
	return hold, err
}

// Pass hands the claim to another holder of this process, if the claim is
// usable. The time of WithMaxHold starts again for the new holder.
func (h Hold) Pass() process.HoldState {
	s := h.HoldState()
	if s.Usable && h.a.maxHoldTimer != nil && !h.a.maxHoldTimer.Reset(h.a.spec.Set.MaxHold) {
		h.a.maxHoldTimer.Stop()
		s.Usable = false // its renewal has just been stopped
	}
	return s
}

// Bound makes WithMaxHold or WithoutRenewal limit a hold whose spec has
// BoundLater, from now on. WithoutRenewal limits it to one lease: if more than
// a sixteenth of the current lease is over, Bound asks the nodes for a new
// lease first.
func (h Hold) Bound() {
	set := h.a.spec.Set
	if set.MaxHold == 0 && !set.NoRenewal {
		return
	}
	a := h.a
	a.event(func(c *process.Attempt, now protocol.Time) {
		switch {
		case c.State.Phase() != lease.Holding:
			return
		case !set.NoRenewal:
			a.maxHoldTimer = time.AfterFunc(set.MaxHold, a.stopRenewal)
			return
		case c.Deadline().Sub(now) < set.TTL-set.TTL/16:
			c.Renew(now)
		}
		c.State.StopRenewal()
	})
}

// Shrink reduces the weight of the claim if it is held, and reports whether it
// was. The nodes learn the new weight with the next requests. Until then they
// count the larger one, which can only admit fewer claims.
//
// Note: Here is an incorrect way to report it:
//
//	return h.Valid()
//
// The deadline may pass before Valid is called, although an answer from just
// before the deadline may still renew the claim.
func (h Hold) Shrink(weight uint64) (held bool) {
	h.a.event(func(c *process.Attempt, now protocol.Time) {
		c.Shrink(now, weight)
		held = c.State.Phase() == lease.Holding
	})
	return held
}

// Release sends a leave to every node. It does not wait for the answers.
func (h Hold) Release() { h.a.leave() }

// Released waits until a quorum is known to be free of the claim. It stops when
// every leave has been answered or given up, after LongestTimeout, or when ctx
// ends. The caller has released the hold. A node is free of the claim if it has
// confirmed the leave or was never sent a request. The error counts these nodes as
// Votes.
func (h Hold) Released(ctx context.Context) error {
	a := h.a
	a.until(ctx, a.q.Driver.LongestTimeout(a.spec.Set), func() bool {
		free, all := a.claim.Free()
		return a.claim.State.Sets.Met(free) || all
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	free, _ := a.claim.Free()
	if a.claim.State.Sets.Met(free) {
		return nil
	}
	f := &fault.Failure{Err: fault.ErrNoQuorum, Votes: bits.OnesCount32(free),
		Needed: a.claim.State.Sets.Need()}
	if ctx.Err() != nil {
		f.Err = fault.Cut(fault.ErrNoQuorum, fault.ContextError(ctx))
	}
	for i, n := range a.q.Nodes.All() {
		if free&(1<<i) == 0 && a.claim.State.Asks(i) {
			f.Nodes = append(f.Nodes, fault.NodeFailure{Addr: n.Addr,
				Err: cmp.Or(a.errs[i], fault.ErrNoAnswer)})
		}
	}
	return f
}

// Renew asks every node for a new lease and waits until q nodes have given one,
// twice LongestTimeout has passed, or ctx ends.
func (h Hold) Renew(ctx context.Context) error {
	a := h.a
	var want protocol.Time
	a.event(func(c *process.Attempt, now protocol.Time) {
		want = now.Add(a.spec.Set.TTL - lease.Drift(a.spec.Set.TTL))
		c.Renew(now)
	})
	phase := lease.Holding
	renewed := a.until(ctx, 2*a.q.Driver.LongestTimeout(a.spec.Set), func() bool {
		phase = a.claim.State.Phase()
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
	}
	why := fault.ErrNoQuorum
	if ctx.Err() != nil {
		why = fault.Cut(why, fault.ContextError(ctx))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	// Votes for earlier leases are not a renewal, so count only leases that
	// last until want.
	return a.failureAt(want-1, why)
}
