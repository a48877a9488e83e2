package main

import (
	"slices"
	"sync"

	"github.com/samber/lo"
)

// roster is which servers the recorded set consists of, as far as the harness
// knows. Its methods are safe for concurrent use.
//
// Invariant: each set that may count is in sets. While nodes are being
// exchanged, and as long as an exchange is left half-way, these are several. So
// no fault takes the data of more than a minority of a set that counts.
type roster struct {
	mu      sync.Mutex
	sets    [][]int // the first one is that of before
	changes int     // times that sets has changed
	entered map[int]int64
}

// newRoster is of servers that are one set.
func newRoster(members int) *roster {
	return &roster{sets: [][]int{lo.Range(members)}, entered: map[int]int64{}}
}

// all are the sets that may count.
func (s *roster) all() [][]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sets)
}

// now is the set that counts, as far as no exchange is under way, and how often
// the sets have changed.
func (s *roster) now() (set []int, changes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sets[0], s.changes
}

// voters are the members of all sets that may count.
func (s *roster) voters() []int {
	union := lo.Union(s.all()...)
	slices.Sort(union)
	return union
}

// has says whether a server is a member of a set that may count.
func (s *roster) has(node int) bool { return slices.Contains(s.voters(), node) }

// may says that other sets may count from now on, beside that of before.
func (s *roster) may(sets ...[]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, set := range sets {
		for _, node := range lo.Without(set, s.sets[0]...) {
			s.entered[node] = now()
		}
		s.sets = append(s.sets, slices.Sorted(slices.Values(set)))
	}
	s.changes++
}

// settled says that one set counts, and returns which members have left.
func (s *roster) settled(set []int) (left []int) {
	before := s.voters()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, node := range lo.Union(s.sets...) {
		s.entered[node] = now() // it begins another incarnation if it enters, or is moved
	}
	s.sets = [][]int{slices.Sorted(slices.Values(set))}
	s.changes++
	return lo.Without(before, set...)
}

// unsettled says whether it is not known which set counts.
func (s *roster) unsettled() bool { return len(s.all()) > 1 }

// enteredSince says whether the server became a member since then, or is about
// to.
func (s *roster) enteredSince(node int, then int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.entered[node]
	return ok && (at > then || len(s.sets) > 1)
}

// minority is the most of so many that are no majority, and leave one.
func minority(voters int) int { return (voters - 1) / 2 }

// majority is the fewest of so many that any other such has one in common with.
func majority(voters int) int { return voters/2 + 1 }
