//go:build search

package exhaustive

import (
	"fmt"
	"math/bits"
	"time"
)

// Result is what a search found.
type Result struct {
	States   int
	Moves    int // edges between states
	Depth    int
	Complete bool     // there is no state left that was not looked at
	Wrong    string   // the first violation on a shortest path, "" when there is none
	Trace    []string // how to get there
	Elapsed  time.Duration
}

func (r Result) String() string {
	end := "complete"
	switch {
	case r.Wrong != "":
		end = r.Wrong
	case !r.Complete:
		end = "not complete"
	}
	return fmt.Sprintf("%d states, %d moves, depth %d, %s, %v", r.States, r.Moves, r.Depth,
		end, r.Elapsed.Round(time.Millisecond))
}

// search is breadth first, so what it finds first is found on a shortest path.
// States are kept whole: two are one only when they are equal, not when a hash
// is.
type search struct {
	*space
	states  []state
	parents []uint32
	table   []uint32 // open addressing; 0 is empty, else 1 + index of the state
}

// Run searches everything that cfg allows.
func Run(cfg Config) (r Result) {
	start := time.Now()
	x := &search{space: newSpace(cfg), table: make([]uint32, 1<<16)}
	defer func() { r.States, r.Elapsed = len(x.states), time.Since(start) }()
	x.see(x.root(), 0)
	var acts []action
	level := 1 // the first state of the next depth
	for at := 0; at < len(x.states); at++ {
		if at == level {
			r.Depth, level = r.Depth+1, len(x.states)
		}
		s := x.states[at]
		if cfg.Live > 0 && at%cfg.Live == 0 {
			if wrong := x.stuck(s); wrong != "" {
				r.Wrong, r.Trace = wrong, append(x.path(at, ""),
					"from here on nothing is lost and holders release at once", wrong)
				return r
			}
		}
		if s.claims[0] != 0 && !x.open(s) {
			continue
		}
		acts = x.actions(s, acts)
		for _, a := range acts {
			next, wrong := x.apply(s, a)
			r.Moves++
			if wrong != "" {
				r.Depth, r.Wrong, r.Trace = r.Depth+1, wrong, x.path(at, wrong)
				return r
			}
			x.see(x.canonical(next), uint32(at))
		}
		if cfg.MaxStates > 0 && len(x.states) >= cfg.MaxStates {
			return r
		}
	}
	r.Complete = true
	return r
}

// see notes a state that has not been seen before.
func (x *search) see(s state, parent uint32) {
	if 4*len(x.states) > 3*len(x.table) {
		old := x.table
		x.table = make([]uint32, 2*len(old))
		for _, id := range old {
			if id != 0 {
				*x.place(x.states[id-1]) = id
			}
		}
	}
	if p := x.place(s); *p == 0 {
		x.states, x.parents = append(x.states, s), append(x.parents, parent)
		*p = uint32(len(x.states))
	}
}

func (x *search) place(s state) *uint32 {
	mask := uint64(len(x.table) - 1)
	for h := s.hash(); ; h++ {
		p := &x.table[h&mask]
		if *p == 0 || x.states[*p-1] == s {
			return p
		}
	}
}

func (s *state) hash() uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	mix := func(v uint64) {
		hi, lo := bits.Mul64(h^v, 0xd6e8feb86659fd93)
		h = hi ^ lo
	}
	mix(uint64(s.claims[0])<<32 | uint64(s.claims[1]))
	mix(uint64(s.claims[2])<<32 | uint64(s.cols[0]))
	mix(uint64(s.cols[1])<<32 | uint64(s.cols[2]))
	l := s.left
	mix(uint64(l.fails) | uint64(l.repeats)<<8 | uint64(l.beats)<<16 | uint64(l.restarts)<<24 |
		uint64(l.pauses)<<32 | uint64(l.gains)<<40 | uint64(l.cuts)<<48 | uint64(l.units)<<56)
	mix(uint64(l.since[0]) | uint64(l.since[1])<<8 | uint64(l.drops)<<16 | uint64(l.stops)<<24)
	return h
}
