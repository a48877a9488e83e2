package demo

import (
	"cmp"
	"slices"
	"time"
)

// hold is one hold of the lock, in times since the start.
type hold struct {
	worker   int
	token    uint64
	from, to int // the number that it read, and wrote
	wrote    bool
	got, end time.Duration
	until    time.Duration // when its lease ended unless renewed, as of got
	fate     fate
}

// kill ends the hold as its process is killed. On a busy machine that is later
// than the end of the lease: the process had no time to renew it either, and
// the next worker may hold already.
func (h *hold) kill(at time.Duration) { h.end, h.fate = min(at, h.until), killed }

// fate is how a hold ended.
type fate int

const (
	running fate = iota
	done
	killed // its process was
	lost
)

// story is all that happened.
type story struct {
	nodes, workers int
	ttl            time.Duration
	length         time.Duration // planned
	holds          []*hold       // in the order in which they were reported
	victim         *hold         // the hold whose process was killed
	successor      *hold         // the next hold after it
	nodeDown       int           // the node that was killed, or -1
	nodeDownAt     time.Duration
}

// current returns the worker's hold that has not ended, or nil.
func (s *story) current(worker int) *hold {
	for _, h := range slices.Backward(s.holds) {
		if h.worker == worker {
			if h.fate == running {
				return h
			}
			return nil
		}
	}
	return nil
}

// ordered returns the holds in the order in which they began.
func (s *story) ordered() []*hold {
	hs := slices.Clone(s.holds)
	slices.SortFunc(hs, func(a, b *hold) int { return cmp.Compare(a.got, b.got) })
	return hs
}

// check is one thing that had to come out right.
type check struct {
	ok   bool
	text string
}

// verdict is what has come out.
type verdict struct {
	checks   []check
	median   time.Duration // of the hand-overs
	slowest  time.Duration
	handOver int // how many
}

func (v *verdict) add(ok bool, text string) { v.checks = append(v.checks, check{ok, text}) }

func (v *verdict) ok() bool {
	for _, c := range v.checks {
		if !c.ok {
			return false
		}
	}
	return true
}
