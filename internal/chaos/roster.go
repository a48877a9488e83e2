package main

import (
	"math/rand/v2"
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

// voters are the servers that are members of a set that may count.
func (n *nemesis) voters() []*node {
	return lo.Map(n.roster.voters(), func(id int, _ int) *node { return n.nodes[id] })
}

// pick is one of them.
func (n *nemesis) pick(r *rand.Rand) *node {
	voters := n.voters()
	return voters[r.IntN(len(voters))]
}

// some are the numbers of some of them.
func (n *nemesis) some(r *rand.Rand, most func(voters int) int) []int {
	voters := n.roster.voters()
	return lo.Map(some(r, most(len(voters)), len(voters)), func(i int, _ int) int { return voters[i] })
}

// shuffled are the numbers of all of them.
func (n *nemesis) shuffled(r *rand.Rand) []int {
	voters := n.roster.voters()
	return lo.Map(r.Perm(len(voters)), func(i int, _ int) int { return voters[i] })
}

// allNodes are the numbers of all servers, also of those that are no members.
func (n *nemesis) allNodes() []int { return lo.Range(len(n.nodes)) }

// back says that a node that has lost its data is there again. Its caller holds
// mu of the node.
func (n *nemesis) back(nd *node) {
	n.memory.back(nd.id)
	n.retire(nd)
}

// retire stops a server that is no member any more, and has lost its data. Its
// caller holds mu of the node.
//
// Invariant: no such server runs. A client that starts with a list of such
// servers takes them for nodes that have recorded no set (docs/membership.md,
// Limits of an exchange).
func (n *nemesis) retire(nd *node) {
	if n.plan.exchanges() && !n.roster.has(nd.id) && !nd.knowsSet() {
		_ = nd.server.Kill()
	}
}
