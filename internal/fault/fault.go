// Package fault holds the library's errors and their texts. A Failure carries a
// sentinel that says what went wrong and, for each node, that node's part in
// it. No decision depends on an error's text, except in Permanent.
//
//	fault.go  the sentinels, Failure, and waits that a context ended
//	node.go   errors of a single node, and which of them are permanent
//	set.go    errors about the set of nodes and a client's list of them
package fault

import (
	"context"
	"errors"
	"fmt"

	"github.com/quorate/quorate/internal/transport"
)

// The sentinels that the root package exports; see there.
var (
	ErrHeld     = errors.New("held by another client")
	ErrNoQuorum = errors.New("no quorum of nodes")
	ErrLost     = errors.New("lock lost")
	ErrNotHeld  = errors.New("not held")
	ErrClosed   = errors.New("quorum closed")
	ErrReleased = errors.New("released")
	ErrInvalid  = errors.New("invalid use")
	ErrEvicted  = fmt.Errorf("%w: an operator has evicted the holder", ErrLost)
)

// Failure says why an operation failed. The root package converts it to its
// exported Error. It is complete when it is returned and does not change after
// that.
type Failure struct {
	Err    error // the sentinel, or the sentinel joined with the context's error
	Votes  int
	Needed int
	Nodes  []NodeFailure
	Blank  int // connected nodes that cannot vote yet; they are not in Nodes
}

// NodeFailure is one node's part in a failure.
type NodeFailure struct {
	Addr string
	Err  error
}

func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap lets errors.Is and errors.As see the sentinel and each node's error.
func (f *Failure) Unwrap() []error {
	errs := []error{f.Err}
	for _, n := range f.Nodes {
		errs = append(errs, n.Err)
	}
	return errs
}

// CutShort returns the Failure of a wait inside the process that ctx ended.
func CutShort(sentinel error, ctx context.Context) *Failure {
	return (&Failure{Err: sentinel}).Cut(ctx)
}

// Cut records in f that ctx ended the wait, and returns f.
func (f *Failure) Cut(ctx context.Context) *Failure {
	f.Err = Cut(f.Err, ContextError(ctx))
	return f
}

// Uncut strips the context error from err. It is for contexts that are internal
// to the library: to a caller the error would look as if its own context had
// ended.
func Uncut(err error) error {
	if f, ok := errors.AsType[*Failure](err); ok {
		if c, ok := errors.AsType[*cutShort](f.Err); ok {
			f.Err = c.sentinel
		}
	}
	return err
}

// ContextError returns ctx.Err(), joined with the context's cause if that is
// another error.
func ContextError(ctx context.Context) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); !errors.Is(cause, err) {
		err = errors.Join(err, cause)
	}
	return err
}

// Cut wraps sentinel, what the wait was for, and by, the error of the context
// that ended it. The result matches both.
func Cut(sentinel, by error) error { return &cutShort{sentinel, by} }

// cutShort is the error of a wait that a context ended.
type cutShort struct{ sentinel, ctx error }

func (e *cutShort) Error() string { return e.ctx.Error() + " while waiting: " + e.sentinel.Error() }

func (e *cutShort) Unwrap() []error { return []error{e.sentinel, e.ctx} }

// VoteSummary formats how many nodes are connected and how many of them can
// vote. Every message that reports these numbers uses it.
func VoteSummary(connected, nodes, voting, needed int) string {
	return fmt.Sprintf("%d of %d nodes connected, %d can vote, %d needed", connected, nodes, voting, needed)
}

// Connected reports whether a node that returned err is connected.
func Connected(err error) bool {
	return !errors.Is(err, transport.ErrDown) && !errors.Is(err, transport.ErrBroken) &&
		!errors.Is(err, transport.ErrClosed)
}

// CanVote reports whether a node that returned err is able to vote: it only
// withheld its vote from this claim, because others are ahead of it.
func CanVote(err error) bool { return errors.Is(err, ErrAhead) || errors.Is(err, ErrForeign) }
