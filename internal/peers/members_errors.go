package peers

// This file owns the words for what is wrong with a set or a member of it.

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
)

// setError returns the error for a verdict that concerns all nodes, nil if
// there is none. Called with s.mu held.
func (s *members) setError(v nodeset.SetVerdict) *fault.SetError {
	if v.Fault != nodeset.SetWrong {
		return nil
	}
	return &fault.SetError{List: s.known.List(), Set: v.Shown.Addrs(), Since: v.Shown.Stamp.Since()}
}

// VerdictError returns why a node has no vote, nil if it has. It takes s.mu, so
// no event of Membership may call it.
func (s *members) VerdictError(v nodeset.SetVerdict) error {
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

// CheckSet returns the error of a command in the words of this client. A node
// that refuses it because of its set is connected to again (Refused), and the
// next handshake reads its record. So a client learns that its set has gone on
// with its first request there, and not with the next connection, which may be
// weeks later. The caller holds no lock: change calls attempts. Membership
// leaves the connection of a node alone that is known to have no vote:
// Bootstrap needs that one (TestSetIsRecordedByABusyClient).
//
// Where a connection was given up to judge the node again, the error of a call
// names why the node has no vote, and not that pause (TestForgetfulNode).
func (s *members) CheckSet(node int, err error) error {
	if errors.Is(err, fault.ErrRejudged) {
		return cmp.Or(s.unfit(node), err)
	}
	e, refused := errors.AsType[resp.Error](err)
	if !refused || e.Code() != script.OtherSet {
		return err
	}
	var v nodeset.SetVerdict
	s.Change(node, func(m *nodeset.Membership) { m.Refused(node); v = m.Verdict(node) })
	return cmp.Or(s.VerdictError(v), error(fault.ErrOtherSet))
}

// OutOfSet returns why a claim with these settings cannot be made, nil if it
// can. Each call asks it, so it reads the copies and takes no lock. set may be
// a primitive's own: two primitives of one Quorum may have different ttls.
func (s *members) OutOfSet(set *setup.Settings) error {
	if wrong := s.wrong.Load(); wrong != nil {
		return wrong
	}
	c := s.Config.Load()
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
