package fault

// This file owns the errors about the set of nodes: of a list that is not that
// of the set, of a node that has no vote in it, and of a ttl that its guard
// time does not cover. Each one that does not pass by itself says what an
// operator is to do.
// Invariant: a *MemberError that is final does not pass by itself.

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/resp"
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
			Addrs(e.List), Addrs(e.Set))
	}
	return fmt.Sprintf("the list of this client, %s, is not that of its nodes, which are the set %s since %s: give every client the list of the set",
		Addrs(e.List), Addrs(e.Set), e.Since.UTC().Format(time.DateTime+" MST"))
}

// Addrs lists addresses, which a node may have chosen, in one line.
func Addrs(list []string) string {
	safe := make([]string, len(list))
	for i, addr := range list {
		safe[i] = resp.OneLine(addr)
	}
	return strings.Join(safe, " ")
}

// Unwrap returns the kind.
func (e *SetError) Unwrap() error { return ErrInvalid }

// MemberError says why a node of the list has no vote in its set. It is a
// verdict of nodeset.Membership: the node may be well. A call fails at once
// where final errors leave no quorum.
type MemberError struct {
	Why   string
	Final bool // it does not pass by itself
}

func (e *MemberError) Error() string { return e.Why }

// IsVerdict reports whether err says that a node that answers has no vote in
// the set.
func IsVerdict(err error) bool {
	_, is := errors.AsType[*MemberError](err)
	return is
}

var (
	ErrSetUnknown = &MemberError{Why: "has recorded no set of nodes: it is brand-new or has lost its data. " +
		"The nodes record their set by themselves, once all of them answer a client that uses locks"}
	ErrSetPending = &MemberError{Why: "is about to record its set of nodes; that ends when all nodes of its list answer"}
	ErrSetLost    = &MemberError{Why: "lost its data, and fewer than a majority of the set's nodes can say what it was; " +
		"it gets its place back by itself when all nodes of the set answer: start those that are down"}
	ErrSetBetween = &MemberError{Why: "lost its data while the set was being changed, and too few of the others can say what it was; " +
		"start those that are down with their data"}
	ErrSetEnters  = &MemberError{Why: "enters the set: it gets its place once the others have answered, and votes after the guard time"}
	ErrSetRetired = &MemberError{Why: "is no member of the set; take it from the list of this client"}
	ErrOtherSet   = &MemberError{Why: "is not of the set that this client counts on; it is asked which one it is of"}
	ErrRejudged   = errors.New("its place in the set is being checked again")
)

// TTLError is a ttl that the guard time of the set does not cover. The set was
// recorded with the guard time of another client (e2e: TestTTLBeyondTheSet).
type TTLError struct {
	TTL, Skew, Guard time.Duration
	Development      bool // the set has the settings of the development mode
}

func (e *TTLError) Error() string {
	if e.Development {
		return fmt.Sprintf("this node was recorded in development mode, with a guard time of %v, which does not cover WithTTL(%v): "+
			"give this client ForDevelopment(); or, for production, record other settings: quorate members set --guard 20s", e.Guard, e.TTL)
	}
	return fmt.Sprintf("WithTTL(%v) is too long for this set of nodes, which is recorded with a guard time of %v: a node that lost its data could vote before a lease that it "+
		"forgot has ended; choose WithTTL(%v) or less (half of the guard time less the skew of %v), or lengthen the guard time: quorate members set --guard",
		e.TTL, e.Guard, max(0, e.Guard/2-e.Skew), e.Skew)
}

// Unwrap returns the kind.
func (e *TTLError) Unwrap() error { return ErrInvalid }
