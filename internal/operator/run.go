package operator

// The loop of a call: change.Operator gets its events until the call ends. The
// steps are in step.go.

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/peers"
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
	if err := q.Operate(ctx); err != nil {
		return err
	}
	x := &exchange{q: q, set: q.Set, ask: ask}
	c := x.config()
	if c == nil {
		return &fault.Failure{Err: fmt.Errorf("%w: the nodes are brand-new and have not recorded a set yet: run \"quorate bootstrap\"", fault.ErrInvalid)}
	}
	stays := false // what the call says of new addresses
	defer func() {
		for _, end := range x.offers {
			end(stays)
		}
	}()
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
		Fanout: q.Driver.Client.Fanout(), Ballot: func() nodeset.Ballot { return nodeset.NewBallot(time.Now(), peers.Chance(), "") },
	}
	err := x.run(ctx)
	end := x.o.End()
	stays = end != change.OperatorUndone && end != change.OperatorUnfit // else the set is as before, and stays so
	if err != nil {
		return &fault.Failure{Err: err}
	}
	return nil
}

// run passes events to the call until it is over. At its end, nothing of the
// call is still running.
func (x *exchange) run(ctx context.Context) error {
	x.tells = make(chan func())
	x.steps, x.cancel = context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		x.cancel()
		x.under.Wait()
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for stop := ctx.Done(); ; {
		now := x.q.Now()
		x.o.Tick(now, x.config())
		x.carryOut()
		if x.o.End() != change.OperatorGoesOn {
			return x.ended()
		}
		x.report()
		timer.Reset(x.o.Wake().Sub(now))
		select {
		case told := <-x.tells:
			told()
		case <-timer.C:
		case <-stop:
			stop, x.stopped = nil, fault.ContextError(ctx)
			x.cancel()
			x.steps, x.cancel = context.WithCancel(context.WithoutCancel(ctx))
			x.o.Abandon(x.q.Now(), x.config())
		// Close does not undo: that needs the nodes, and Close is about to end
		// their connections.
		case <-x.q.Over:
			return &Error{fault.ErrClosed, x.state()}
		}
	}
}

// ended returns the error of a finished call.
func (x *exchange) ended() error {
	switch x.o.End() {
	case change.OperatorDone:
		return nil
	case change.OperatorUndone:
		return &Error{x.why(), "the set is as it was before"}
	case change.OperatorUnfit:
		return fmt.Errorf("%w: %s", fault.ErrInvalid, x.unfit())
	}
	return &Error{x.why(), x.state()}
}

// why returns why a change was given up.
func (x *exchange) why() error {
	switch o := &x.o; o.Why {
	case change.WhySilent:
		return fmt.Errorf("%w: the new node %s has not answered for %v", fault.ErrNoQuorum, o.Member, o.Away.Round(time.Second))
	case change.WhyRefused:
		return fmt.Errorf("%w: %s refused: %w", fault.ErrNoQuorum, o.Member, x.refused[o.Member])
	case change.WhyStopped:
		return x.stopped
	}
	return fmt.Errorf("%w: another client has undone the change", fault.ErrInvalid)
}
