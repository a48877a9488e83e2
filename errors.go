package quorate

import (
	"errors"
	"fmt"
	"strings"

	"github.com/quorate/quorate/internal/core"
)

// The kinds of failure, to be tested for with errors.Is. An error may match a
// context's error or a node's error beside its kind.
var (
	// ErrHeld says that somebody else holds it, or is ahead in the queue.
	ErrHeld = core.ErrHeld
	// ErrNoQuorum says that fewer than a majority of the nodes could be asked,
	// or have agreed. Each node's own error is in Error.Nodes.
	ErrNoQuorum = core.ErrNoQuorum
	// ErrLost says that a hold ended by itself: its validity ran out before a
	// majority renewed it, or WithMaxHold ended it.
	ErrLost = core.ErrLost
	// ErrNotHeld says that what was to be released or extended is not held.
	ErrNotHeld = core.ErrNotHeld
	// ErrClosed says that the Quorum has been closed.
	ErrClosed = core.ErrClosed
	// ErrReleased is the cause of a lease's context after its release.
	ErrReleased = core.ErrReleased
	// ErrClock says, beside ErrNoQuorum, that a majority of the nodes contradicts
	// this process's wall clock by more than the skew: it makes no claims until the
	// clock has been set right.
	ErrClock = core.ErrClock
	// ErrInvalid says that a call can never succeed as it is: an empty or
	// unusable name, no nodes, a node twice, a setting that contradicts another.
	ErrInvalid = core.ErrInvalid
)

// Error is how an operation failed. Err is one of the kinds above, alone or
// with the error of the context that ended the wait; errors.Is and errors.As
// see Err and the error of each node.
type Error struct {
	Op     string // "lock", "unlock", ...
	Name   string // of the primitive; empty where there is none
	Err    error
	Votes  int // nodes that agreed
	Needed int // nodes that had to: N/2 + 1
	Nodes  []NodeError
}

// NodeError is what one node had against an operation.
type NodeError struct {
	Node string // address
	Err  error
}

// Error tells the operation, the kind, the votes, each node's own error, and what to do about
// brand-new nodes.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "quorate: %s", e.Op)
	switch {
	case len(e.Name) > core.MaxName: // which is the error
		fmt.Fprintf(&b, " %.32q…", e.Name)
	case e.Name != "" || errors.Is(e.Err, ErrInvalid):
		fmt.Fprintf(&b, " %q", e.Name)
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	if e.Needed > 0 {
		fmt.Fprintf(&b, " (%d of %d votes)", e.Votes, e.Needed)
	}
	for i, n := range e.Nodes {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		fmt.Fprintf(&b, "%s%s %v", sep, n.Node, n.Err)
	}
	if advice := core.Advice(e.Needed, e.Unwrap()); advice != "" && errors.Is(e.Err, ErrNoQuorum) {
		fmt.Fprintf(&b, "; %s", advice)
	}
	return b.String()
}

// Unwrap returns Err and the errors of the nodes.
func (e *Error) Unwrap() []error {
	errs := []error{e.Err}
	for _, n := range e.Nodes {
		errs = append(errs, n.Err)
	}
	return errs
}

// dress makes an Error of what the core returned.
func dress(op, name string, err error) error {
	if err == nil {
		return nil
	}
	e := &Error{Op: op, Name: name, Err: err}
	if f, ok := errors.AsType[*core.Failure](err); ok {
		e.Err, e.Votes, e.Needed = f.Err, f.Votes, f.Needed
		for _, n := range f.Nodes {
			e.Nodes = append(e.Nodes, NodeError{Node: n.Addr, Err: n.Err})
		}
	}
	return e
}

func init() {
	core.Dress = dress
	core.Of = func(q any) *core.Quorum { return q.(*Quorum).made() }
}
