package quorate

import (
	"errors"
	"fmt"
	"strings"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/peers"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/setup"
)

// The kinds of failure. Check for them with [errors.Is], because an error may
// also match the error of a context or of a node.
var (
	// ErrHeld ("held by another client") means that another client holds the name
	// or is ahead of this one in the queue.
	ErrHeld error = errHeld
	// ErrNoQuorum ("no quorum of nodes") means that fewer than a majority of the
	// nodes could be reached or agreed. [Error] includes each node's own error.
	ErrNoQuorum error = errNoQuorum
	// ErrLost ("lock lost") means that a hold ended without a release: its
	// lease expired before a majority of the nodes renewed it, or [WithMaxHold]
	// or [WithoutRenewal] ended it.
	ErrLost error = errLost
	// ErrEvicted ("lock lost: an operator has evicted the holder") means that
	// inspect.Evict or "quorate evict" ended the hold. It also matches
	// [ErrLost].
	ErrEvicted error = errEvicted
	// ErrNotHeld ("not held") means that the caller tried to release or extend
	// something that is not held.
	ErrNotHeld error = errNotHeld
	// ErrClosed ("quorum closed") means that the [Quorum] has been closed.
	ErrClosed error = errClosed
	// ErrReleased ("released") is the cause of a lease's context after the
	// lease has been released; see [Lease].
	ErrReleased error = errReleased
	// ErrInvalid ("invalid use") means that the call can never succeed as it is:
	// the name is not allowed, there are no nodes, a node is listed twice, nodes
	// have different database numbers, a setting is wrong, or the name is already
	// used for another kind of primitive. The message says how to fix it.
	ErrInvalid error = errInvalid
)

// The core makes the kinds: it cannot import this package.
var (
	errHeld, errNoQuorum, errLost, errNotHeld = fault.ErrHeld, fault.ErrNoQuorum, fault.ErrLost, fault.ErrNotHeld
	errClosed, errReleased, errInvalid        = fault.ErrClosed, fault.ErrReleased, fault.ErrInvalid
	errEvicted                                = fault.ErrEvicted
)

// An Error describes a failed operation. Err is one of the kinds, possibly
// joined with the error of the context that ended the wait. [errors.Is] and
// [errors.As] look at Err and at the error of each node. Errors never contain
// passwords.
type Error struct {
	Op     string      // "lock", "unlock", ...
	Name   string      // the primitive's name; empty if there is none
	Err    error       // the kind
	Votes  int         // number of nodes that agreed
	Needed int         // number of nodes that had to agree: N/2 + 1; 0 if no nodes were asked
	Nodes  []NodeError // the nodes that did not agree

	blank int // nodes left out of Nodes: connected, and without a vote yet
}

// A NodeError is one node's reason for not agreeing to an operation.
type NodeError struct {
	Node string // the node's address
	Err  error
}

// Error returns a message with the operation, the name, the kind, the votes,
// each node's own error, and what to do.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "quorate: %s", e.Op)
	switch {
	case len(e.Name) > setup.MaxName: // which is the error
		fmt.Fprintf(&b, " %.32q…", e.Name)
	case e.Name != "":
		fmt.Fprintf(&b, " %q", e.Name)
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	if e.Needed > 0 {
		fmt.Fprintf(&b, " (%s)", e.count())
	}
	for i, n := range e.Nodes {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		fmt.Fprintf(&b, "%s%s %v", sep, resp.OneLine(n.Node), n.Err)
	}
	// Bootstrap itself has failed for another reason than that nobody called it.
	if advice := peers.Advice(e.Needed,
		e.Unwrap()[1:]); advice != "" && errors.Is(e.Err, ErrNoQuorum) && e.Op != "bootstrap" {
		fmt.Fprintf(&b, "; %s", advice)
	}
	return b.String()
}

// count says how many nodes have agreed. If too few could be asked it says how
// many are connected and how many can vote, in the words of the log and Check.
func (e *Error) count() string {
	if !errors.Is(e.Err, ErrNoQuorum) {
		return fmt.Sprintf("%d of %d votes", e.Votes, e.Needed)
	}
	up, votes := e.Votes+e.blank, e.Votes
	for _, n := range e.Nodes {
		if fault.Connected(n.Err) {
			up++
		}
		if fault.CanVote(n.Err) {
			votes++
		}
	}
	return fault.VoteSummary(up, e.Votes+e.blank+len(e.Nodes), votes, e.Needed)
}

// Unwrap returns Err and the errors of the nodes.
func (e *Error) Unwrap() []error {
	errs := []error{e.Err}
	for _, n := range e.Nodes {
		errs = append(errs, n.Err)
	}
	return errs
}

func wrapError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	e := &Error{Op: op, Name: name, Err: err}
	if f, ok := errors.AsType[*fault.Failure](err); ok {
		e.Err, e.Votes, e.Needed, e.blank = f.Err, f.Votes, f.Needed, f.Blank
		for _, n := range f.Nodes {
			e.Nodes = append(e.Nodes, NodeError{Node: n.Addr, Err: n.Err})
		}
	}
	return e
}

func init() {
	core.WrapError = wrapError
	core.CoreOf = func(q any) *core.Quorum { return q.(*Quorum).mustCore() }
	core.Option = func(f setup.Setting) any { return setting{f} }
}
