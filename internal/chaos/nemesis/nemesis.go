package nemesis

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/chaos/fleet"
	"github.com/quorate/quorate/internal/chaos/judge"
	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/samber/lo"
)

// tracks lists the faults of each track. The faults of one track run one at a
// time.
var tracks = map[string][]harm{
	"servers": serverHarms,
	"data":    dataHarms,
	"network": networkHarms,
	"clients": clientHarms,
	"sleep":   sleepHarms,
	"members": memberHarms,
	"clocks":  clockHarms,
	"drift":   driftHarms,
	"misuse":  misuseHarms,
	"overlap": {{"each client sees a majority of its own", overlap}}, // used alone, for a control
	"parted":  {partedReplacement},                                   // likewise
}

// TrackNames is the tracks of a run by default, in a fixed order.
var TrackNames = []string{"servers", "data", "network", "clients", "sleep", "clocks", MemberTrack}

// AllTracks returns the names of all tracks, sorted.
func AllTracks() []string { return slices.Sorted(maps.Keys(tracks)) }

// FaultKinds returns the names of the faults of a track.
func FaultKinds(track string) []string {
	return lo.Map(tracks[track], func(k harm, _ int) string { return k.kind })
}

// Summary counts what the nemesis has done in a run.
type Summary struct {
	Faults    []Fault
	Losses    []judge.Loss
	Exchanges ExchangeStats
	Pushes    int64         // that came late
	Pieces    int64         // pieces of requests and replies that came late
	Ended     int64         // connections of clients that slept
	Apart     time.Duration // the largest offset that the clocks of a majority had at one moment
}

// Run injects faults until ctx ends. When it returns, all faults have ended.
func (n *Nemesis) Run(ctx context.Context) error {
	var all, clocks sync.WaitGroup
	for _, name := range n.Plan.Tracks {
		all.Go(func() { n.track(ctx, name) })
	}
	// The drift ends once no track can begin another one.
	steered, end := context.WithCancel(context.WithoutCancel(ctx))
	var err error
	clocks.Go(func() { err = n.steer(steered, time.Second) })
	all.Wait()
	end()
	clocks.Wait()
	return err
}

func (n *Nemesis) track(ctx context.Context, name string) {
	r := record.Chance(n.Plan.Seed, "nemesis", name)
	kinds := tracks[name]
	var order []int
	for {
		record.Wait(ctx, n.Plan.Pace/2+time.Duration(r.Int64N(int64(n.Plan.Pace))))
		if ctx.Err() != nil {
			return
		}
		// Each kind comes once before any is repeated, so that a short run has
		// them all.
		if len(order) == 0 {
			order = r.Perm(len(kinds))
		}
		k := kinds[order[0]]
		order = order[1:]
		n.do(ctx, k, rand.New(rand.NewPCG(r.Uint64(), r.Uint64())))
	}
}

func (n *Nemesis) do(ctx context.Context, k harm, r *rand.Rand) {
	n.active.Add(1)
	defer n.active.Add(-1)
	f := Fault{Kind: k.kind, From: record.Now()}
	target, err := k.do(ctx, n, r)
	f.Target, f.To, f.Skipped = target, record.Now(), errors.Is(err, fleet.ErrSkip)
	if err != nil {
		f.Err = err.Error()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.log = append(n.log, f)
}

// UnderWay returns how many faults are active.
func (n *Nemesis) UnderWay() int64 { return n.active.Load() }

// Found returns the violations that the faults themselves have detected.
func (n *Nemesis) Found() []judge.Violation { return n.members.found }

// Summary returns the counts so far.
func (n *Nemesis) Summary() Summary {
	return Summary{
		Faults: n.Faults(), Losses: n.Memory.Losses(), Exchanges: n.members.stats(),
		Pushes: n.latecomers.pushes.Load(), Pieces: n.latecomers.commands.Load(), Ended: n.ended.Load(),
		Apart: n.furthest,
	}
}

// Faults returns the faults so far, in the order in which they ended.
func (n *Nemesis) Faults() []Fault {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.log)
}
