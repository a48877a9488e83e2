package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/chaos/client"
	"github.com/quorate/quorate/internal/chaos/fleet"
	"github.com/quorate/quorate/internal/chaos/judge"
	"github.com/quorate/quorate/internal/chaos/nemesis"
	"github.com/samber/lo"
)

// plan is all that one run is made of.
type plan struct {
	nemesis.Plan
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

// controlFor is how long a control runs at the most: it is to fail, and does so
// soon.
const controlFor = time.Minute

func defaults() plan {
	const ttl = time.Second
	return plan{
		Plan: nemesis.Plan{
			Nodes: 3, Clients: 4, Rivals: 1, Work: []string{"mutex", "rwmutex", "semaphore", "leader", "once"}, Seed: 1,
			Pace: 2 * time.Second, Tracks: nemesis.TrackNames,
			TTL: ttl, Guard: 2*ttl + 2*nemesis.Skew, // the shortest for that skew
		},
		Store: fleet.Mixed, For: 2 * time.Minute, Calm: 5 * time.Second,
		Each: 2, Rate: 5, MinRate: 3, Hold: 20 * time.Millisecond, Bound: 3 * time.Second, Check: 30 * time.Second,
	}
}

// control turns the plan into one whose failure is expected.
func (p *plan) control(name string) error {
	if name == client.ControlNone {
		return nil
	}
	p.Control, p.For = name, min(p.For, controlFor)
	switch name {
	case client.ControlUnfenced:
		// A client that is stopped is to hold something.
		p.Work, p.Tracks, p.Pace, p.Hold, p.Rivals = []string{"mutex"}, []string{"clients"}, p.Pace/4, p.TTL/2, 0
	case client.ControlRedsync:
		// A redsync client would miss each exchange of nodes.
		p.Work, p.Tracks, p.MinRate, p.Rivals = []string{client.ControlRedsync}, lo.Without(p.Tracks, nemesis.MemberTrack), 1, 0
	case client.ControlRival:
		p.Work = []string{"mutex", "leader"}
	case "votes-only":
		// What is too much only when each client sees other nodes: so they do.
		p.Work, p.Tracks, p.Pace, p.Hold, p.MinRate, p.Rivals = []string{"semaphore"}, []string{"overlap"}, p.TTL/4, p.TTL/2, 1, 0
		return client.WithoutRule(name)
	case client.ControlNoBoth:
		p.Work, p.Tracks, p.Pace, p.Hold, p.MinRate, p.Rivals = []string{"mutex"}, []string{"parted"}, p.TTL/4, p.TTL/2, 1, 0
		return client.WithoutRule(name)
	default:
		p.Hold, p.MinRate, p.Rivals = p.TTL/2, 1, 0 // many are to hold something when a fault comes
		return client.WithoutRule(name)
	}
	return nil
}

// alone leaves out what one node by itself does not stand: exchanges need a
// second server, a clock that jumps needs a majority that shows the time, and
// what has been done once is forgotten with the data of the only node.
func (p *plan) alone() {
	if p.Nodes > 1 {
		return
	}
	p.Tracks = lo.Without(p.Tracks, nemesis.MemberTrack, "clocks")
	p.Work = lo.Without(p.Work, "once")
	if p.Store == fleet.Mixed {
		p.Store = fleet.Everysec // it comes back with its data, and without
	}
}

func (p *plan) check() error {
	if len(p.Work) == 0 {
		return errors.New("-work once: one node by itself does not keep what has been done once")
	}
	for _, w := range p.Work {
		if known := client.Kinds(); !slices.Contains(known, w) {
			return fmt.Errorf("-work %s: there are %s", w, strings.Join(known, ", "))
		}
	}
	for _, t := range p.Tracks {
		if !slices.Contains(nemesis.AllTracks(), t) {
			return fmt.Errorf("-tracks %s: there are %s, drift, misuse, overlap and parted", t, strings.Join(nemesis.TrackNames, ", "))
		}
	}
	if !slices.Contains([]string{fleet.InMemory, fleet.Everysec, fleet.Always, fleet.Mixed}, p.Store) {
		return fmt.Errorf("-store %s: there are %s, %s, %s and %s", p.Store, fleet.InMemory, fleet.Everysec, fleet.Always, fleet.Mixed)
	}
	if len(lo.Intersect(p.Work, []string{"mutex", "leader"})) == 0 {
		p.Rivals = 0 // there is nothing to contend for
	}
	if p.Nodes < 3 && p.Nodes != 1 || p.Clients < 2 || p.Rivals < 0 || p.For <= 0 || p.Pace <= 0 {
		return fmt.Errorf("-nodes %d -clients %d -rivals %d -for %v -pace %v: 1 node, or at least 3, 2 clients and some time", p.Nodes, p.Clients, p.Rivals, p.For, p.Pace)
	}
	return nil
}

// fenced says whether the resource looks at tokens: not where there are none.
func (p *plan) fenced() bool {
	return p.Control != client.ControlUnfenced && p.Control != client.ControlRedsync
}

// judged is the work as the judge knows it.
func (p *plan) judged() []judge.Work {
	return lo.Map(p.Work, func(kind string, _ int) judge.Work {
		return judge.Work{Kind: kind, Names: client.Names(kind), Capacity: client.Capacity(kind)}
	})
}

func (p *plan) String() string {
	text := fmt.Sprintf("nodes: %d (%s), %d clients, %s, seed %d", p.Nodes, p.Store, p.Clients, strings.Join(p.Work, " "), p.Seed)
	if p.Control != "" {
		text = "control " + p.Control + ": " + text
	}
	return text
}
