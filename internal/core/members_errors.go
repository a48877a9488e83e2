package core

// This file owns the errors about the set of nodes: of a list that is not that
// of the set, of a node that has no vote in it, and of a ttl that its guard
// time does not cover. Each one that does not pass by itself says what an
// operator is to do.
// Invariant: a *MemberError that is final does not pass by itself.

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// SetError says that a client's list of nodes is another one than that of the
// set. It is an error of all calls and of all nodes.
type SetError struct {
	List  []string // of the client
	Set   []string // of the nodes
	Since time.Time
	Begun bool // the set is not recorded: a recording of it has begun, and has not ended
}

func (e *SetError) Error() string {
	if e.Begun {
		return fmt.Sprintf("the list of this client is %s, and a recording of another list, %s, has begun on its nodes and has not ended: give all clients the same list, and run \"quorate bootstrap\" with it; "+
			"nodes that have accepted the other list take no other: it ends on them when all nodes of that list answer, or when they are emptied",
			strings.Join(e.List, " "), strings.Join(e.Set, " "))
	}
	return fmt.Sprintf("the list of this client, %s, is not that of its nodes, which are the set %s since %s: give every client the list of the set",
		strings.Join(e.List, " "), strings.Join(e.Set, " "), e.Since.UTC().Format(time.DateTime+" MST"))
}

// Unwrap returns the kind.
func (e *SetError) Unwrap() error { return ErrInvalid }

// MemberError says why a node of the list has no vote in its set. It is a
// verdict of nodeset.Membership, not an answer of the node: the node may be
// well. final has ForGood take the node for lost to the call. A call fails at
// once where final errors leave no quorum.
type MemberError struct {
	why   string
	final bool // it does not pass by itself
}

func (e *MemberError) Error() string { return e.why }

var (
	errSetUnknown = &MemberError{why: "has recorded no set of nodes: it is brand-new or has lost its data. If the nodes are brand-new, run \"quorate bootstrap\"; " +
		"else they record their set with the first call that waits, once all of them answer"}
	errSetPending = &MemberError{why: "is about to record its set of nodes; that ends when all nodes of its list answer"}
	errSetLost    = &MemberError{why: "lost its data, and fewer than a majority of the set's nodes can say what it was; " +
		"it gets its place back by itself when all nodes of the set answer: start those that are down"}
	errSetBetween = &MemberError{why: "lost its data while the set was being changed, and too few of the others can say what it was; " +
		"start those that are down with their data"}
	errSetEnters  = &MemberError{why: "enters the set: it gets its place once the others have answered, and votes after the guard time"}
	errSetRetired = &MemberError{why: "is no member of the set; take it from the list of this client"}
	errOtherSet   = &MemberError{why: "is not of the set that this client counts on; it is asked which one it is of"}
	errRejudged   = errors.New("its place in the set is being checked again")
)

// TTLError is a ttl that the guard time of the set does not cover. The set was
// recorded with the guard time of another client (e2e: TestTTLBeyondTheSet).
type TTLError struct{ TTL, Skew, Guard time.Duration }

func (e *TTLError) Error() string {
	return fmt.Sprintf("WithTTL(%v) is too long for this set of nodes, which is recorded with a guard time of %v: a node that lost its data could vote before a lease that it "+
		"forgot has ended; choose WithTTL(%v) or less (half of the guard time less the skew of %v), or lengthen the guard time: quorate members set --guard",
		e.TTL, e.Guard, max(0, e.Guard/2-e.Skew), e.Skew)
}

// Unwrap returns the kind.
func (e *TTLError) Unwrap() error { return ErrInvalid }

// setError returns the error for a verdict that concerns all nodes, nil if
// there is none. Called with s.mu held.
func (s *members) setError(v nodeset.SetVerdict) *SetError {
	if v.Fault != nodeset.SetWrong {
		return nil
	}
	return &SetError{List: s.known.List(), Set: v.Shown.Addrs(), Since: v.Shown.Stamp.Since()}
}

// verdictError returns why a node has no vote, nil if it has. It takes s.mu, so
// no event of Membership may call it.
func (s *members) verdictError(v nodeset.SetVerdict) error {
	if v.Enters() {
		return errSetEnters
	}
	switch v.Fault {
	case nodeset.SetWrong:
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.setError(v)
	case nodeset.SetUnknown:
		if v.Shown == nil {
			return errSetUnknown
		}
		return &MemberError{why: "is of the set " + strings.Join(v.Shown.Addrs(), " ") + "; too few nodes of this client's list say the same: give it the list of the set"}
	case nodeset.SetPending:
		return errSetPending
	case nodeset.SetLost:
		return errSetLost
	case nodeset.SetBetween:
		return errSetBetween
	case nodeset.SetRetired:
		return errSetRetired
	case nodeset.SetAhead:
		return &MemberError{why: "serves a later configuration of the set, " + strings.Join(v.Shown.Addrs(), " ") + ", and the others are asked whether that was decided; " +
			"if this stays, too few of the nodes that this client knows are left: look at that list with \"quorate members list\", and if it is the set give it to this client"}
	case nodeset.SetForeign:
		// It passes where all members have lost their data, and have recorded
		// their set once more (e2e: TestFlushAll).
		return &MemberError{why: "has the data of another set of nodes, " + strings.Join(v.Shown.Addrs(), " ") +
			"; start the server of this set at its address, or move the member to the address that it has: quorate members move"}
	case nodeset.SetOther:
		at := v.Set.Member(v.As)
		if at < 0 { // it has left the set since the node was judged
			return errRejudged
		}
		return &MemberError{final: true, why: fmt.Sprintf("has the data of %s, another member of this set, so its vote would count twice; start it with its own data, "+
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
func (s *members) checkSet(node int, err error) error {
	e, refused := errors.AsType[resp.Error](err)
	if !refused || e.Code() != script.OtherSet {
		return err
	}
	var v nodeset.SetVerdict
	s.change(node, func(m *nodeset.Membership) { m.Refused(node); v = m.Verdict(node) })
	return cmp.Or(s.verdictError(v), error(errOtherSet))
}

// explainDown returns why a node has no vote where the error says no more than
// that its connection was given up to judge the node again. The error of a call
// would name that pause in place of its reason (TestForgetfulNode).
func (s *members) explainDown(node int, err error) error {
	if !errors.Is(err, errRejudged) {
		return err
	}
	return cmp.Or(s.unfit(node), err)
}

// outOfSet returns why a claim with these settings cannot be made, nil if it
// can. Each call asks it, so it reads the copies and takes no lock. set may be
// a primitive's own: two primitives of one Quorum may have different ttls.
func (s *members) outOfSet(set *Settings) error {
	if wrong := s.wrong.Load(); wrong != nil {
		return wrong
	}
	c := s.config.Load()
	switch {
	case c == nil:
	case set.GuardGiven && set.Guard > c.Guard():
		return fmt.Errorf("%w: WithGuard(%v) is longer than the guard time of the set, %v, by which its nodes go: leave WithGuard out, "+
			"or lengthen that of the set: quorate members set --guard", ErrInvalid, set.Guard, c.Guard())
	case set.TTL > c.LongestTTL():
		return &TTLError{TTL: set.TTL, Skew: c.Skew(), Guard: c.LeaseGuard()}
	}
	return nil
}
