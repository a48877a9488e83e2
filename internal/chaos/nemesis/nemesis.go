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

// tracks are the kinds of faults that take turns with each other.
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
	"overlap": {{"each client sees a majority of its own", overlap}}, // alone, for a control
	"parted":  {partedReplacement},                                   // likewise
}

// TrackNames in a fixed order: those of a run that does not say otherwise.
var TrackNames = []string{"servers", "data", "network", "clients", "sleep", "clocks", MemberTrack}

// AllTracks are the names of all of them, in order.
func AllTracks() []string { return slices.Sorted(maps.Keys(tracks)) }

// FaultKinds are the kinds of faults of a track, by their names.
func FaultKinds(track string) []string {
	return lo.Map(tracks[track], func(k harm, _ int) string { return k.kind })
}

// Summary is what the nemesis has done in a run.
type Summary struct {
	Faults    []Fault
	Losses    []judge.Loss
	Exchanges ExchangeStats
	Pushes    int64         // that came late
	Pieces    int64         // of requests and replies that came late
	Ended     int64         // connections of clients that slept
	Apart     time.Duration // the most that the clocks of a majority of the nodes were off at one moment
}

// Run does harm until ctx ends. When it returns all faults have ended.
func (n *Nemesis) Run(ctx context.Context) error {
	var all, clocks sync.WaitGroup
	for _, name := range n.Plan.Tracks {
		all.Go(func() { n.track(ctx, name) })
	}
	// The drift ends when no track can begin another one.
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
		// Each kind once before any comes again: a short run has seen them all.
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

// UnderWay is how many faults there are at the moment.
func (n *Nemesis) UnderWay() int64 { return n.active.Load() }

// Found are the violations that faults have shown themselves.
func (n *Nemesis) Found() []judge.Violation { return n.members.found }

// Summary is what has been done so far.
func (n *Nemesis) Summary() Summary {
	return Summary{
		Faults: n.Faults(), Losses: n.Memory.Losses(), Exchanges: n.members.stats(),
		Pushes: n.latecomers.pushes.Load(), Pieces: n.latecomers.commands.Load(), Ended: n.ended.Load(), Apart: n.furthest,
	}
}

// Faults is what has been done so far, in the order in which it was over.
func (n *Nemesis) Faults() []Fault {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.log)
}
