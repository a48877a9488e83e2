// Package operator changes the set of nodes of a client: it has package change
// decide, and carries that out on the servers. Package members and the command
// import it. A program that uses locks only does not.
package operator

// This file owns one call of Run: what the caller asked for, and
// the errors that it ends with. change.Operator decides what the call does,
// and when. Its steps are in step.go.

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/peers"
	"github.com/quorate/quorate/internal/rule"
	"github.com/quorate/quorate/internal/setup"
)

// Exchange is a change of the nodes of a set.
type Exchange struct {
	Add      []string // as ParseNodes takes them; the new nodes are empty servers
	Remove   []string // addresses of members, or URLs that name them
	Move     []Move
	Shared   *nodeset.Shared // what is not 0 is to be the set's
	Undo     bool            // what is under way is given up; all else is empty
	Progress func(Progress)

	// Allow is called once with the set as it is, before anything is done. An
	// error of it is that of Run. nil: all is allowed.
	Allow func(c *nodeset.Configuration) error
}

// Move is a member that gets another address.
type Move struct{ From, To string }

// Progress is how far an exchange has come. It is reported when that
// changes.
type Progress struct {
	Epoch uint64
	Stage string        // stable, learning or joint
	Await string        // what is waited for; empty: nothing
	Left  time.Duration // how long that takes at least
}

// Error is an exchange that was not carried out, and the state of the
// set.
type Error struct {
	Why   error
	State string
}

func (e *Error) Error() string { return e.Why.Error() + "; " + e.State }

// Unwrap returns why.
func (e *Error) Unwrap() error { return e.Why }

// exchange is one call of Run. Only its caller's goroutine uses it, so it
// has no lock. The goroutines of its steps get none of its fields.
type exchange struct {
	q       *core.Quorum
	set     setup.Settings
	ask     Exchange
	o       change.Operator
	goal    change.Goal
	shown   Progress         // the last one
	stopped error            // the end of the caller's context
	refused map[string]error // by address: what a node refuses for good
	offers  []func(stays bool)

	steps  context.Context // of the steps under way
	cancel context.CancelFunc
	under  sync.WaitGroup
	tells  chan func() // what has become of a step
}

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
		return &fault.Failure{Err: fmt.Errorf("%w: the nodes are brand-new and have recorded no set yet: run \"quorate bootstrap\"", fault.ErrInvalid)}
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
		if err := ask.Allow(c); err != nil {
			return err
		}
	}
	x.o = change.Operator{
		Exchange: change.Exchange{Goal: x.goal, Undo: ask.Undo, Rules: rule.Protocol()}, TTL: x.set.TTL, NodeTimeout: x.set.NodeTimeout,
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

// config is what the client counts on now, nil for nothing.
func (x *exchange) config() *nodeset.Configuration { return x.q.Members.Config.Load() }

// run gives the call its events until it is over. At its end nothing of it is
// under way any more.
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

// ended is the error of a call that is over.
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

// why is why a change was given up.
func (x *exchange) why() error {
	switch o := &x.o; o.Why {
	case change.WhySilent:
		return fmt.Errorf("%w: %s is to be added and has not answered for %v", fault.ErrNoQuorum, o.Member, o.Away.Round(time.Second))
	case change.WhyRefused:
		return fmt.Errorf("%w: %s refuses: %w", fault.ErrNoQuorum, o.Member, x.refused[o.Member])
	case change.WhyStopped:
		return x.stopped
	}
	return fmt.Errorf("%w: another client has undone the exchange", fault.ErrInvalid)
}
