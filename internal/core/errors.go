package core

// This file owns what core adds to the errors of package fault: what a claim
// and a set had to do with them.

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
)

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
	limit, _ := a.claim.Limit(a.q.now())
	a.mu.Unlock()
	return fmt.Errorf("%w: %d permits were asked for, and since a Resize there are %d", fault.ErrInvalid, a.spec.Weight, limit)
}

var (
	errNotAsked = errors.New("has not been asked yet")
	errQueued   = errors.New("others are ahead")
	errForeign  = errors.New("another Redlock client holds the redlock key")
)

// explain adds to a node's own words what to do, where they do not say it.
// It keeps the node's error in the chain, for errors.As.
func explain(s *Spec, err error) error {
	if fault.ClusterMode(err) {
		return fmt.Errorf("%w: the node %w", err, fault.ErrClusterMode)
	}
	e, ok := errors.AsType[resp.Error](err)
	if ok && strings.Contains(e.Error(), "OOM command not allowed") { // before Redis 7.0 the code is ERR
		return fmt.Errorf("%w: holds go on, and the node accepts no new locks until memory is free: raise maxmemory of that server", err)
	}
	if ok && e.Code() == "WRONGTYPE" {
		k := script.NewKeysBeside(s.Set.Prefix, s.Name, s.side)
		return fmt.Errorf("%w: one of the keys %q, %q, %q and %q is another program's; it may be its lock (Redisson keeps a hash under the name): "+
			"choose another name, and remove the key only if no program uses it",
			err, k.Plain(), k.State(), k.Queue(), k.Claims())
	}
	return err
}

// lostWhy says what ended a hold. A process that was stopped until the lease
// had ended is the cause itself, and its nodes may be well. Called with a.mu
// held, before the leaves are sent: what the nodes said last is still that of
// the hold.
func (a *attempt) lostWhy(now protocol.Time) error {
	err := fault.ErrLost
	if a.claim.Evicted() { // by nodes that are well
		return fault.ErrEvicted
	}
	late := a.q.ticks.Stalled(now)
	if other := a.q.deadlines.Stalled(now); other.By > late.By {
		late = other
	}
	slept := late.By > a.spec.Set.NodeTimeout && late.At > a.claim.Deadline().Add(-a.spec.Set.NodeTimeout)
	switch {
	case a.spec.Set.NoRenewal:
		err = fmt.Errorf("%w: WithoutRenewal, and no Extend came before its end", fault.ErrLost)
	case a.claim.Muted():
		err = fmt.Errorf("%w: WithMaxHold(%v) stopped its renewal", fault.ErrLost, a.spec.Set.MaxHold)
	case slept:
		err = fmt.Errorf("%w: this process did not run for %v or longer", fault.ErrLost, late.By.Round(100*time.Millisecond))
	}
	f := a.failureAt(now, err)
	if slept { // it could not hear an answer
		f.Nodes = slices.DeleteFunc(f.Nodes, func(n fault.NodeFailure) bool { return n.Err == fault.ErrNoAnswer })
	}
	return f
}

// failure describes where the attempt stands, for an error.
func (a *attempt) failure(err error) *fault.Failure {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failureAt(a.q.now(), err)
}

// failureAt is failure with a.mu held.
func (a *attempt) failureAt(now protocol.Time, err error) *fault.Failure {
	// A node that has voted is left out: what is listed is what was missing.
	f := &fault.Failure{Err: err, Votes: a.claim.Votes(now), Needed: a.claim.Quorum()}
	for i, n := range a.q.nodes.all() {
		if !a.claim.Asks(i) {
			continue
		}
		ne := fault.NodeFailure{Addr: n.addr}
		switch answered, vote := a.claim.Node(i, now); {
		case a.errs[i] != nil:
			ne.Err = fault.NamesAge(a.errs[i])
		case a.claim.Untouched(i):
			ne.Err = errNotAsked
		case !answered:
			ne.Err = fault.ErrNoAnswer
		case !vote:
			ne.Err = errQueued
		default:
			continue
		}
		f.Nodes = append(f.Nodes, ne)
	}
	return f
}

// setError returns the error for a verdict that concerns all nodes, nil if
// there is none. Called with s.mu held.
func (s *members) setError(v nodeset.SetVerdict) *fault.SetError {
	if v.Fault != nodeset.SetWrong {
		return nil
	}
	return &fault.SetError{List: s.known.List(), Set: v.Shown.Addrs(), Since: v.Shown.Stamp.Since()}
}

// verdictError returns why a node has no vote, nil if it has. It takes s.mu, so
// no event of Membership may call it.
func (s *members) verdictError(v nodeset.SetVerdict) error {
	if v.Enters() {
		return fault.ErrSetEnters
	}
	switch v.Fault {
	case nodeset.SetWrong:
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.setError(v)
	case nodeset.SetUnknown:
		if v.Shown == nil {
			return fault.ErrSetUnknown
		}
		return &fault.MemberError{Why: "is of the set " + strings.Join(v.Shown.Addrs(), " ") + "; too few nodes of this client's list say the same: give it the list of the set"}
	case nodeset.SetPending:
		return fault.ErrSetPending
	case nodeset.SetLost:
		return fault.ErrSetLost
	case nodeset.SetBetween:
		return fault.ErrSetBetween
	case nodeset.SetRetired:
		return fault.ErrSetRetired
	case nodeset.SetAhead:
		return &fault.MemberError{Why: "serves a later configuration of the set, " + strings.Join(v.Shown.Addrs(), " ") + ", and the others are asked whether that was decided; " +
			"if this stays, too few of the nodes that this client knows are left: look at that list with \"quorate members list\", and if it is the set give it to this client"}
	case nodeset.SetForeign:
		// It passes where all members have lost their data, and have recorded
		// their set once more (e2e: TestFlushAll).
		return &fault.MemberError{Why: "has the data of another set of nodes, " + strings.Join(v.Shown.Addrs(), " ") +
			"; start the server of this set at its address, or move the member to the address that it has: quorate members move"}
	case nodeset.SetOther:
		at := v.Set.Member(v.As)
		if at < 0 { // it has left the set since the node was judged
			return fault.ErrRejudged
		}
		return &fault.MemberError{Final: true, Why: fmt.Sprintf("has the data of %s, another member of this set, so its vote would count twice; start it with its own data, "+
			"or, if that member now runs here, say so: quorate members move", v.Set.Members[at].Addr)}
	}
	return nil
}

// checkSet returns the error of a command in the words of this client. A node
// that refuses it because of its set is connected to again (Refused), and the
// next handshake reads its record. So a client learns that its set has gone on
// with its first request there, and not with the next connection, which may be
// weeks later. The caller holds no lock: change calls attempts. Membership
// leaves the connection of a node alone that is known to have no vote:
// Bootstrap needs that one (TestSetIsRecordedByABusyClient).
//
// Where a connection was given up to judge the node again, the error of a call
// names why the node has no vote, and not that pause (TestForgetfulNode).
func (s *members) checkSet(node int, err error) error {
	if errors.Is(err, fault.ErrRejudged) {
		return cmp.Or(s.unfit(node), err)
	}
	e, refused := errors.AsType[resp.Error](err)
	if !refused || e.Code() != script.OtherSet {
		return err
	}
	var v nodeset.SetVerdict
	s.change(node, func(m *nodeset.Membership) { m.Refused(node); v = m.Verdict(node) })
	return cmp.Or(s.verdictError(v), error(fault.ErrOtherSet))
}

// outOfSet returns why a claim with these settings cannot be made, nil if it
// can. Each call asks it, so it reads the copies and takes no lock. set may be
// a primitive's own: two primitives of one Quorum may have different ttls.
func (s *members) outOfSet(set *setup.Settings) error {
	if wrong := s.wrong.Load(); wrong != nil {
		return wrong
	}
	c := s.config.Load()
	switch {
	case c == nil:
	case set.GuardGiven && set.Guard > c.Guard():
		return fmt.Errorf("%w: WithGuard(%v) is longer than the guard time of the set, %v, by which its nodes go: leave WithGuard out, "+
			"or lengthen that of the set: quorate members set --guard", fault.ErrInvalid, set.Guard, c.Guard())
	case set.TTL > c.LongestTTL():
		return &fault.TTLError{TTL: set.TTL, Skew: c.Skew(), Guard: c.LeaseGuard()}
	}
	return nil
}
