package operator

// One call from its beginning to its end: what it prepares, and its error. How
// it asks the members is in io.go.

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/nodeset"
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
		if err := ask.Allow(c, Ends{len(x.goal.Remove) > len(x.goal.Add), x.silence(ctx, c)}); err != nil {
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

// silence returns for how long no majority votes once the guard time is longer,
// or 0. A node votes when the new guard time has passed since its memory began
// (rule 10 of the sets).
func (x *exchange) silence(ctx context.Context, c *nodeset.Configuration) time.Duration {
	if x.goal.Shared == nil || x.goal.Shared.Guard <= c.Guard() {
		return 0
	}
	var left []time.Duration
	for _, m := range c.Members {
		if m.Role == nodeset.Leaves {
			continue
		}
		age, err := x.q.Age(ctx, m.Number)
		if err != nil {
			age = 0 // it is down, and may have lost its data
		}
		left = append(left, max(0, x.goal.Shared.Guard-age))
	}
	slices.Sort(left)
	return left[len(left)/2]
}
