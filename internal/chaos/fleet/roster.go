package fleet

import (
	"slices"
	"sync"

	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/samber/lo"
)

// Roster tracks which servers form the recorded set, as far as the harness
// knows. It is safe for concurrent use.
//
// Invariant: sets contains every set that may count. There are several during
// an exchange of nodes, and for as long as an exchange is left unfinished. So
// no fault takes the data of more than a minority of a set that counts.
type Roster struct {
	mu      sync.Mutex
	sets    [][]int // the first one is the old set
	changes int     // how often sets has changed
	entered map[int]int64
}

// NewRoster returns the Roster of a set of the first servers.
func NewRoster(members int) *Roster {
	return &Roster{sets: [][]int{lo.Range(members)}, entered: map[int]int64{}}
}

// All returns the sets that may count.
func (s *Roster) All() [][]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sets)
}

// Now returns the set that counts if no exchange is in progress, otherwise the
// old one, and how often the sets have changed.
func (s *Roster) Now() (set []int, changes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sets[0], s.changes
}

// Voters returns the members of all sets that may count.
func (s *Roster) Voters() []int {
	union := lo.Union(s.All()...)
	slices.Sort(union)
	return union
}

// Has reports whether a server is a member of a set that may count.
func (s *Roster) Has(node int) bool { return slices.Contains(s.Voters(), node) }

// May records that other sets may count from now on, in addition to the old
// one.
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

// Settled records that only this set counts, and returns which members have
// left.
func (s *Roster) Settled(set []int) (left []int) {
	before := s.Voters()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, node := range lo.Union(s.sets...) {
		s.entered[node] = record.Now() // a node begins a new incarnation when it joins or is moved
	}
	s.sets = [][]int{slices.Sorted(slices.Values(set))}
	s.changes++
	return lo.Without(before, set...)
}

// Unsettled reports whether it is unknown which set counts.
func (s *Roster) Unsettled() bool { return len(s.All()) > 1 }

// EnteredSince reports whether the server has become a member since then, or is
// about to.
func (s *Roster) EnteredSince(node int, then int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.entered[node]
	return ok && (at > then || len(s.sets) > 1)
}

// Minority returns the largest number of voters that can fail while a majority
// remains.
func Minority(voters int) int { return (voters - 1) / 2 }

// Majority returns the smallest number of voters such that any two groups of
// that size share one.
func Majority(voters int) int { return voters/2 + 1 }
