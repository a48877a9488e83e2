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

// Faults of the servers' wall clocks. If a track needs it, each server has a
// clock of its own. A jump ends leases early or late, so it counts as a data
// loss. A drift within the protocol's tolerance does not. A clock that is off
// by [driftMost] drifts back.
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

// jump sets a node's clock, or corrects one that is wrong, because clients are
// refused while a majority of the nodes contradicts their wall clock. It waits
// until a node may lose its data, which other tracks rarely allow.
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

// inTurn repeats a fault that makes a node lose its data until the fault is not
// skipped, or until time is up.
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

// uprootRival deletes a rival's key on a node whose clock was set back.
// Otherwise the key would block all claims of the name there until the clock
// has caught up.
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
		return target, n.setSpeed(nd, func(off time.Duration, _ float64) float64 {
			return towards(off,
				rate)
		})
	}
}

// driftMost is how far a node's clock may drift from the machine's. The clocks
// of clients, within the skew, may be off by half the skew in the other
// direction.
const driftMost = Skew / 4

// towards returns the speed that a clock with the given offset may have: rate,
// or the opposite speed if the clock is off by driftMost and rate would move it
// further away.
//
// Invariant: without jumps, no clock is off by more than about driftMost, no
// matter how long the run takes. The protocol promises nothing while the clocks
// of a majority are off by more than the skew. Without this bound, a clock that
// is slow by 0.5% would be off by 1 s after 200 s, and every client would
// rightly be refused.
func towards(off time.Duration, rate float64) float64 {
	if off > driftMost && rate > 1 || off < -driftMost && rate < 1 {
		return 2 - rate
	}
	return rate
}

// steer keeps the drift of each node's clock within its bound until ctx ends,
// and then stops the drift.
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

// setSpeed makes a node's clock run at the speed that choose returns for its
// offset and its current speed. If the server learns of it late, its clock
// jumps by 1% of the delay. A client may notice a jump of 0.2 ms.
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

// apart returns the smallest offset from the machine's clock that a majority of
// the clocks reach or exceed.
func apart(nodes []*fleet.Node) time.Duration {
	offs := lo.Map(nodes, func(n *fleet.Node, _ int) time.Duration { return n.Off().Abs() })
	slices.Sort(offs)
	return offs[(len(offs)-1)/2]
}
