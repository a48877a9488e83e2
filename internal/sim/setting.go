package sim

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/model"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
)

// setting is what stays fixed during one schedule.
type setting struct {
	nodes, procs, parts int // parts: participants of one process
	members             int // so many of the nodes are the set at first; 0: all, and the processes know no sets
	locks               int // names that participants claim, in turn; 0: one

	capacity uint64
	weights  []uint64 // a participant asks for one of these
	counting bool
	record   bool // holders do something once, and record it

	ttl, skew, guard, nodeTimeout time.Duration
	retention                     time.Duration // of a fence; 0: for good

	bootstrap bool    // the nodes vote from the start
	residues  int     // ids fall into so many residue classes; 1: all claims propose like tickets
	drift     float64 // clocks run this fraction fast or slow at most
	offsets   bool    // node clocks and wall clocks differ

	delay  time.Duration // of a message, at least
	jitter time.Duration // and at most so much more, usually
	tail   time.Duration // rarely: so much more
	late   time.Duration // a timer fires up to so much late

	callers int           // goroutines that share a value; 0: participants act by themselves
	reading int           // of four turns so many are readers'
	linger  time.Duration // a claim is kept for so long after the last caller
	wakes   time.Duration // in traces: a goroutine that could run runs so much later

	maxHold     time.Duration // a hold is renewed for so long; 0: for as long as it lasts
	hold, think time.Duration // means of a participant's random times
	tryEvery    int           // one acquisition of so many is a Try; 0: none
	cancelEvery int           // one of so many is cancelled; 0: none
	expiry      time.Duration // of the keys of another Redlock client, where an aim sets one
	persist     time.Duration // how long an operation on the record is tried; 0: a few ttl
	length      time.Duration // until then participants start acquisitions and faults happen

	latePush int           // one push of so many comes late; 0: none
	lag      time.Duration // by as much as this

	window  int // how many requests of a process a node has room for; 0: any number
	places  int // how many attempts of a process are on the way to their first answers at a time; 0: any number
	portion int // how many claims a node deals with at a time; 0: as many as the scripts do

	faithful bool // no node forgets, and no clock jumps
	limping  bool // only a minority of the nodes fails, and what leads there

	names int  // that nodes have beside the record: see repair.go
	turns bool // no process loses its turn to repair a node: two never do at once

	clean     bool // no faults at all: promises about time and order can be held to
	tries     bool // every claim tries a free name, all at the same moment: one of them is to be admitted
	shortHold bool // claims leave nodes out at first
	eager     bool // a link that is down fails requests at once, else they time out

	rules     protocol.Rules // the claims' rules
	off       model.Rules    // the nodes' rules that are switched off
	overtake  bool           // mutant: a leave overtakes what was sent before it
	scant     bool           // mutant: nothing is given away to jumps that no client notices
	unbound   bool           // mutant: WithMaxHold does not stop the renewal
	oneClock  bool           // mutant: all names of a process have one ticket clock
	hoard     bool           // mutant: what a broken connection had unanswered goes on taking room
	forgetful bool           // mutant: no client looks whether a node has just restarted
}

// clockRate is the largest deviation of a clock: two of them stay within the
// 1% by which a client takes its leases to end early.
const clockRate = 0.0049

// margin is how much of a lease the client gives away to clock drift.
func (s *setting) margin(ttl time.Duration) time.Duration {
	if s.scant {
		return ttl/100 + 2*time.Millisecond
	}
	return lease.Drift(ttl)
}

// randomSetting draws a setting that the library's own checks would let pass.
func randomSetting(r *rand.Rand) setting {
	s := setting{
		nodes: [...]int{1, 2, 3, 3, 3, 3, 3, 4, 5, 5}[r.IntN(10)],
		procs: 2 + r.IntN(4), parts: 1 + r.IntN(5)/4,
		ttl:       [...]time.Duration{time.Second, 2 * time.Second, 8 * time.Second}[r.IntN(3)],
		bootstrap: r.IntN(8) > 0,
		residues:  [...]int{1, 2, 64, 64, 64}[r.IntN(5)],
		offsets:   r.IntN(4) > 0,
		delay:     time.Duration(100+r.IntN(3000)) * time.Microsecond,
		shortHold: true,
		eager:     r.IntN(2) > 0, latePush: 16,
		tryEvery: [...]int{0, 0, 2, 5}[r.IntN(4)], cancelEvery: [...]int{0, 6, 3}[r.IntN(3)],
	}
	s.shape(r)
	s.portion = [...]int{1, 2, 0, 0}[s.delay/time.Microsecond%4]
	s.window = [...]int{1, 2, 4, 0, 0, 0, 0, 0}[s.delay/(8*time.Microsecond)%8]
	s.lag = s.ttl * (1 + 3*(s.delay/time.Microsecond%2)) // beyond a lease, too
	s.skew = s.ttl * time.Duration(r.IntN(3)) / 4
	s.guard = 2*s.ttl + 2*s.skew
	s.nodeTimeout = min(200*time.Millisecond, s.ttl/10)
	s.jitter = s.delay * time.Duration(1+r.IntN(4))
	s.tail = time.Duration(r.IntN(2)) * s.nodeTimeout / 2
	s.late = time.Duration(r.IntN(2)) * 3 * time.Millisecond
	if r.IntN(4) > 0 {
		s.drift = clockRate
	}
	s.hold = []time.Duration{s.ttl / 200, s.ttl / 10, s.ttl}[r.IntN(3)]
	s.think = []time.Duration{s.ttl / 500, s.ttl / 10, s.ttl}[r.IntN(3)]
	s.length = s.guard + s.ttl*time.Duration(1+r.IntN(5))
	if s.record { // so that comparing everything with everything stays cheap
		s.hold, s.think = max(s.hold, s.ttl/20), max(s.think, s.ttl/20)
	}
	return s
}

// shape draws the primitive: mutex, semaphore or read-write lock.
func (s *setting) shape(r *rand.Rand) {
	switch r.IntN(6) {
	case 0:
		s.capacity, s.weights, s.counting = 2, []uint64{1}, true
	case 1:
		s.capacity, s.weights, s.counting = 3, []uint64{1, 2}, true
	case 2:
		s.capacity, s.weights = 1<<30, []uint64{1, 1, 1 << 30}
	default:
		s.capacity, s.weights = 1, []uint64{1}
		s.record = r.IntN(3) == 0
	}
}

// borne is by how much a clock may jump within a lease: rule 5's margin, less
// the 1% that clocks may differ by in speed, and the resolution of a node's.
func (s *setting) borne() time.Duration { return s.ttl / 50 }

// settings are what all clients of a set share.
func (s *setting) settings() nodeset.Shared {
	return nodeset.Shared{Guard: s.guard, Retention: s.retention, Skew: s.skew}
}
