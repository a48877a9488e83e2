package core

// This file owns what package operator asks of a client, to change its set.

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/transport"
)

// Operating is a client as a change sees it. It is safe for concurrent use.
type Operating struct{ q *Quorum }

// Operate waits until a majority of the set's members is connected, and returns
// what a change of the set goes by.
func (q *Quorum) Operate(ctx context.Context) (Operating, error) {
	switch {
	case q.isClosed():
		return Operating{}, &fault.Failure{Err: fault.ErrClosed}
	case q.buckets != nil:
		return Operating{}, &fault.Failure{Err: fmt.Errorf("%w: a set with clusters cannot exchange its nodes", fault.ErrInvalid)}
	}
	// Without a majority nothing can be decided. The wait also fails for a list
	// that is another one than the set's, so such a client never proposes a
	// configuration. A ttl that is too long for the set is none here: the
	// remedy for it is a change that lengthens the guard time.
	own := q.set
	own.TTL = 0
	return Operating{q}, q.readyWith(ctx, &own)
}

// Config returns the configuration that the client counts on now, nil for none.
func (o Operating) Config() *nodeset.Configuration { return o.q.members.config.Load() }

// Decide says that a configuration was decided. The client follows like every
// other, and has the members moved.
func (o Operating) Decide(c *nodeset.Configuration) {
	o.q.members.change(-1, func(m *nodeset.Membership) { m.Decide(c) })
}

func (o Operating) Settings() setup.Settings { return o.q.set }

func (o Operating) Now() protocol.Time { return o.q.now() }

func (o Operating) Ballot() nodeset.Ballot { return nodeset.NewBallot(time.Now(), chance(), "") }

// Identity returns an identity for a server that enters.
func (o Operating) Identity() string { return identity() }

// Closing is closed when Close begins.
func (o Operating) Closing() <-chan struct{} { return o.q.closing }

// Fanout says how long the nodes take to answer.
func (o Operating) Fanout() *lease.Fanout { return o.q.driver.client.Fanout() }

// Servers returns the addresses that are connected to, by their servers' runs.
func (o Operating) Servers() map[string]string {
	runs := map[string]string{}
	for _, n := range o.q.nodes.live() {
		if run := n.info().RunID; run != "" {
			runs[run] = n.addr
		}
	}
	return runs
}

// Client returns the client of an address. own is true for one that the caller
// has to close.
func (o Operating) Client(a setup.Address) (c redis.UniversalClient, own bool, err error) {
	o.q.clients.Offer(a)
	return o.q.clients.At(a.Name())
}

// Look asks a member how much of its guard time is left, and whether it is
// caught up, as one of a configuration. A member that this client has no
// connection to yet has not answered.
func (o Operating) Look(ctx context.Context, number int, of nodeset.Stamp) (wait time.Duration, caughtUp bool, err error) {
	n := o.q.node(number)
	if n == nil {
		return 0, false, fault.ErrNoAnswer
	}
	n.tried(ctx)
	res := n.lookAt(ctx, script.HomeOf(of).Marker(o.q.set.Prefix), true)
	return res.Wait, res.CaughtUp, res.Err
}

// Ask has a member that was looked at carry out a command, and waits for the
// answer as long as that node takes. It returns the last text of the answer.
func (o Operating) Ask(ctx context.Context, number int, words ...string) (string, error) {
	n := o.q.nodes.at(number)
	ctx, cancel := context.WithTimeout(ctx, n.timeout(&o.q.set))
	defer cancel()
	v, err := n.do(ctx, words...)
	return text(v, len(v)-1), err
}

// Server is what such a member said of itself as its latest connection began.
func (o Operating) Server(number int) *transport.Info { return o.q.nodes.at(number).info() }

// Succeed carries out a Run on the register that decides what follows.
func (o Operating) Succeed(ctx context.Context, register string, ttl, nodeTimeout time.Duration, run *lease.Run) error {
	own := o.q.set
	own.TTL, own.NodeTimeout = ttl, nodeTimeout
	spec, err := o.q.NewSpec(Spec{Name: register, Weight: 1, Capacity: 1, Set: &own})
	if err != nil {
		return err
	}
	spec.succession = true
	_, err = o.q.Register(spec).run(ctx, run, nil)
	return err
}
