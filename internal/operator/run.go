package operator

// One call from its beginning to its end: what it prepares, and its error. How
// it asks the members is in io.go.

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
)

// Run has other nodes be the set of q, while locks are held and waited for. It
// returns when a majority of the new set serves it. An exchange that another
// client has left half-way is finished first.
//
// When ctx ends, or a node that enters cannot be reached for a guard time, the
// exchange is undone if it is this call's and that is still possible. A call
// that dies leaves the set half-way, where it is safe: the next call goes on
// with it.
func Run(ctx context.Context, q *core.Quorum, ask Exchange) error {
	x := &exchange{q: q, set: q.Set, ask: ask}
	stays := false // what the call says of new addresses
	defer func() {
		for _, end := range x.offers {
			end(stays)
		}
	}()
	defer x.standDown()
	if err := q.Operate(ctx, x.standing(ctx)); err != nil {
		return err
	}
	c := x.config()
	if x.before = c; c == nil {
		return &fault.Failure{Err: fmt.Errorf("%w: the nodes are brand-new and have not recorded a set yet: run "+
			"\"quorate bootstrap\"", fault.ErrInvalid)}
	}
	if err := x.prepare(ctx, c); err != nil {
		return &fault.Failure{Err: err}
	}
	// What is wrong is refused first: it is no matter of what is allowed.
	if ask.Allow != nil {
		if err := ask.Allow(c, len(x.goal.Remove) > len(x.goal.Add)); err != nil {
			return err
		}
	}
	x.o = change.Operator{
		Exchange: change.Exchange{Goal: x.goal, Undo: ask.Undo}, TTL: x.set.TTL, NodeTimeout: x.set.NodeTimeout,
		Fanout: q.Driver.Client.Fanout(),
	}
	end := x.run(ctx)
	// After these outcomes the set is unchanged, and stays so.
	stays = end != change.OperatorUndone && end != change.OperatorUnfit
	if err := x.ended(ctx, end); err != nil {
		return &fault.Failure{Err: err}
	}
	return nil
}

// run carries out the call. It is stopped when ctx ends or Close begins. At its
// end, nothing of the call is still running.
func (x *exchange) run(ctx context.Context) change.OperatorEnd {
	stops, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(x.q.Life, cancel)()
	return x.o.Run(asker{x, stops})
}

// ended returns the error of a call that has ended so.
func (x *exchange) ended(ctx context.Context, end change.OperatorEnd) error {
	switch end {
	case change.OperatorDone:
		return nil
	case change.OperatorUndone:
		if c := x.config(); c != nil && !c.Kin(x.before) {
			return &Error{errForgotten, x.state()}
		}
		return &Error{x.why(ctx), "the set is as it was before"}
	case change.OperatorUnfit:
		return fmt.Errorf("%w: %s", fault.ErrInvalid, x.unfit())
	}
	return &Error{x.why(ctx), x.state()}
}

// errForgotten is for a set that was recorded anew while it was being changed:
// what follows in a set is no successor of another one.
var errForgotten = fmt.Errorf("%w: the nodes of the set have lost their data, and a client has recorded "+
	"a new set", fault.ErrInvalid)

// why returns why a change was given up.
func (x *exchange) why(ctx context.Context) error {
	switch o := &x.o; o.Why {
	case change.WhySilent:
		return fmt.Errorf("%w: the new node %s has not answered for %v", fault.ErrNoQuorum,
			o.Member, o.Away.Round(time.Second))
	case change.WhyRefused:
		return fmt.Errorf("%w: %s refused: %w", fault.ErrNoQuorum, o.Member, o.Refusal)
	case change.WhyStopped:
		if ctx.Err() == nil { // Close has stopped it
			return fault.ErrClosed
		}
		return fault.ContextError(ctx)
	}
	return fmt.Errorf("%w: another client has undone the change", fault.ErrInvalid)
}
