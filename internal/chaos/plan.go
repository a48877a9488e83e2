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

// plan has all settings of one run.
type plan struct {
	nemesis.Plan
	Store   string
	For     time.Duration // how long faults are injected
	Calm    time.Duration // how long the liveness phase lasts
	Each    int           // goroutines for each name in each client
	Rate    float64       // operations per second that each goroutine aims for
	MinRate float64       // a run with fewer holds per second of any kind is inconclusive
	Hold    time.Duration // most holds are shorter than this
	Bound   time.Duration // of a wait without faults
	Check   time.Duration // time limit for each model
}

// controlFor is the longest time for a control: it should fail, and fails soon.
const controlFor = time.Minute

func defaults() plan {
	const ttl = time.Second
	return plan{
		Plan: nemesis.Plan{
			Nodes: 3, Clients: 4, Rivals: 1, Work: []string{"mutex", "rwmutex", "semaphore", "leader", "once"},
			Seed: 1,
			Pace: 2 * time.Second, Tracks: nemesis.TrackNames,
			TTL: ttl, Guard: 2*ttl + 2*nemesis.Skew, // the shortest guard time for that skew
		},
		Store: fleet.Mixed, For: 2 * time.Minute, Calm: 5 * time.Second,
		Each: 2, Rate: 5, MinRate: 3, Hold: 20 * time.Millisecond, Bound: 3 * time.Second,
		Check: 30 * time.Second,
	}
}

// control turns the plan into a control, which is expected to fail.
func (p *plan) control(name string) error {
	if name == client.ControlNone {
		return nil
	}
	p.Control, p.For = name, min(p.For, controlFor)
	switch name {
	case client.ControlUnfenced:
		// Clients should hold something when they are stopped.
		p.Work, p.Tracks, p.Pace, p.Hold, p.Rivals = []string{"mutex"}, []string{"clients"}, p.Pace/4, p.TTL/2, 0
	case client.ControlRedsync:
		// A redsync client would miss each exchange of nodes.
		p.Work, p.Tracks, p.MinRate, p.Rivals = []string{client.ControlRedsync},
			lo.Without(p.Tracks, nemesis.MemberTrack), 1, 0
	case client.ControlRival:
		p.Work = []string{"mutex", "leader"}
	case "votes-only":
		// This rule matters only if the clients see different nodes, so the
		// track overlap makes them.
		p.Work, p.Tracks, p.Pace, p.Hold, p.MinRate, p.Rivals = []string{"semaphore"},
			[]string{"overlap"}, p.TTL/4, p.TTL/2, 1, 0
		return client.WithoutRule(name)
	case client.ControlNoBoth:
		p.Work, p.Tracks, p.Pace, p.Hold, p.MinRate, p.Rivals = []string{"mutex"}, []string{"parted"},
			p.TTL/4, p.TTL/2, 1, 0
		return client.WithoutRule(name)
	default:
		p.Hold, p.MinRate, p.Rivals = p.TTL/2, 1, 0 // many clients should hold something when a fault comes
		return client.WithoutRule(name)
	}
	return nil
}

// alone leaves out what a single node cannot tolerate: an exchange needs a
// second server, a clock that jumps needs a majority that shows the right time,
// and work that was done once is forgotten when the only node loses its data.
func (p *plan) alone() {
	if p.Nodes > 1 {
		return
	}
	p.Tracks = lo.Without(p.Tracks, nemesis.MemberTrack, "clocks")
	p.Work = lo.Without(p.Work, "once")
	if p.Store == fleet.Mixed {
		p.Store = fleet.Everysec // the node comes back sometimes with its data, sometimes without
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
			return fmt.Errorf("-tracks %s: there are %s, drift, misuse, overlap and parted",
				t, strings.Join(nemesis.TrackNames, ", "))
		}
	}
	if !slices.Contains([]string{fleet.InMemory, fleet.Everysec, fleet.Always, fleet.Mixed}, p.Store) {
		return fmt.Errorf("-store %s: there are %s, %s, %s and %s", p.Store, fleet.InMemory,
			fleet.Everysec, fleet.Always, fleet.Mixed)
	}
	if len(lo.Intersect(p.Work, []string{"mutex", "leader"})) == 0 {
		p.Rivals = 0 // there is nothing for a rival to lock
	}
	if p.Nodes < 3 && p.Nodes != 1 || p.Clients < 2 || p.Rivals < 0 || p.For <= 0 || p.Pace <= 0 {
		return fmt.Errorf("-nodes %d -clients %d -rivals %d -for %v -pace %v: 1 node, or at least 3, 2 clients "+
			"and some time", p.Nodes, p.Clients, p.Rivals, p.For, p.Pace)
	}
	return nil
}

// fenced reports whether the resource checks tokens. It does not if there are
// none.
func (p *plan) fenced() bool {
	return p.Control != client.ControlUnfenced && p.Control != client.ControlRedsync
}

// judged returns the work for the judge.
func (p *plan) judged() []judge.Work {
	return lo.Map(p.Work, func(kind string, _ int) judge.Work {
		return judge.Work{Kind: kind, Names: client.Names(kind), Capacity: client.Capacity(kind)}
	})
}

func (p *plan) String() string {
	text := fmt.Sprintf("nodes: %d (%s), %d clients, %s, seed %d", p.Nodes, p.Store, p.Clients,
		strings.Join(p.Work, " "), p.Seed)
	if p.Control != "" {
		text = "control " + p.Control + ": " + text
	}
	return text
}
