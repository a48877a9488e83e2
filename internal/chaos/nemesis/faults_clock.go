package nemesis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/chaos/client"
	"github.com/quorate/quorate/internal/chaos/fleet"
	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/redis/go-redis/v9"
	"github.com/samber/lo"
)

// What is done to the wall clocks of servers, each of which has one of its own
// where a track wants it. A clock that jumps ends leases early or late, so it
// counts as a loss of memory. One that drifts, within what the protocol bears,
// does not. It drifts back when it is off by [driftMost].
var (
	clockHarms = append([]harm{
		{"clock of a server set forward by a minute", jump(time.Minute, time.Minute)},
		{"clock of a server set back by a minute", jump(-time.Minute, -time.Minute)},
		{"clock of a server set forward by 1 to 5 s", jump(time.Second, 5*time.Second)},
		{"clock of a server set back by 1 to 5 s", jump(-5*time.Second, -time.Second)},
	}, driftHarms...)
	driftHarms = []harm{
		{"clock of a server fast by 0.5%, until it is ahead by a quarter of the skew", drift(1.005)},
		{"clock of a server slow by 0.5%, until it is behind by a quarter of the skew", drift(0.995)},
	}
)

// jump sets a node's clock, or sets right one that is wrong: clients are
// refused while a majority of the nodes contradicts their wall clock. It waits
// for its turn to take a node's memory, of which other tracks leave little.
func jump(from, to time.Duration) func(context.Context, *Nemesis, *rand.Rand) (string, error) {
	return func(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
		nd, by := n.pick(r), between(r, from, to+1).Round(time.Millisecond)
		for _, other := range n.Voters() {
			if off := other.Off(); off.Abs() > Skew/2 {
				nd, by = other, -off
			}
		}
		target := fmt.Sprintf("node %d by %v", nd.ID, by)
		return target, n.inTurn(ctx, func() error { return n.jump(nd, by) })
	}
}

// inTurn does again and again what takes a node's memory, until it is not
// skipped or time is up.
func (n *Nemesis) inTurn(ctx context.Context, do func() error) error {
	for end := time.Now().Add(2 * n.Plan.Guard); ; record.Wait(ctx, n.Plan.TTL/20) {
		if err := do(); !errors.Is(err, fleet.ErrSkip) || time.Now().After(end) || ctx.Err() != nil {
			return err
		}
	}
}

func (n *Nemesis) jump(nd *fleet.Node, by time.Duration) error {
	nd.Mu.Lock()
	defer nd.Mu.Unlock()
	if err := n.Memory.Lose(nd.ID); err != nil {
		return err
	}
	defer n.back(nd)
	n.Memory.ByClock(nd.ID)
	if err := n.Memory.Pretend(nd.ID); err != nil {
		return err
	}
	err := nd.SetClock(by, nd.Rate)
	if by < 0 && n.Plan.Rivals > 0 {
		err = errors.Join(err, n.uprootRival(context.Background(), nd))
	}
	return err
}

// uprootRival deletes what a rival has set on a node whose clock was set back:
// it would keep the name from all claims there until the clock has come so far
// again.
func (n *Nemesis) uprootRival(ctx context.Context, nd *fleet.Node) (err error) {
	for _, name := range client.Names(record.Rival) {
		switch v, gerr := nd.Admin.Get(ctx, name).Result(); {
		case gerr == nil && len(v) > len(client.RivalKey) && v[:len(client.RivalKey)] == client.RivalKey:
			err = errors.Join(err, nd.Admin.Del(ctx, name).Err())
		case gerr != nil && !errors.Is(gerr, redis.Nil) && !redis.HasErrorPrefix(gerr, "WRONGTYPE"):
			err = errors.Join(err, gerr)
		}
	}
	return err
}

// drift gives a node's clock another speed, and changes nothing else.
func drift(rate float64) func(context.Context, *Nemesis, *rand.Rand) (string, error) {
	return func(_ context.Context, n *Nemesis, r *rand.Rand) (string, error) {
		nd := n.pick(r)
		target := fmt.Sprintf("node %d, ahead by %v", nd.ID, nd.Off())
		return target, n.setSpeed(nd, func(off time.Duration, _ float64) float64 { return towards(off, rate) })
	}
}

// driftMost is how far a clock may drift off the machine's. The clocks of
// clients within the skew may be off by half of it, in the other direction.
const driftMost = Skew / 4

// towards returns the speed that a clock with that offset may have: rate, or
// the opposite one where the clock is off by driftMost and rate leads further
// away.
//
// Invariant: without jumps, no clock is off by more than about driftMost,
// however long the run is. The protocol promises nothing while the clocks of a
// majority are off by more than the skew, and a clock that is slow by 0.5% is
// off by 1 s after 200 s: every client is then refused, rightly.
func towards(off time.Duration, rate float64) float64 {
	if off > driftMost && rate > 1 || off < -driftMost && rate < 1 {
		return 2 - rate
	}
	return rate
}

// steer keeps the drift of each node's clock within its bound until ctx ends.
// Then it ends the drift.
func (n *Nemesis) steer(ctx context.Context, each time.Duration) error {
	for ; ctx.Err() == nil; record.Wait(ctx, each) {
		n.furthest = max(n.furthest, apart(n.Voters()))
		for _, nd := range n.Nodes {
			if err := n.setSpeed(nd, towards); err != nil {
				return err
			}
		}
	}
	return errors.Join(lo.Map(n.Nodes, func(nd *fleet.Node, _ int) error {
		return n.setSpeed(nd, func(time.Duration, float64) float64 { return 1 })
	})...)
}

// setSpeed has a node's clock run at the speed that choose returns for its
// offset and its speed. A server that hears of it late has a clock that jumps
// by 1% of the delay. A client may notice a jump of 0.2 ms.
func (n *Nemesis) setSpeed(nd *fleet.Node, choose func(off time.Duration, rate float64) float64) error {
	nd.Mu.Lock()
	defer nd.Mu.Unlock()
	rate := choose(nd.Off(), nd.Rate)
	if rate == nd.Rate {
		return nil
	}
	from := record.Now()
	err := nd.SetClock(0, rate)
	if record.Now()-from > int64(20*time.Millisecond) {
		n.Memory.Slip(nd.ID, from)
	}
	return err
}

// apart returns how far at least the clocks of a majority are off the
// machine's.
func apart(nodes []*fleet.Node) time.Duration {
	offs := lo.Map(nodes, func(n *fleet.Node, _ int) time.Duration { return n.Off().Abs() })
	slices.Sort(offs)
	return offs[(len(offs)-1)/2]
}
