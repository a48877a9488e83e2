package core

// This file owns one call of Quorum.Exchange: what the caller asked for, the
// rounds until the set has changed, and the three ways in which the call ends
// without that. What a round does is in exchange_round.go. protocol.Exchange
// decides what follows the configuration that counts, and protocol.Membership
// what each client does then.
//
// Invariant: a call that ends leaves a set that serves. Each configuration on
// the way counts a quorum of the old members, of the new ones, or of both. So a
// call may die between any two rounds, and the next call goes on or undoes it.

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// Exchange is a change of the nodes of a set.
type Exchange struct {
	Add      []string // as ParseNodes takes them; the new nodes are empty servers
	Remove   []string // addresses of members, or URLs that name them
	Move     []Move
	Shared   *protocol.Shared // what is not 0 is to be the set's
	Undo     bool             // what is under way is given up; all else is empty
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
// has no lock. The goroutines that look at the members get none of its fields.
type exchange struct {
	q       *Quorum
	ask     Exchange
	e       protocol.Exchange
	goal    protocol.Change
	counted *protocol.Configuration // that e knows
	shown   ExchangeProgress        // the last one
	disks   []disk                  // of its members
	gone    error                   // why the exchange is given up
	refused error                   // why no other round can help
	blocked bool                    // nothing can be decided, so it cannot be undone either
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
	// Patience bounds how long the call waits for a new node that answered
	// prepare and does not any more (TestNodeThatDiesWhileItEntersIsGivenUp). A
	// guard time is enough for a server that restarts.
	x.e = protocol.Exchange{Patience: max(c.Guard(), 20*q.set.NodeTimeout), Undo: ask.Undo, Rules: rules()}
	if err := x.prepare(ctx, c); err != nil {
		return &Failure{Err: err}
	}
	x.e.Goal = x.goal
	if err := x.run(ctx); err != nil {
		return &Failure{Err: err}
	}
	return nil
}

// Configuration returns the configuration that this client counts on. It waits
// until one is known.
func (q *Quorum) Configuration(ctx context.Context) (*protocol.Configuration, error) {
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
func (q *Quorum) Recorded(ctx context.Context) *protocol.Configuration {
	if q.buckets != nil {
		return q.buckets.all[0].Load().Recorded(ctx)
	}
	_ = q.Ready(ctx)
	return q.members.config.Load()
}

// run goes round until the exchange is over, given up, or ctx ends.
func (x *exchange) run(ctx context.Context) error {
	q := x.q
	// A round asks each member once. Half a node timeout between two rounds is
	// a few commands per second, for the length of the exchange.
	tick := time.NewTicker(max(q.set.NodeTimeout/2, time.Millisecond))
	defer tick.Stop()
	for {
		outcome, err := x.round(ctx)
		switch {
		case outcome == protocol.ExchangeDone:
			return nil
		case outcome == protocol.ExchangeUndone && x.ask.Undo:
			return nil
		case outcome == protocol.ExchangeUndone:
			return x.undone(x.gone)
		case outcome == protocol.ExchangeUnfit:
			return fmt.Errorf("%w: %s", ErrInvalid, x.unfit())
		case x.blocked:
			return &ExchangeError{x.refused, x.state()}
		case x.refused != nil:
			return x.abandon(x.refused)
		// Any other error passes, or ctx ends: a node that is down, a lock of
		// the register that another operator holds. To give up here would leave
		// the set half-way for a lost packet.
		case err != nil:
			q.set.Logger.Debug("quorate: a step of an exchange of nodes has failed and is taken again", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return x.abandon(ContextError(ctx))
		// Close does not undo: that needs the nodes, and Close is about to end
		// their connections.
		case <-q.closing:
			return &ExchangeError{ErrClosed, x.state()}
		}
	}
}

// undone is the error of an exchange that was given up, by this client or by
// another one.
func (x *exchange) undone(why error) error {
	if why == nil {
		why = fmt.Errorf("%w: another client has undone the exchange", ErrInvalid)
	}
	return &ExchangeError{why, "the set is as it was before"}
}

// abandon undoes what this call has begun, if that is possible, within a bound.
// A change that another client has begun is left as it is: that client may be
// at work, and the next call of any operator goes on with it or undoes it.
func (x *exchange) abandon(why error) error {
	// The step that was decided last may not have been looked at yet.
	if c := x.q.members.config.Load(); c != nil {
		x.count(c)
	}
	if x.gone = why; x.e.Mine() && !x.ask.Undo {
		x.e.Undo = true
		// The caller's context is over, and to undo takes a lock, a read and a
		// put at the nodes. A bound of its own lets Ctrl-C leave the set as it
		// was, where the nodes answer, and ends soon where they do not.
		ctx, cancel := context.WithTimeout(context.Background(), x.q.Rounds(&x.q.set, 8)+2*x.q.set.NodeTimeout)
		defer cancel()
		for ctx.Err() == nil && !x.q.isClosed() {
			switch outcome, _ := x.round(ctx); outcome {
			// The last step was decided before the undo: the change is carried
			// out, and that is no error.
			case protocol.ExchangeDone:
				return nil
			case protocol.ExchangeUndone:
				return x.undone(why)
			}
			select {
			case <-time.After(x.q.set.NodeTimeout / 4):
			case <-ctx.Done():
			}
		}
	}
	return &ExchangeError{why, x.state()}
}
