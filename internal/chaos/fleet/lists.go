package fleet

import (
	"slices"
	"sync"

	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/samber/lo"
)

// When a rival and the library exclude each other while the nodes of the set
// are exchanged.
//
// A redsync client has a fixed list of nodes, and does not follow the set. The
// harness gives it the new list after each exchange, as
// docs/operate/membership.md tells operators to do. Two lists exclude each
// other if every majority of one has a node in common with every majority of
// the other. A hold of ours needs a majority of each set that counts. So the
// old list excludes ours until the new set counts alone. From then until the
// rival has the new list, nothing is promised.

// Present returns the list of nodes with which to start a process: the old
// list, or the current set if most servers of the old list have left and were
// stopped, or were emptied to be added again. A new process follows a majority
// of its list, so by then operators must give it another list
// (docs/operate/membership.md). While it is not known which set counts, it is
// the servers that know one: the roster has every set that may count.
func Present(nodes []*Node, r *Roster, addrs []string) []string {
	if r.Unsettled() {
		knowing := lo.Filter(nodes, func(n *Node, _ int) bool { return n.Server.Running() && n.KnowsSet() })
		if len(knowing) > 0 {
			return lo.Map(knowing, func(n *Node, _ int) string { return n.Server.Addr() })
		}
	}
	set, _ := r.Now()
	var now []string
	known := 0
	for _, n := range nodes {
		addr := n.Server.Addr()
		if slices.Contains(set, n.ID) {
			now = append(now, addr)
		}
		if slices.Contains(addrs, addr) && (r.Has(n.ID) || n.Server.Running() && n.KnowsSet()) {
			known++
		}
	}
	if known < Majority(len(addrs)) {
		return now
	}
	return addrs
}

// alone is a set that has counted alone.
type alone struct {
	addrs []string
	from  int64 // before this, no node had shown it
	seen  int64 // when a node was first seen to show it
}

// Shown has all sets that have counted alone so far. It is safe for concurrent
// use.
type Shown struct {
	mu   sync.Mutex
	sets map[nodeset.Stamp]*alone
}

// note records that a node shows a set, and did not show it before from.
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

// Until returns the moment from which a list that was handed out at time at no
// longer excludes our holds, or 0 if it still does. A client counts on a set
// only after a node has shown it. Sets that were seen before the list was
// handed out no longer count.
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

// meet reports whether every majority of one set has a node in common with
// every majority of the other.
func meet[T comparable](a, b []T) bool {
	return Majority(len(a))+Majority(len(b)) > len(lo.Union(a, b))
}
