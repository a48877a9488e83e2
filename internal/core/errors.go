package core

// What core adds to the errors of package fault: the part that a claim or the
// set knows.

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
// sets it, like CoreOf.
var WrapError = func(_, _ string, err error) error { return err }

// rejected returns the error of an attempt that cannot get a quorum because too
// many nodes refuse permanently. If capacities clash, the caller has made a
// mistake, so the sentinel is ErrInvalid.
func (a *attempt) rejected() error {
	f := a.failure(fault.ErrNoQuorum)
	if _, clash := errors.AsType[*fault.ClashError](f); clash {
		f.Err = fault.ErrInvalid
	}
	return f
}

// tooHeavy returns the error of a claim that asks for more permits than there
// are after a Resize.
func (a *attempt) tooHeavy() error {
	a.mu.Lock()
	limit := a.claim.State.Limit(a.q.Now())
	a.mu.Unlock()
	return fmt.Errorf("%w: %d permits were requested, but after a Resize there are only %d",
		fault.ErrInvalid, a.spec.Weight, limit)
}

var (
	errNotAsked = errors.New("has not been asked yet")
)

// explain adds a remedy to the error of a node, if it knows one. The node's
// error stays in the chain, for errors.As.
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

// refusal returns why an answer objects to the claim, or nil if it does not.
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

// lostWhy returns what ended a hold. If the process was stopped until the lease
// had ended, the pause is the cause, and the nodes may be healthy. Called with
// a.mu held before the leaves are sent, because errs then still has the nodes'
// errors from the time of the hold.
func (a *attempt) lostWhy(now protocol.Time) error {
	err := fault.ErrLost
	if a.claim.State.Evicted() { // an operator ended it; the nodes are healthy
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
		err = fmt.Errorf("%w: the limit of WithMaxHold(%v) was reached", fault.ErrLost, a.spec.Set.MaxHold)
	case slept:
		err = fmt.Errorf("%w: this process did not run for %v or longer", fault.ErrLost,
			late.By.Round(100*time.Millisecond))
	}
	f := a.failureAt(now, err)
	if slept || a.claim.State.Muted() { // no node was asked, or the process could not hear the answers
		f.Nodes = slices.DeleteFunc(f.Nodes,
			func(n fault.NodeFailure) bool { return n.Err == fault.ErrNoAnswer })
	}
	return f
}

// CutShort returns the error of a call whose ctx ended while it waited behind
// another call of this process that asks the nodes. It matches ErrHeld, because
// the call was waiting for its turn; if no quorum is connected and votes, it
// lists the nodes instead.
func (q *claims) CutShort(ctx context.Context) *fault.Failure {
	if f, ok := errors.AsType[*fault.Failure](q.Peers.Serving()); ok {
		return f.Cut(ctx)
	}
	return fault.CutShort(fault.ErrHeld, ctx)
}

// failure returns err with the state of the attempt at each node.
func (a *attempt) failure(err error) *fault.Failure {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failureAt(a.q.Now(), err)
}

// failureAt is failure with a.mu held.
func (a *attempt) failureAt(now protocol.Time, err error) *fault.Failure {
	// The error lists only nodes that have not voted.
	f := &fault.Failure{Err: err, Votes: a.claim.State.Votes(now), Needed: a.claim.State.Sets.Need()}
	for i, n := range a.q.Nodes.All() {
		if !a.claim.State.Asks(i) {
			continue
		}
		ne := fault.NodeFailure{Addr: n.Addr}
		switch answered, vote := a.claim.State.Node(i, now); {
		case a.errs[i] != nil:
			ne.Err = a.errs[i]
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
