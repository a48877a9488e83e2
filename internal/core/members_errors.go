package core

// This file owns the errors about the set of nodes: of a list that is not that
// of the set, of a node that has no vote in it, and of a ttl that its guard
// time does not cover. Each one that does not pass by itself says what an
// operator is to do.
//
// Invariant: a *MemberError that is final does not pass by itself.

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// SetError says that a client's list of nodes is another one than that of the
// set (docs/membership.md, rule 6). It is an error of all calls and of all
// nodes: a client that went on with the nodes that fit would count majorities
// of another number of nodes. TestBootstrapOfTwoListsAtOnce has two lists that
// share nodes.
type SetError struct {
	List  []string // of the client
	Set   []string // of the nodes
	Odd   string   // a node of List that is not of the set; empty if the lists differ in length
	Since time.Time
}

func (e *SetError) Error() string {
	odd := ""
	if e.Odd != "" {
		odd = fmt.Sprintf(": %s is not one of them", e.Odd)
	}
	return fmt.Sprintf("the list of this client, %s, is not that of its nodes, which are the set %s since %s%s; "+
		"two lists can let two holders in: give every client the list of the set",
		strings.Join(e.List, " "), strings.Join(e.Set, " "), e.Since.UTC().Format(time.DateTime+" MST"), odd)
}

// Unwrap returns the kind.
func (e *SetError) Unwrap() error { return ErrInvalid }

// MemberError says why a node of the list has no vote in its set. It is a
// verdict of protocol.Membership, not an answer of the node: the node may be
// well.
//
// final has forGood take the node for lost to the call. A call fails at once
// where final errors leave no quorum. A final error that passes would fail
// calls that only had to wait, and one that stays and is not final has them
// wait until their contexts end.
type MemberError struct {
	why   string
	final bool // it does not pass by itself
}

func (e *MemberError) Error() string { return e.why }

var (
	errSetPending = &MemberError{why: "is about to be recorded as a node of a set; if that does not end, run \"quorate bootstrap --record\" with that set's list"}
	errSetLost    = &MemberError{why: "lost its data, and fewer than a majority of the set's nodes can say what it was; " +
		"it gets its place back by itself when all nodes of the set answer: start those that are down, or empty servers at their addresses"}
	errSetBetween = &MemberError{why: "lost its data while the nodes of the set were being exchanged, and too few of the others can say what it was; " +
		"start those that are down with their data. If that is lost, stop all clients, empty all nodes of the set, and run \"quorate bootstrap\" with their list"}
	errSetForgotten = &MemberError{why: "too few nodes of the list can say which set it was; " +
		"if the data of the others is lost, stop all clients, empty all nodes of the list, and run \"quorate bootstrap\""}
	errSetElsewhere = &MemberError{why: "was a node of this set, and has the data of another set now; give the set's node back its address, or empty this one", final: true}
	errSetRetired   = &MemberError{why: "is no node of the set any more; take it from the list of this client", final: true}
	errSetFull      = &MemberError{why: "is of a set that has exchanged more nodes than one process can follow; restart this process with the list of the set", final: true}
	errOtherSet     = &MemberError{why: "is not of the set that this client counts on; it is asked which one it is of"}
	errRejudged     = errors.New("the set of nodes has become known")
)

// TTLError is a ttl that the guard time of the set does not cover
// (docs/membership.md, rule 9). The client's own settings may be right for
// themselves: the set was recorded with the guard time of another client. A
// node that lost its data would vote by that one, while a lease of this ttl
// runs (e2e: TestTTLBeyondTheSet).
type TTLError struct{ TTL, Skew, Guard time.Duration }

func (e *TTLError) Error() string {
	return fmt.Sprintf("WithTTL(%v) is too long for this set of nodes, which is recorded with a guard time of %v: a node that lost its data could vote before a lease that it "+
		"forgot has ended; choose WithTTL(%v) or less (half of the guard time less WithSkew(%v)), or record the set with a longer WithGuard when it is new",
		e.TTL, e.Guard, max(0, e.Guard/2-e.Skew), e.Skew)
}

// Unwrap returns the kind.
func (e *TTLError) Unwrap() error { return ErrInvalid }

// setError returns the error for a verdict that concerns all nodes, nil if
// there is none. Called with s.mu held.
func (s *members) setError(v protocol.SetVerdict) *SetError {
	if v.Fault != protocol.SetWrong {
		return nil
	}
	e := &SetError{List: s.known.List(), Set: v.Set.Addrs(), Since: v.Set.Stamp.Since()}
	if len(e.List) == len(e.Set) {
		e.Odd = s.known.Addr(v.Node)
	}
	return e
}

// verdictError returns why a node has no vote, nil if it has. It takes s.mu, so
// no event of Membership may call it.
func (s *members) verdictError(v protocol.SetVerdict) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch v.Fault {
	case protocol.SetWrong:
		return s.setError(v)
	case protocol.SetPending:
		return errSetPending
	case protocol.SetLost:
		// Nothing is regained between two sets (rule 19), so to wait for the
		// other nodes, which errSetLost advises, would not end.
		if v.Set != nil && v.Set.Stage != protocol.Stable {
			return errSetBetween
		}
		return errSetLost
	case protocol.SetElsewhere:
		return errSetElsewhere
	case protocol.SetAstray:
		return astrayError(v)
	case protocol.SetRetired:
		return errSetRetired
	case protocol.SetFull:
		return errSetFull
	case protocol.SetAlias:
		return &MemberError{final: true, why: fmt.Sprintf("reaches %s, which is used by the address that the set records", s.q.addr(v.Other))}
	case protocol.SetCopied:
		return &MemberError{final: true, why: fmt.Sprintf("has a copy of the data of %s, and with it that node's identity, so its vote would count twice; "+
			"empty it before it is used as a node of its own", s.q.addr(v.Other))}
	}
	return nil
}

// astrayError says whose data a node has. The error is not final: it passes
// where servers have changed their addresses with each other, once each has
// been seen.
func astrayError(v protocol.SetVerdict) error {
	node := "another node of this set"
	if k := v.Set.Member(v.Shown); k >= 0 {
		node = v.Set.Members[k].Addr + ", " + node
	}
	return &MemberError{why: fmt.Sprintf("has the data of %s, which was not found to have moved here; give that node back its address, "+
		"or empty this server if it is to be the node of the set at this address", node)}
}

// checkSet returns the error of a command in the words of this client. A node
// that refuses it because of its set is asked which one it is of: Refused has
// it be connected to again, and the next handshake reads its record.
//
// The caller holds no lock: change calls attempts. Mostly it is the reader of
// the node that refused. So a client learns that its set has gone on with its
// first request there, and not with the next connection, which may be weeks
// later. Membership leaves the connection of a node alone that is known to have
// no vote: Bootstrap needs that one (TestSetIsRecordedByABusyClient).
func (s *members) checkSet(node int, err error) error {
	e, refused := errors.AsType[resp.Error](err)
	if !refused || e.Code() != script.OtherSet {
		return err
	}
	var v protocol.SetVerdict
	s.change(node, func(m *protocol.Membership) { m.Refused(node); v = m.Verdict(node) })
	return cmp.Or(s.verdictError(v), error(errOtherSet))
}

// explainDown returns why a node has no vote where the error says no more than
// that its connection was given up to judge the node again. That goes on for as
// long as the node has no vote, so half of all requests find the node without a
// connection. The error of a call would name the pause in place of its reason:
// TestForgetfulNode.
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
	if c := s.config.Load(); c != nil && c.Guard < 2*set.TTL+2*set.Skew {
		return &TTLError{TTL: set.TTL, Skew: set.Skew, Guard: c.Guard}
	}
	return nil
}
