package core

// This file owns what core adds to the errors of package fault: what a claim
// and a set had to do with them.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// WrapError makes the exported error of a failed operation. The root package
// sets it, as it sets CoreOf.
var WrapError = func(_, _ string, err error) error { return err }

// rejected is the error of an attempt that so many nodes refuse for good that
// it cannot have a quorum. A clash is the caller's to mend, so the sentinel is
// ErrInvalid.
func (a *attempt) rejected() error {
	f := a.failure(fault.ErrNoQuorum)
	if _, clash := errors.AsType[*fault.ClashError](f); clash {
		f.Err = fault.ErrInvalid
	}
	return f
}

// tooHeavy is the error of a claim that asks for more than a Resize has left.
func (a *attempt) tooHeavy() error {
	a.mu.Lock()
	limit := a.claim.State.Limit(a.q.Now())
	a.mu.Unlock()
	return fmt.Errorf("%w: %d permits were requested, but after a Resize there are only %d", fault.ErrInvalid, a.spec.Weight, limit)
}

var (
	errNotAsked = errors.New("has not been asked yet")
)

// explain adds to a node's own words what to do, where they do not say it.
// It keeps the node's error in the chain, for errors.As.
func explain(s *Spec, err error) error {
	if fault.ClusterMode(err) {
		return fmt.Errorf("%w: the node %w", err, fault.ErrClusterMode)
	}
	e, ok := errors.AsType[resp.Error](err)
	if remedy := fault.WriteRemedy(err); remedy != "" {
		return fmt.Errorf("%w: %s", err, remedy)
	}
	if ok && e.Code() == "WRONGTYPE" {
		k := script.NewKeysBeside(s.Set.Prefix, s.Name, s.side)
		return fmt.Errorf("%w: one of the keys %q, %q, %q and %q is another program's data and never expires: "+
			"choose another name, or delete the key if no program uses it",
			err, k.Plain(), k.State(), k.Queue(), k.Claims())
	}
	return err
}

// refusal is what an answer says against the claim.
func refusal(s *Spec, a protocol.Answer) error {
	switch {
	case a.Status == protocol.Recovering:
		return &fault.RecoveringError{Wait: a.Wait}
	case a.Status == protocol.Clash:
		return &fault.ClashError{Asked: s.Capacity, InForce: a.Capacity}
	case a.Foreign:
		return fault.ErrForeign
	}
	return nil
}

// lostWhy says what ended a hold. A process that was stopped until the lease
// had ended is the cause itself, and its nodes may be well. Called with a.mu
// held, before the leaves are sent: what the nodes said last is still that of
// the hold.
func (a *attempt) lostWhy(now protocol.Time) error {
	err := fault.ErrLost
	if a.claim.State.Evicted() { // by nodes that are well
		return fault.ErrEvicted
	}
	late := a.q.ticks.Stalled(now)
	if other := a.q.deadlines.Stalled(now); other.By > late.By {
		late = other
	}
	slept := late.By > a.spec.Set.NodeTimeout && late.At > a.claim.Deadline().Add(-a.spec.Set.NodeTimeout)
	switch {
	case a.spec.Set.NoRenewal && a.claim.State.Muted():
		err = fmt.Errorf("%w: WithoutRenewal is set, and Extend was not called in time", fault.ErrLost)
	case a.claim.State.Muted():
		err = fmt.Errorf("%w: WithMaxHold(%v) is over", fault.ErrLost, a.spec.Set.MaxHold)
	case slept:
		err = fmt.Errorf("%w: this process did not run for %v or longer", fault.ErrLost, late.By.Round(100*time.Millisecond))
	}
	f := a.failureAt(now, err)
	if slept || a.claim.State.Muted() { // no answer was heard, or none asked for
		f.Nodes = slices.DeleteFunc(f.Nodes, func(n fault.NodeFailure) bool { return n.Err == fault.ErrNoAnswer })
	}
	return f
}

// CutShort is the error of a call that has waited behind another call of this
// process, which asks the nodes, until ctx ended. What was missing is the turn,
// or nodes where no quorum is connected and votes.
func (q *claims) CutShort(ctx context.Context) *fault.Failure {
	if f, ok := errors.AsType[*fault.Failure](q.Peers.Serving()); ok {
		return f.Cut(ctx)
	}
	return fault.CutShort(fault.ErrHeld, ctx)
}

// failure describes where the attempt stands, for an error.
func (a *attempt) failure(err error) *fault.Failure {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failureAt(a.q.Now(), err)
}

// failureAt is failure with a.mu held.
func (a *attempt) failureAt(now protocol.Time, err error) *fault.Failure {
	// A node that has voted is left out: what is listed is what was missing.
	f := &fault.Failure{Err: err, Votes: a.claim.State.Votes(now), Needed: a.claim.State.Sets.Need()}
	for i, n := range a.q.Nodes.All() {
		if !a.claim.State.Asks(i) {
			continue
		}
		ne := fault.NodeFailure{Addr: n.Addr}
		switch answered, vote := a.claim.State.Node(i, now); {
		case a.errs[i] != nil:
			ne.Err = fault.NamesAge(a.errs[i])
		case a.claim.State.Untouched(i):
			ne.Err = errNotAsked
		case !answered:
			ne.Err = fault.ErrNoAnswer
		case !vote:
			ne.Err = fault.ErrAhead
		default:
			continue
		}
		f.Nodes = append(f.Nodes, ne)
	}
	return f
}
