package core

// This file owns one call of Quorum.Exchange: what the caller asked for, and
// the errors that it ends with. change.Operator decides what the call does,
// and when. Its steps are in exchange_step.go.

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/nodeset"
)

// Exchange is a change of the nodes of a set.
type Exchange struct {
	Add      []string // as ParseNodes takes them; the new nodes are empty servers
	Remove   []string // addresses of members, or URLs that name them
	Move     []Move
	Shared   *nodeset.Shared // what is not 0 is to be the set's
	Undo     bool            // what is under way is given up; all else is empty
	Progress func(ExchangeProgress)
}

// Move is a member that gets another address.
type Move struct{ From, To string }

// ExchangeProgress is how far an exchange has come. It is reported when that
// changes.
type ExchangeProgress struct {
	Epoch uint64
	Stage string        // stable, learning or joint
	Await string        // what is waited for; empty: nothing
	Left  time.Duration // how long that takes at least
}

// ExchangeError is an exchange that was not carried out, and the state of the
// set.
type ExchangeError struct {
	Why   error
	State string
}

func (e *ExchangeError) Error() string { return e.Why.Error() + "; " + e.State }

// Unwrap returns why.
func (e *ExchangeError) Unwrap() error { return e.Why }

// exchange is one call of Exchange. Only its caller's goroutine uses it, so it
// has no lock. The goroutines of its steps get none of its fields.
type exchange struct {
	q       *Quorum
	ask     Exchange
	o       change.Operator
	goal    change.Goal
	shown   ExchangeProgress // the last one
	stopped error            // the end of the caller's context
	refused map[string]error // by address: what a node refuses for good

	steps  context.Context // of the steps under way
	cancel context.CancelFunc
	under  sync.WaitGroup
	tells  chan func() // what has become of a step
}

// Exchange has other nodes be the set, while locks are held and waited for. It
// returns when a majority of the new set serves it. An exchange that another
// client has left half-way is finished first.
//
// When ctx ends, or a node that enters cannot be reached for a guard time, the
// exchange is undone if it is this call's and that is still possible. A call
// that dies leaves the set half-way, where it is safe: the next call goes on
// with it.
func (q *Quorum) Exchange(ctx context.Context, ask Exchange) error {
	switch {
	case q.isClosed():
		return &Failure{Err: ErrClosed}
	case q.buckets != nil:
		return &Failure{Err: fmt.Errorf("%w: a set with clusters cannot exchange its nodes", ErrInvalid)}
	}
	// Without a majority nothing can be decided. Ready also fails for a list
	// that is another one than the set's, so such a client never proposes a
	// configuration. A ttl that is too long for the set is none here: the
	// remedy for it is an exchange that lengthens the guard time, see succeed.
	own := q.set
	own.TTL = 0
	if err := q.readyWith(ctx, &own); err != nil {
		return err
	}
	x := &exchange{q: q, ask: ask}
	c := q.members.config.Load()
	if c == nil {
		return &Failure{Err: fmt.Errorf("%w: the nodes are brand-new and have recorded no set yet: run \"quorate bootstrap\"", ErrInvalid)}
	}
	if err := x.prepare(ctx, c); err != nil {
		return &Failure{Err: err}
	}
	x.o = change.Operator{
		Exchange: change.Exchange{Goal: x.goal, Undo: ask.Undo, Rules: rules()}, TTL: q.set.TTL, NodeTimeout: q.set.NodeTimeout,
		Fanout: q.driver.client.Fanout(), Ballot: func() nodeset.Ballot { return nodeset.NewBallot(time.Now(), chance(), "") },
	}
	if err := x.run(ctx); err != nil {
		return &Failure{Err: err}
	}
	return nil
}

// Configuration returns the configuration that this client counts on. It waits
// until one is known.
func (q *Quorum) Configuration(ctx context.Context) (*nodeset.Configuration, error) {
	switch {
	case q.isClosed():
		return nil, &Failure{Err: ErrClosed}
	case q.buckets != nil:
		return q.buckets.all[0].Load().Configuration(ctx)
	}
	if err := q.members.await(ctx, true); err != nil {
		return nil, err
	}
	return q.members.config.Load(), nil
}

// Recorded returns the configuration that this client counts on, nil if it is
// found out that the nodes have recorded none. It changes nothing.
func (q *Quorum) Recorded(ctx context.Context) *nodeset.Configuration {
	if q.buckets != nil {
		return q.buckets.all[0].Load().Recorded(ctx)
	}
	_ = q.Ready(ctx)
	return q.members.config.Load()
}

// run gives the call its events until it is over. At its end nothing of it is
// under way any more.
func (x *exchange) run(ctx context.Context) error {
	q := x.q
	x.tells = make(chan func())
	x.steps, x.cancel = context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		x.cancel()
		x.under.Wait()
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for stop := ctx.Done(); ; {
		now := q.now()
		x.o.Tick(now, q.members.config.Load())
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
			stop, x.stopped = nil, ContextError(ctx)
			x.cancel()
			x.steps, x.cancel = context.WithCancel(context.WithoutCancel(ctx))
			x.o.Abandon(q.now(), q.members.config.Load())
		// Close does not undo: that needs the nodes, and Close is about to end
		// their connections.
		case <-q.closing:
			return &ExchangeError{ErrClosed, x.state()}
		}
	}
}

// ended is the error of a call that is over.
func (x *exchange) ended() error {
	switch x.o.End() {
	case change.OperatorDone:
		return nil
	case change.OperatorUndone:
		return &ExchangeError{x.why(), "the set is as it was before"}
	case change.OperatorUnfit:
		return fmt.Errorf("%w: %s", ErrInvalid, x.unfit())
	}
	return &ExchangeError{x.why(), x.state()}
}

// why is why a change was given up.
func (x *exchange) why() error {
	switch o := &x.o; o.Why {
	case change.WhySilent:
		return fmt.Errorf("%w: %s is to be added and has not answered for %v", ErrNoQuorum, o.Member, o.Away.Round(time.Second))
	case change.WhyRefused:
		return fmt.Errorf("%w: %s refuses: %w", ErrNoQuorum, o.Member, x.refused[o.Member])
	case change.WhyStopped:
		return x.stopped
	}
	return fmt.Errorf("%w: another client has undone the exchange", ErrInvalid)
}
