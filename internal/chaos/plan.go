package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"
)

// plan is all that one run is made of.
type plan struct {
	harmPlan
	Store   string
	For     time.Duration // how long there are faults
	Calm    time.Duration // how long the liveness phase lasts
	Each    int           // goroutines for each name in each client
	Rate    float64       // operations per second that each of them tries for
	MinRate float64       // holds per second of each kind, below which the run says nothing
	Hold    time.Duration // most holds are shorter than this
	Bound   time.Duration // of a wait when all is well
	Check   time.Duration // time limit for each model
}

// harmPlan is what of a plan the nemesis needs.
type harmPlan struct {
	Nodes   int
	Clients int
	Rivals  int // processes that lock the same names by redsync
	Work    []string
	Control string // what is expected to fail; empty for the library itself
	Seed    uint64

	Pace   time.Duration // average time between two faults of a track
	Tracks []string

	TTL, Guard time.Duration
}

// The controls: what must fail, so that one knows that failing would be seen.
// Beside these there are the library's own rules, each of which a build with
// the tag mutants can leave out; see rules_mutants.go.
const (
	controlNone     = "none"     // no control: the library itself
	controlUnfenced = "unfenced" // the resource takes any token while clients are stopped
	controlRedsync  = "redsync"  // redsync under the same faults
	controlRival    = "rival"    // the rivals lock other keys, and say that they are ours
	controlNoBoth   = "no-both"  // with the tag mutants: one of two sets is enough while nodes are exchanged
)

// controlFor is how long a control runs at the most: it is to fail, and does so
// soon.
const controlFor = time.Minute

// skew is how far clocks may be apart that are not being set.
const skew = time.Second

// patience is how long a client waits for a lock while there are faults.
const patience = 10 * time.Second

func defaults() plan {
	const ttl = time.Second
	return plan{
		harmPlan: harmPlan{
			Nodes: 3, Clients: 4, Rivals: 1, Work: []string{"mutex", "rwmutex", "semaphore", "leader", "once"}, Seed: 1,
			Pace: 2 * time.Second, Tracks: trackNames,
			TTL: ttl, Guard: 2*ttl + 2*skew, // the shortest for that skew
		},
		Store: mixed, For: 2 * time.Minute, Calm: 5 * time.Second,
		Each: 2, Rate: 5, MinRate: 3, Hold: 20 * time.Millisecond, Bound: 3 * time.Second, Check: 30 * time.Second,
	}
}

// control turns the plan into one whose failure is expected.
func (p *plan) control(name string) error {
	if name == controlNone {
		return nil
	}
	p.Control, p.For = name, min(p.For, controlFor)
	switch name {
	case controlUnfenced:
		// A client that is stopped is to hold something.
		p.Work, p.Tracks, p.Pace, p.Hold, p.Rivals = []string{"mutex"}, []string{"clients"}, p.Pace/4, p.TTL/2, 0
	case controlRedsync:
		// A redsync client would miss each exchange of nodes.
		p.Work, p.Tracks, p.MinRate, p.Rivals = []string{controlRedsync}, lo.Without(p.Tracks, memberTrack), 1, 0
	case controlRival:
		p.Work = []string{"mutex", "leader"}
	case "votes-only":
		// What is too much only when each client sees other nodes: so they do.
		p.Work, p.Tracks, p.Pace, p.Hold, p.MinRate, p.Rivals = []string{"semaphore"}, []string{"overlap"}, p.TTL/4, p.TTL/2, 1, 0
		return withoutRule(name)
	case controlNoBoth:
		p.Work, p.Tracks, p.Pace, p.Hold, p.MinRate, p.Rivals = []string{"mutex"}, []string{"parted"}, p.TTL/4, p.TTL/2, 1, 0
		return withoutRule(name)
	default:
		p.Hold, p.MinRate, p.Rivals = p.TTL/2, 1, 0 // many are to hold something when a fault comes
		return withoutRule(name)
	}
	return nil
}

func (p *plan) check() error {
	for _, w := range p.Work {
		if kinds := workKinds(); !slices.Contains(kinds, w) {
			return fmt.Errorf("-work %s: there are %s", w, strings.Join(kinds, ", "))
		}
	}
	for _, t := range p.Tracks {
		if !slices.Contains(allTracks(), t) {
			return fmt.Errorf("-tracks %s: there are %s, drift, misuse, overlap and parted", t, strings.Join(trackNames, ", "))
		}
	}
	if !slices.Contains([]string{inMemory, everysec, always, mixed}, p.Store) {
		return fmt.Errorf("-store %s: there are %s, %s, %s and %s", p.Store, inMemory, everysec, always, mixed)
	}
	if len(lo.Intersect(p.Work, []string{"mutex", "leader"})) == 0 {
		p.Rivals = 0 // there is nothing to contend for
	}
	if p.Nodes < 3 || p.Clients < 2 || p.Rivals < 0 || p.For <= 0 || p.Pace <= 0 {
		return fmt.Errorf("-nodes %d -clients %d -rivals %d -for %v -pace %v: at least 3 nodes, 2 clients and some time", p.Nodes, p.Clients, p.Rivals, p.For, p.Pace)
	}
	return nil
}

// exchanges says whether the members of the set change.
func (p *harmPlan) exchanges() bool {
	return len(lo.Intersect(p.Tracks, []string{memberTrack, "parted"})) > 0
}

// spares are how many servers there are that are no members when the run
// begins.
const spares = 4

// servers are how many there are to be.
func (p *harmPlan) servers() int { return p.Nodes + lo.Ternary(p.exchanges(), spares, 0) }

// clocks says whether servers need clocks of their own.
func (p *harmPlan) clocks() bool { return len(lo.Intersect(p.Tracks, clocks)) > 0 }

// fenced says whether the resource looks at tokens: not where there are none.
func (p *plan) fenced() bool { return p.Control != controlUnfenced && p.Control != controlRedsync }

// plain are the names whose redlock keys are in use: those of mutexes and
// leaders.
func (p *harmPlan) plain() []string {
	if p.Control == controlRedsync {
		return names(controlRedsync)
	}
	return append(names("mutex"), names("leader")...)
}

// judged is the work as the judge knows it.
func (p *plan) judged() []judgedWork {
	return lo.Map(p.Work, func(kind string, _ int) judgedWork {
		return judgedWork{Kind: kind, Names: names(kind), Capacity: capacity(kind)}
	})
}

func (p *plan) String() string {
	text := fmt.Sprintf("%d nodes (%s), %d clients, %s, seed %d", p.Nodes, p.Store, p.Clients, strings.Join(p.Work, " "), p.Seed)
	if p.Control != "" {
		text = "control " + p.Control + ": " + text
	}
	return text
}
