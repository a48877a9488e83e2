package fleet

import (
	"slices"
	"sync"

	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/samber/lo"
)

// Roster is which servers the recorded set consists of, as far as the harness
// knows. Its methods are safe for concurrent use.
//
// Invariant: each set that may count is in sets. While nodes are being
// exchanged, and as long as an exchange is left half-way, these are several. So
// no fault takes the data of more than a minority of a set that counts.
type Roster struct {
	mu      sync.Mutex
	sets    [][]int // the first one is that of before
	changes int     // times that sets has changed
	entered map[int]int64
}

// NewRoster is of servers that are one set.
func NewRoster(members int) *Roster {
	return &Roster{sets: [][]int{lo.Range(members)}, entered: map[int]int64{}}
}

// All are the sets that may count.
func (s *Roster) All() [][]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sets)
}

// Now is the set that counts, as far as no exchange is under way, and how often
// the sets have changed.
func (s *Roster) Now() (set []int, changes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sets[0], s.changes
}

// Voters are the members of all sets that may count.
func (s *Roster) Voters() []int {
	union := lo.Union(s.All()...)
	slices.Sort(union)
	return union
}

// Has says whether a server is a member of a set that may count.
func (s *Roster) Has(node int) bool { return slices.Contains(s.Voters(), node) }

// May says that other sets may count from now on, alongside the old one.
func (s *Roster) May(sets ...[]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, set := range sets {
		for _, node := range lo.Without(set, s.sets[0]...) {
			s.entered[node] = record.Now()
		}
		s.sets = append(s.sets, slices.Sorted(slices.Values(set)))
	}
	s.changes++
}

// Settled says that one set counts, and returns which members have left.
func (s *Roster) Settled(set []int) (left []int) {
	before := s.Voters()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, node := range lo.Union(s.sets...) {
		s.entered[node] = record.Now() // it begins another incarnation if it enters, or is moved
	}
	s.sets = [][]int{slices.Sorted(slices.Values(set))}
	s.changes++
	return lo.Without(before, set...)
}

// Unsettled says whether it is not known which set counts.
func (s *Roster) Unsettled() bool { return len(s.All()) > 1 }

// EnteredSince says whether the server became a member since then, or is about
// to.
func (s *Roster) EnteredSince(node int, then int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.entered[node]
	return ok && (at > then || len(s.sets) > 1)
}

// Minority is the most of so many that are no majority, and leave one.
func Minority(voters int) int { return (voters - 1) / 2 }

// Majority is the fewest of so many that any other such has one in common with.
func Majority(voters int) int { return voters/2 + 1 }
