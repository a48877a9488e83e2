package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/samber/lo"
)

// nemesis does harm, on several tracks at a time: to servers, to their data, to
// the network and to clients. What each track does, in which order and for how
// long, is drawn from the seed alone; how it meets what the others do is not.
type nemesis struct {
	plan    harmPlan
	nodes   []*node
	wires   wires
	clients []*client
	memory  *memory
	roster  *roster
	orders  []orders // of each operator; what to do is missing

	members exchanges
	active  atomic.Int64
	late    latecomers
	ended   atomic.Int64  // connections of clients that slept
	apart   time.Duration // the most that the clocks of a majority were off at one moment
	mu      sync.Mutex
	log     []fault
}

// fault is one thing that was done.
type fault struct {
	Kind, Target string
	From, To     int64 // of now
	Skipped      bool
	Err          string
}

func (f fault) String() string {
	text := fmt.Sprintf("%s: %s", f.Kind, f.Target)
	if f.Err != "" {
		text += " (" + f.Err + ")"
	}
	return text
}

// harmDone is what the nemesis has done in a run.
type harmDone struct {
	Faults    []fault
	Losses    []memoryLoss
	Exchanges exchangeStats
	Pushes    int64         // that came late
	Pieces    int64         // of requests and replies that came late
	Ended     int64         // connections of clients that slept
	Apart     time.Duration // the most that the clocks of a majority of the nodes were off at one moment
}

// harm is a kind of fault. Do draws from r before anything else, then does it,
// waits and undoes it, and returns what it was done to. It undoes it also when
// ctx ends meanwhile.
type harm struct {
	kind string
	do   func(ctx context.Context, n *nemesis, r *rand.Rand) (target string, err error)
}

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

// trackNames in a fixed order: those of a run that does not say otherwise.
var trackNames = []string{"servers", "data", "network", "clients", "sleep", "clocks", memberTrack}

// allTracks are the names of all of them, in order.
func allTracks() []string { return slices.Sorted(maps.Keys(tracks)) }

// faultKinds are the kinds of faults of a track, by their names.
func faultKinds(track string) []string {
	return lo.Map(tracks[track], func(k harm, _ int) string { return k.kind })
}

// memberTrack is the track in which operators exchange nodes of the set.
const memberTrack = "members"

// run does harm until ctx ends. When it returns all faults have ended.
func (n *nemesis) run(ctx context.Context) error {
	var all, clocks sync.WaitGroup
	for _, name := range n.plan.Tracks {
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

func (n *nemesis) track(ctx context.Context, name string) {
	r := chance(n.plan.Seed, "nemesis", name)
	kinds := tracks[name]
	var order []int
	for {
		wait(ctx, n.plan.Pace/2+time.Duration(r.Int64N(int64(n.plan.Pace))))
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

func (n *nemesis) do(ctx context.Context, k harm, r *rand.Rand) {
	n.active.Add(1)
	defer n.active.Add(-1)
	f := fault{Kind: k.kind, From: now()}
	target, err := k.do(ctx, n, r)
	f.Target, f.To, f.Skipped = target, now(), errors.Is(err, errSkip)
	if err != nil {
		f.Err = err.Error()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.log = append(n.log, f)
}

// faults is what has been done so far, in the order in which it was over.
func (n *nemesis) faults() []fault {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.log)
}

// underWay is how many faults there are at the moment.
func (n *nemesis) underWay() int64 { return n.active.Load() }

// found are the violations that faults have shown themselves.
func (n *nemesis) found() []violation { return n.members.found }

// hasDone is what has been done so far.
func (n *nemesis) hasDone() harmDone {
	return harmDone{
		Faults: n.faults(), Losses: n.memory.losses(), Exchanges: n.members.stats(),
		Pushes: n.late.pushes.Load(), Pieces: n.late.commands.Load(), Ended: n.ended.Load(), Apart: n.apart,
	}
}

// Choices.

func between(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64(to-from)))
}

// some are k of n numbers.
func some(r *rand.Rand, k, n int) []int {
	s := r.Perm(n)[:k]
	slices.Sort(s)
	return s
}

// short is well below the ttl, long above it.
func (n *nemesis) short(r *rand.Rand) time.Duration {
	return between(r, n.plan.TTL/4, n.plan.TTL*7/10)
}

func (n *nemesis) long(r *rand.Rand) time.Duration {
	return between(r, n.plan.TTL*5/4, n.plan.TTL*5/2)
}

// everyone is each way to the nodes: those of clients, and of operators.
func (n *nemesis) everyone() []int {
	return lo.Range(len(n.wires))
}

// voters are the servers that are members of a set that may count.
func (n *nemesis) voters() []*node {
	return lo.Map(n.roster.voters(), func(id int, _ int) *node { return n.nodes[id] })
}

// pick is one of them.
func (n *nemesis) pick(r *rand.Rand) *node {
	voters := n.voters()
	return voters[r.IntN(len(voters))]
}

// some are the numbers of some of them.
func (n *nemesis) some(r *rand.Rand, most func(voters int) int) []int {
	voters := n.roster.voters()
	return lo.Map(some(r, most(len(voters)), len(voters)), func(i int, _ int) int { return voters[i] })
}

// shuffled are the numbers of all of them.
func (n *nemesis) shuffled(r *rand.Rand) []int {
	voters := n.roster.voters()
	return lo.Map(r.Perm(len(voters)), func(i int, _ int) int { return voters[i] })
}

// allNodes are the numbers of all servers, also of those that are no members.
func (n *nemesis) allNodes() []int { return lo.Range(len(n.nodes)) }

// back says that a node that has lost its data is there again. Its caller holds
// mu of the node.
func (n *nemesis) back(nd *node) {
	n.memory.back(nd.id)
	n.retire(nd)
}

// retire stops a server that is no member any more, and has lost its data. Its
// caller holds mu of the node.
//
// Invariant: no such server runs. A client that starts with a list of such
// servers takes them for nodes that have recorded no set (docs/membership.md,
// Limits of an exchange).
func (n *nemesis) retire(nd *node) {
	if n.plan.exchanges() && !n.roster.has(nd.id) && !nd.knowsSet() {
		_ = nd.server.Kill()
	}
}
