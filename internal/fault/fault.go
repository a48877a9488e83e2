// Package fault owns what errors say. A Failure has a sentinel that says what
// is the matter, and for each node what that node had to do with it. No
// decision depends on a text here, save ForGood's.
//
//	fault.go  the sentinels, Failure, and a wait that was cut short
//	node.go   what a node is no use for, and whether that passes
//	set.go    the set of nodes, and a client's list of it
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

// Failure is why an operation failed, before the root package dresses it as
// its exported Error.
// It is complete when it is returned, and is not changed afterwards.
type Failure struct {
	Err    error // the sentinel, or the sentinel joined with the context's error
	Votes  int
	Needed int
	Nodes  []NodeFailure
	Blank  int // nodes left out of Nodes: they are connected, and have no vote yet
}

// NodeFailure is what one node had to do with it.
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

// CutShort is the error of a wait inside the process that a context ended.
func CutShort(sentinel error, ctx context.Context) *Failure {
	return (&Failure{Err: sentinel}).Cut(ctx)
}

// Cut says that the context ended what f is about.
func (f *Failure) Cut(ctx context.Context) *Failure {
	f.Err = Cut(f.Err, ContextError(ctx))
	return f
}

// Uncut takes off an error what a context has cut short: one of the library's
// own. To a caller it would look like the end of its own context.
func Uncut(err error) error {
	if f, ok := errors.AsType[*Failure](err); ok {
		if c, ok := errors.AsType[*cutShort](f.Err); ok {
			f.Err = c.sentinel
		}
	}
	return err
}

// ContextError is the context's error, with its cause where that says more.
func ContextError(ctx context.Context) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); !errors.Is(cause, err) {
		err = errors.Join(err, cause)
	}
	return err
}

func Cut(sentinel, by error) error { return &cutShort{sentinel, by} }

// cutShort is a wait that a context ended, and what was waited for.
type cutShort struct{ sentinel, ctx error }

func (e *cutShort) Error() string { return e.ctx.Error() + " while waiting: " + e.sentinel.Error() }

func (e *cutShort) Unwrap() []error { return []error{e.sentinel, e.ctx} }

// Standing says how many nodes this client is connected to, and how many of
// these can vote: two numbers, in the same words wherever they are told.
func Standing(connected, nodes, voting, needed int) string {
	return fmt.Sprintf("%d of %d nodes connected, %d can vote, %d needed", connected, nodes, voting, needed)
}

// Connected reports whether a node that has err against it is connected.
func Connected(err error) bool {
	return !errors.Is(err, transport.ErrDown) && !errors.Is(err, transport.ErrBroken) && !errors.Is(err, transport.ErrClosed)
}

// CanVote reports whether a node that has err against it can vote: it has no
// vote for one claim, as others are ahead there.
func CanVote(err error) bool { return errors.Is(err, ErrAhead) || errors.Is(err, ErrForeign) }
