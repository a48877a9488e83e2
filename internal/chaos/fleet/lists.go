package fleet

import (
	"slices"
	"sync"

	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/samber/lo"
)

// What a rival and the library promise each other while the nodes of the set
// are exchanged.
//
// A redsync client has a list of nodes, and does not follow the set. The
// harness gives it the new list after each exchange, as
// docs/operate/membership.md asks of operators. Two lists exclude each other if
// each majority of the one has a node in common with each majority of the
// other. A hold of ours needs a majority of each set that counts. So the old
// list excludes ours until the new set counts alone. From then until the rival
// has its new list nothing is promised.

// Present is a list of nodes as a process gets it when it starts: the old one,
// or the set if most of its servers have left and were stopped. A process that
// starts follows the word of a majority of its list, so operators have to give
// it another one by then (docs/operate/membership.md).
func Present(nodes []*Node, r *Roster, addrs []string) []string {
	set, _ := r.Now()
	var now []string
	known := 0
	for _, n := range nodes {
		addr := n.Server.Addr()
		if slices.Contains(set, n.ID) {
			now = append(now, addr)
		}
		if slices.Contains(addrs, addr) && (r.Has(n.ID) || n.Server.Running()) {
			known++
		}
	}
	if known < Majority(len(addrs)) {
		return now
	}
	return addrs
}

// alone is a set that counts alone.
type alone struct {
	addrs []string
	from  int64 // no node had shown it before
	seen  int64 // a node was first seen to show it
}

// Shown are all such sets so far. Its methods are safe for concurrent use.
type Shown struct {
	mu   sync.Mutex
	sets map[nodeset.Stamp]*alone
}

// note takes down that a node shows a set, and had not shown it before from.
func (s *Shown) note(set nodeset.NodeSet, from int64) {
	if set.Phase != nodeset.SetRecorded || set.Config.Stage != nodeset.Stable {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.sets[set.Stamp()]; a != nil {
		a.from = min(a.from, from)
		return
	}
	if s.sets == nil {
		s.sets = map[nodeset.Stamp]*alone{}
	}
	s.sets[set.Stamp()] = &alone{set.Config.Addrs(), from, record.Now()}
}

// Until returns the moment from which a list that was given out at some time
// excludes ours no more; 0 if that did not come. A client counts on a set only
// after a node has shown it. Sets that were seen before the list was given out
// are over.
func (s *Shown) Until(addrs []string, at int64) (until int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.sets {
		if a.seen > at && !meet(a.addrs, addrs) && (until == 0 || a.from < until) {
			until = max(a.from, 1)
		}
	}
	return until
}

// meet reports whether each majority of one set has a node in common with each
// majority of the other.
func meet[T comparable](a, b []T) bool {
	return Majority(len(a))+Majority(len(b)) > len(lo.Union(a, b))
}
