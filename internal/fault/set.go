package fault

// This file owns the errors about the set of nodes: of a list that is not that
// of the set, of a node that has no vote in it, and of a ttl that its guard
// time does not cover. Each one that does not pass by itself says what an
// operator is to do.
// Invariant: a *MemberError that is final does not pass by itself.

import (
	"errors"
	"fmt"
	"slices"
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
		return fmt.Sprintf("this client's list is %s, but its nodes have begun to record another list, %s: give all clients the same list, and run \"quorate bootstrap\" with it; "+
			"a node that has accepted the other list keeps it until all nodes of that list answer, or until you empty the node",
			Addrs(e.List), Addrs(e.Set))
	}
	if slices.Equal(slices.Sorted(slices.Values(e.List)), slices.Sorted(slices.Values(e.Set))) {
		return fmt.Sprintf("the nodes of this client's list, %s, have recorded more than one set of these addresses, one of them since %s: too few agree for a majority; "+
			"start the servers with the data of one set", Addrs(e.List), e.Since.UTC().Format(time.DateTime+" MST"))
	}
	return fmt.Sprintf("this client's list, %s, does not match its nodes, which have been the set %s since %s: give every client the set's list",
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
		"The nodes record their set on their own once all of them answer a client that uses locks"}
	ErrSetPending = &MemberError{Why: "has accepted a set that is not recorded yet; start the other nodes of its list"}
	ErrSetLost    = &MemberError{Why: "lost its data, and fewer than a majority of the set's nodes can say what it was; " +
		"it rejoins on its own when all nodes of the set answer: start those that are down"}
	ErrSetBetween = &MemberError{Why: "lost its data while the set was being changed, and too few of the other nodes can say what was decided; " +
		"start those that are down, with their data"}
	ErrSetEnters  = &MemberError{Why: "is joining the set; it votes once the other nodes have answered and the guard time is over"}
	ErrSetRetired = &MemberError{Why: "is not a member of the set; remove it from this client's list"}
	ErrOtherSet   = &MemberError{Why: "may belong to another set; the client is asking it"}
	ErrRejudged   = errors.New("reconnecting to verify membership")
)

// TTLError is a ttl that the guard time of the set does not cover. The set was
// recorded with the guard time of another client (e2e: TestTTLBeyondTheSet).
type TTLError struct {
	TTL, Skew, Guard time.Duration
	Development      bool // the set has the settings of the development mode
}

func (e *TTLError) Error() string {
	if e.Development {
		return fmt.Sprintf("this node was first used in development mode, with a guard time of %v, which is too short for WithTTL(%v): "+
			"use ForDevelopment() in this client too or, for production, run quorate members set --guard 20s", e.Guard, e.TTL)
	}
	return fmt.Sprintf("WithTTL(%v) is too long for this set of nodes, whose guard time is %v: a node that lost its data could vote while a lease that it "+
		"forgot is still running; choose WithTTL(%v) or less (half the guard time minus the skew of %v), or raise the guard time: quorate members set --guard",
		e.TTL, e.Guard, max(0, e.Guard/2-e.Skew), e.Skew)
}

// Unwrap returns the kind.
func (e *TTLError) Unwrap() error { return ErrInvalid }
