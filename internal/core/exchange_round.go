package core

// This file owns one round of an exchange: it asks each member how far it is,
// lets protocol.Exchange propose what follows, and has the nodes decide it.
//
// Invariant: what follows a configuration is decided by the register of that
// configuration, under its lock. Two callers that exchange nodes at the same
// time therefore agree on each step, and each carries on what the other one
// decided.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
)

// round looks at the nodes once, and goes on with the exchange if it is time.
//
// Invariant: the configuration is read once, at the beginning. What the nodes
// say is about that one, and what is proposed follows it. If another client's
// step begins to count meanwhile, the register of the old one answers with it.
func (x *exchange) round(ctx context.Context) (protocol.ExchangeOutcome, error) {
	q := x.q
	c := q.members.config.Load()
	if c == nil {
		return protocol.ExchangeGoesOn, errors.New("every node of the list has lost its data")
	}
	// Invariant: x.e counts on c before it gets what the members of c say. They
	// are known to it by their places in the configuration, and the next one
	// has others there.
	x.count(c)
	left := x.look(ctx, c)
	next, ask := x.e.Propose(q.now(), protocol.NewBallot(time.Now(), chance(), ""))
	// GaveUp names the member in each round from then on, by its place in the
	// configuration of that moment. gone keeps what was said first, or the end
	// of the caller's context, which abandon has put there.
	if k, silent := x.e.GaveUp(); k >= 0 && x.gone == nil {
		x.gone = fmt.Errorf("%w: %s is to be added and has not answered for %v", ErrNoQuorum, c.Members[k].Addr, silent.Round(time.Second))
	}
	if o := x.e.Outcome(); o != protocol.ExchangeGoesOn {
		return o, nil
	}
	x.report(c, next, left)
	if !ask {
		return protocol.ExchangeGoesOn, nil
	}
	return protocol.ExchangeGoesOn, x.decide(ctx, c, next)
}

// count has the exchange count on the configuration that the client counts on.
// The pointer tells one configuration from another: each step makes a new one.
// It changes as well when a member turns out to be a node by another name, and
// then the members are looked at afresh, which costs one round.
func (x *exchange) count(c *protocol.Configuration) {
	if c != x.counted {
		x.e.Decided(x.q.now(), c)
		x.counted, x.disks = c, make([]disk, len(c.Members))
	}
}

// decide has what follows c decided, or read if next is nil, and counts on it.
//
// Invariant: this client counts on what the register says, never on what it
// proposed. An operator that died may have had another change decided, which no
// node shows yet.
func (x *exchange) decide(ctx context.Context, c, next *protocol.Configuration) error {
	decided, err := x.q.succeed(ctx, c, next)
	if f, is := errors.AsType[*Failure](err); is {
		x.refuse(c, f.Nodes)
	}
	switch {
	case err != nil:
		return err
	case decided == nil:
		x.e.Read()
		return nil
	}
	// The operator's client follows like every other: Membership has the
	// members moved. If this process dies before the first one moves, no node
	// shows the decision. The register keeps it, and the next operator finds it
	// there (TestDecisionThatNoNodeShowsIsUndone).
	x.q.members.change(-1, func(m *protocol.Membership) { m.Decide(decided) })
	return nil
}

// look asks each member how far it is. It returns the longest guard time that a
// node has left which enters. All are asked at once, so a node that does not
// answer costs a round its own timeout and no more. A member that this client
// has no connection to counts as silent.
func (x *exchange) look(ctx context.Context, c *protocol.Configuration) (left time.Duration) {
	q := x.q
	// Each goroutine writes its own element of looks. x.e gets the results
	// below, after all have ended: it is not safe for concurrent use.
	looks, saved := make([]protocol.RepairResult, len(c.Members)), make([]bool, len(c.Members))
	var all sync.WaitGroup
	asked := q.now()
	for k, member := range c.Members {
		looks[k].Err = errNoAnswer
		// follow makes a node after Membership has given it a number, so there
		// may be none yet.
		if member.Number >= q.nodes.size() {
			continue
		}
		all.Go(func() {
			n := q.nodes.at(member.Number)
			if looks[k] = n.lookAs(ctx, c.Stamp); looks[k].Err == nil && x.e.Saves(k) {
				ctx, cancel := context.WithTimeout(ctx, n.timeout(&q.set))
				defer cancel()
				saved[k] = x.disks[k].saved(ctx, n)
			}
		})
	}
	all.Wait()
	now := q.now()
	var failed []NodeFailure
	for k, l := range looks {
		if l.Err != nil {
			failed = append(failed, NodeFailure{Addr: c.Members[k].Addr, Err: l.Err})
			x.e.Silent(now, k)
			continue
		}
		x.e.Moved(now, asked, k, saved[k])
		x.e.Looked(k, l.Wait == 0, l.CaughtUp)
		if c.Members[k].Role == protocol.Enters {
			left = max(left, l.Wait)
		}
	}
	x.refuse(c, failed)
	return left
}

// refuse notes a refusal that no other round changes: of a node that enters, or
// of so many others that these cannot decide. A node that is removed may refuse
// what it likes, as long as the others have a quorum.
func (x *exchange) refuse(c *protocol.Configuration, failed []NodeFailure) {
	refused := uint32(0)
	for _, f := range failed {
		at := c.Place(f.Addr)
		if at < 0 || f.Err == nil || !forGood(f.Err) {
			continue
		}
		refused |= 1 << c.Members[at].Number
		enters := c.Members[at].Role == protocol.Enters && !x.ask.Undo
		x.blocked = x.blocked || x.q.driver.client.Group().Deciders.Blocked(refused)
		if x.refused == nil && (enters || x.blocked) {
			x.refused = fmt.Errorf("%w: %s refuses: %w", ErrNoQuorum, f.Addr, f.Err)
		}
	}
}

// lookAs reads a node's marker as one of a configuration. A node that does not
// serve that is an error: it has no key of that stamp. A node that is behind
// therefore counts as silent, and what it says of an earlier configuration
// never counts for this one (rule 16).
func (n *node) lookAs(ctx context.Context, stamp protocol.Stamp) (res protocol.RepairResult) {
	n.tried(ctx)
	return n.lookAt(ctx, script.HomeOf(stamp).Marker(n.q.set.Prefix), true)
}

// succeed has the nodes decide which configuration follows c: next, or what was
// decided before. With nil nothing is proposed, and nil is returned if nothing
// was decided.
//
// Invariant: the lock and the record of the register count the nodes that stay
// or leave. Without that an exchange whose new nodes cannot be reached could
// not be undone.
func (q *Quorum) succeed(ctx context.Context, c, next *protocol.Configuration) (*protocol.Configuration, error) {
	// The set may have a guard time now that does not cover this client's ttl:
	// this call may be about to give it one, or a longer one. The lock of the
	// register has a lease that fits.
	own := q.set
	if most := longestTTL(c); own.TTL > most {
		own.TTL, own.NodeTimeout = most, min(own.NodeTimeout, most/4)
	}
	spec, err := q.NewSpec(Spec{Name: protocol.SuccessorName(c.Stamp), Weight: 1, Capacity: 1, Set: &own})
	if err != nil {
		return nil, err
	}
	spec.succession = true
	// Four leases bound one attempt. The lock of the register is held by
	// another operator for a few round trips, or by one that died for a lease.
	// The caller tries again with the next round, and looks at the nodes in
	// between.
	ctx, cancel := context.WithTimeout(ctx, 4*q.set.TTL)
	defer cancel()
	h, err := q.Acquire(ctx, spec, false, nil)
	if err != nil {
		return nil, err
	}
	defer h.Release()
	r := q.Register(spec)
	// To open is to read at a majority, and to keep older runs from recording.
	// So of two operators whose locks follow one another the second one finds
	// what the first one has put, or the first one's put fails.
	rec, err := r.Open(ctx, h)
	switch {
	case err != nil:
		return nil, err
	case rec.Exists:
		decided, ok := protocol.ParseConfiguration(string(rec.Value))
		if !ok {
			return nil, fmt.Errorf("the record of what follows %s makes no sense", c.Stamp)
		}
		return decided, nil
	case next == nil:
		return nil, nil
	}
	// A Put that fails may have reached some nodes, or all. So
	// protocol.Exchange takes a first step for this call's own until the
	// register has been read, and an interrupted call undoes it
	// (TestExchangeThatEndsAsItsChangeIsDecided). The record has no end: an
	// operator may come back to an exchange that is half-way after days.
	return next, r.Put(ctx, h, 1, []byte(next.String()), 0)
}
