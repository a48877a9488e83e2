package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// What is done to the wall clocks of servers, each of which has one of its own
// where a track wants it. A clock that jumps ends leases early or late, so it
// counts as a loss of memory. One that drifts, within what the protocol bears,
// does not.
var (
	clockHarms = append([]harm{
		{"clock of a server set forward by a minute", jump(time.Minute, time.Minute)},
		{"clock of a server set back by a minute", jump(-time.Minute, -time.Minute)},
		{"clock of a server set forward by 1 to 5 s", jump(time.Second, 5*time.Second)},
		{"clock of a server set back by 1 to 5 s", jump(-5*time.Second, -time.Second)},
	}, driftHarms...)
	driftHarms = []harm{
		{"clock of a server fast by 0.5% from then on", drift(1.005)},
		{"clock of a server slow by 0.5% from then on", drift(0.995)},
	}
)

// clocks are the tracks that need servers with clocks of their own.
var clocks = []string{"clocks", "drift"}

// jump sets a node's clock, or sets right one that is wrong: clients are refused
// while a majority of the nodes contradicts their wall clock. It waits for its turn to
// take a node's memory, of which other tracks leave little.
func jump(from, to time.Duration) func(context.Context, *nemesis, *rand.Rand) (string, error) {
	return func(ctx context.Context, n *nemesis, r *rand.Rand) (string, error) {
		nd, by := n.nodes[r.IntN(len(n.nodes))], between(r, from, to+1).Round(time.Millisecond)
		for _, other := range n.nodes {
			if off := other.off(); off.Abs() > skew/2 {
				nd, by = other, -off
			}
		}
		target := fmt.Sprintf("node %d by %v", nd.id, by)
		for end := time.Now().Add(2 * n.plan.Guard); ; wait(ctx, n.plan.TTL/20) {
			if err := n.jump(nd, by); !errors.Is(err, errSkip) || time.Now().After(end) || ctx.Err() != nil {
				return target, err
			}
		}
	}
}

func (n *nemesis) jump(nd *node, by time.Duration) error {
	nd.mu.Lock()
	defer nd.mu.Unlock()
	if err := n.memory.lose(nd.id); err != nil {
		return err
	}
	defer n.memory.back(nd.id)
	n.memory.byClock(nd.id)
	if err := n.memory.pretend(nd.id); err != nil {
		return err
	}
	err := nd.setClock(by, nd.rate)
	if by < 0 && n.plan.Rivals > 0 {
		err = errors.Join(err, n.uprootRival(context.Background(), nd))
	}
	return err
}

// off is how far the node's clock is ahead of the machine's.
func (n *node) off() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Until(n.server.Clock()).Round(time.Millisecond)
}

// drift gives a node's clock another speed, and changes nothing else. One that is
// well off the machine's clock goes towards it.
func drift(rate float64) func(context.Context, *nemesis, *rand.Rand) (string, error) {
	return func(_ context.Context, n *nemesis, r *rand.Rand) (string, error) {
		nd := n.nodes[r.IntN(len(n.nodes))]
		rate := rate
		switch off := nd.off(); {
		case off > skew/4:
			rate = 0.995
		case off < -skew/4:
			rate = 1.005
		}
		nd.mu.Lock()
		defer nd.mu.Unlock()
		return fmt.Sprintf("node %d", nd.id), nd.setClock(0, rate)
	}
}

// setClock has the clock jump, and run at rate from there.
func (n *node) setClock(by time.Duration, rate float64) error {
	n.rate = rate
	return n.server.ShiftClock(by, rate)
}
