package course

import (
	"cmp"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/model"
	"github.com/quorate/quorate/internal/nodeset"
)

// Setting is what stays fixed during one schedule.
type Setting struct {
	Nodes, Procs, Parts int // parts: participants of one process
	Members             int // so many of the nodes are the set at first; 0: all, and the processes know no sets
	Locks               int // names that participants claim, in turn; 0: one

	Capacity uint64
	Weights  []uint64 // a participant asks for one of these
	Counting bool
	Record   bool // holders do something once, and record it

	TTL, Skew, Guard, NodeTimeout time.Duration
	Least                         time.Duration // the shortest ttl of a process; 0: all have TTL
	Retention                     time.Duration // of a fence; 0: for good

	Bootstrap bool    // the nodes vote from the start
	Residues  int     // ids fall into so many residue classes; 1: all claims propose like tickets
	Drift     float64 // clocks run this fraction fast or slow at most
	Offsets   bool    // node clocks and wall clocks differ

	Delay  time.Duration // of a message, at least
	Jitter time.Duration // and at most so much more, usually
	Tail   time.Duration // rarely: so much more
	Late   time.Duration // a timer fires up to so much late

	Callers int           // goroutines that share a value; 0: participants act by themselves
	Reading int           // of four turns so many are readers'
	Linger  time.Duration // a claim is kept for so long after the last caller
	Wakes   time.Duration // in traces: a goroutine that could run runs so much later

	MaxHold     time.Duration // a hold is renewed for so long; 0: for as long as it lasts
	Hold, Think time.Duration // means of a participant's random times
	TryEvery    int           // one acquisition of so many is a Try; 0: none
	CancelEvery int           // one of so many is cancelled; 0: none
	Expiry      time.Duration // of the keys of another Redlock client, where an aim sets one
	Persist     time.Duration // how long an operation on the record is tried; 0: a few ttl
	Length      time.Duration // until then participants start acquisitions and faults happen

	LatePush int           // one push of so many comes late; 0: none
	Lag      time.Duration // by as much as this

	Window  int // how many requests of a process a node has room for; 0: any number
	Places  int // how many attempts of a process are on the way to their first answers at a time; 0: any number
	Portion int // how many claims a node deals with at a time; 0: as many as the scripts do

	Faithful bool // no node forgets, and no clock jumps
	Limping  bool // only a minority of the nodes fails, and what leads there

	Names int  // that nodes have beside the record: see repair.go
	Turns bool // no process loses its turn to repair a node: two never do at once

	Clean     bool // no faults at all: promises about time and order can be held to
	Tries     bool // every claim tries a free name, all at the same moment: one of them is to be admitted
	ShortHold bool // claims leave nodes out at first
	Eager     bool // a link that is down fails requests at once, else they time out

	Off       model.Rules // the nodes' rules that are switched off
	Overtake  bool        // mutant: a leave overtakes what was sent before it
	Scant     bool        // mutant: nothing is given away to jumps that no client notices
	Unbound   bool        // mutant: WithMaxHold does not stop the renewal
	OneClock  bool        // mutant: all names of a process have one ticket clock
	Hoard     bool        // mutant: what a broken connection had unanswered goes on taking room
	Forgetful bool        // mutant: no client looks whether a node has just restarted
}

// ClockRate is the largest deviation of a clock: two of them stay within the
// 1% by which a client takes its leases to end early.
const ClockRate = 0.0049

// Margin is how much of a lease the client gives away to clock drift.
func (s *Setting) Margin(ttl time.Duration) time.Duration {
	if s.Scant {
		return ttl/100 + 2*time.Millisecond
	}
	return lease.Drift(ttl)
}

// RandomSetting draws a setting that the library's own checks would let pass.
func RandomSetting(r *rand.Rand) Setting {
	s := Setting{
		Nodes: [...]int{1, 2, 3, 3, 3, 3, 3, 4, 5, 5}[r.IntN(10)],
		Procs: 2 + r.IntN(4), Parts: 1 + r.IntN(5)/4,
		TTL:       [...]time.Duration{time.Second, 2 * time.Second, 8 * time.Second}[r.IntN(3)],
		Bootstrap: r.IntN(8) > 0,
		Residues:  [...]int{1, 2, 64, 64, 64}[r.IntN(5)],
		Offsets:   r.IntN(4) > 0,
		Delay:     time.Duration(100+r.IntN(3000)) * time.Microsecond,
		ShortHold: true,
		Eager:     r.IntN(2) > 0, LatePush: 16,
		TryEvery: [...]int{0, 0, 2, 5}[r.IntN(4)], CancelEvery: [...]int{0, 6, 3}[r.IntN(3)],
	}
	s.shape(r)
	s.Portion = [...]int{1, 2, 0, 0}[s.Delay/time.Microsecond%4]
	s.Window = [...]int{1, 2, 4, 0, 0, 0, 0, 0}[s.Delay/(8*time.Microsecond)%8]
	s.Lag = s.TTL * (1 + 3*(s.Delay/time.Microsecond%2)) // beyond a lease, too
	s.Skew = s.TTL * time.Duration(r.IntN(3)) / 4
	s.Guard = 2*s.TTL + 2*s.Skew
	s.NodeTimeout = min(200*time.Millisecond, s.TTL/10)
	s.Jitter = s.Delay * time.Duration(1+r.IntN(4))
	s.Tail = time.Duration(r.IntN(2)) * s.NodeTimeout / 2
	s.Late = time.Duration(r.IntN(2)) * 3 * time.Millisecond
	if r.IntN(4) > 0 {
		s.Drift = ClockRate
	}
	s.Hold = []time.Duration{s.TTL / 200, s.TTL / 10, s.TTL}[r.IntN(3)]
	s.Think = []time.Duration{s.TTL / 500, s.TTL / 10, s.TTL}[r.IntN(3)]
	s.Length = s.Guard + s.TTL*time.Duration(1+r.IntN(5))
	if s.Record { // so that comparing everything with everything stays cheap
		s.Hold, s.Think = max(s.Hold, s.TTL/20), max(s.Think, s.TTL/20)
	}
	return s
}

// shape draws the primitive: mutex, semaphore or read-write lock.
func (s *Setting) shape(r *rand.Rand) {
	switch r.IntN(6) {
	case 0:
		s.Capacity, s.Weights, s.Counting = 2, []uint64{1}, true
	case 1:
		s.Capacity, s.Weights, s.Counting = 3, []uint64{1, 2}, true
	case 2:
		s.Capacity, s.Weights = 1<<30, []uint64{1, 1, 1 << 30}
	default:
		s.Capacity, s.Weights = 1, []uint64{1}
		s.Record = r.IntN(3) == 0
	}
}

// Borne is by how much a clock may jump within a lease: rule 5's margin, less
// the 1% that clocks may differ by in speed, and the resolution of a node's.
func (s *Setting) Borne() time.Duration { return cmp.Or(s.Least, s.TTL) / 50 }

// Settings are what all clients of a set share.
func (s *Setting) Settings() nodeset.Shared {
	return nodeset.Shared{Guard: s.Guard, Retention: s.Retention, Skew: s.Skew}
}
