package fault

// Errors about the set of nodes: a client's list that does not match the set, a
// node without a vote in the set, and a TTL that the set's guard time does not
// cover. An error that an operator has to clear says what to do.
// Invariant: a *MemberError with Final set does not clear by itself.

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/resp"
)

// SetError is the error of a client whose list of nodes differs from the set.
// Every call fails with it, and every node reports it.
type SetError struct {
	List  []string // the client's list
	Set   []string // the set that the nodes recorded
	Since time.Time
	Begun bool // Set is not recorded yet: its recording has begun but not ended
}

func (e *SetError) Error() string {
	if e.Begun {
		return fmt.Sprintf("this client's list is %s, but its nodes have begun to record another list, %s: give "+
			"all clients the same list, and run \"quorate bootstrap\" with it; a node that has accepted the other "+
			"list keeps it until all nodes of that list answer, or until you empty the node",
			Addrs(e.List), Addrs(e.Set))
	}
	if slices.Equal(slices.Sorted(slices.Values(e.List)), slices.Sorted(slices.Values(e.Set))) {
		return fmt.Sprintf("the nodes of this client's list, %s, have recorded more than one set of these "+
			"addresses, one of them since %s: too few agree for a majority; start the servers with the data of one "+
			"set", Addrs(e.List), e.Since.UTC().Format(time.DateTime+" MST"))
	}
	return fmt.Sprintf("this client's list, %s, does not match its nodes, which have formed the set %s since "+
		"%s: give every client the set's list",
		Addrs(e.List), Addrs(e.Set), e.Since.UTC().Format(time.DateTime+" MST"))
}

// Addrs joins addresses into one line. A node may have chosen them, so each is
// made safe to print.
func Addrs(list []string) string {
	safe := make([]string, len(list))
	for i, addr := range list {
		safe[i] = resp.OneLine(addr)
	}
	return strings.Join(safe, " ")
}

// Unwrap returns ErrInvalid.
func (e *SetError) Unwrap() error { return ErrInvalid }

// MemberError says why a node of the list has no vote in the set. It is a
// verdict of nodeset.Membership; the server itself may be healthy. A call fails
// at once if final errors leave no quorum.
type MemberError struct {
	Why   string
	Final bool // it does not clear by itself
}

func (e *MemberError) Error() string { return e.Why }

// IsVerdict reports whether err is a MemberError: the node answers but has no
// vote in the set.
func IsVerdict(err error) bool {
	_, is := errors.AsType[*MemberError](err)
	return is
}

var (
	ErrSetUnknown = &MemberError{Why: "has recorded no set of nodes: it is brand-new or has lost its data. " +
		"The nodes record their set on their own once all of them answer a client that uses locks"}
	ErrSetPending = &MemberError{Why: "has accepted a set that is not recorded yet; start the other nodes of " +
		"its list"}
	ErrSetLost = &MemberError{Why: "lost its data, and fewer than a majority of the set's nodes can say " +
		"what it was; it rejoins on its own when all nodes of the set answer a client that uses locks: start " +
		"those that are down, with or without their data"}
	ErrSetBetween = &MemberError{Why: "lost its data while the set was being changed, and too few of the other " +
		"nodes can say what was decided; start those that are down, with their data; if that is impossible, " +
		"empty those that are left, and restart all clients"}
	ErrSetEnters = &MemberError{Why: "is joining the set; it votes once the other nodes have answered and the " +
		"guard time is over"}
	ErrSetRetired = &MemberError{Why: "is not a member of the set; remove it from this client's list"}
	ErrOtherSet   = &MemberError{Why: "may belong to another set; the client is asking it"}
	ErrRejudged   = errors.New("reconnecting to verify membership")
)

// SetRefusedError is the error of a node without a vote that was asked to record
// its set, and refused to. Verdict is why it has no vote, and Err is the server's
// error.
type SetRefusedError struct{ Verdict, Err error }

func (e *SetRefusedError) Error() string {
	return "has not recorded a set of nodes, and refused to record one: " + e.Err.Error() + ": " +
		cmp.Or(WriteRemedy(e.Err), "look at its log")
}

func (e *SetRefusedError) Unwrap() []error { return []error{e.Verdict, e.Err} }

// TTLError is the error for a TTL that the set's guard time does not cover. The
// set was recorded with another client's guard time (e2e: TestTTLBeyondTheSet).
type TTLError struct {
	TTL, Skew, Guard time.Duration
	Development      bool // the set was recorded in development mode
}

func (e *TTLError) Error() string {
	if e.Development {
		return fmt.Sprintf("this node was first used in development mode, with a guard time of %v, which is too "+
			"short for WithTTL(%v): use ForDevelopment() in this client too or, for production, run quorate members "+
			"set --guard %v, then quorate members set --skew 2s --yes", e.Guard,
			e.TTL, max(20*time.Second, 2*e.TTL+4*time.Second))
	}
	return fmt.Sprintf("WithTTL(%v) is too long for this set of nodes, whose guard time is %v: a node that "+
		"lost its data could vote while a lease that it forgot is still running; choose WithTTL(%v) or less "+
		"(half the guard time minus the skew of %v), or raise the guard time: quorate members set --guard",
		e.TTL, e.Guard, max(0, e.Guard/2-e.Skew), e.Skew)
}

// Unwrap returns ErrInvalid.
func (e *TTLError) Unwrap() error { return ErrInvalid }
