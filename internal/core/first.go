package core

import (
	"hash/fnv"
	"slices"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// Most locks are free, and given back at once. Of one that is both, no more than
// a quorum of nodes need ever hear. So where many callers are at work, and the
// nodes' time is what there is too little of, an attempt at a name at which nobody
// has been met of late asks q nodes first. It asks the others when these do not
// suffice, or after a while: a lock that is kept survives the loss of as many
// nodes as ever. See protocol.Claim.Start. A lone caller asks all at once, and has
// the answers of the quickest: that takes less time, and there is enough of it.
//
// All clients begin with the same nodes at a name, so whoever comes second meets
// the first one there, and each node is among the first for as many names as any other.

// pace is a moving average of how long a node takes to answer, in nanoseconds.
type pace struct{ atomic.Int64 }

func (p *pace) took(d time.Duration) {
	old := p.Load()
	if old == 0 {
		p.Store(int64(d))
		return
	}
	p.Store(old + (int64(d)-old)/8)
}

const (
	// patience is what the first nodes are given beyond what their like have taken of
	// late, before the others are asked. A lock that is kept for less is never anywhere else.
	patience = 500 * time.Microsecond
	// slack is by how much more time a node may take than others and still be one of the first.
	slack = 250 * time.Microsecond
	// everyone is how often all nodes are asked at once in any case, so that it is
	// known how long each one takes: one attempt in so many.
	everyone = 32
)

// later says which nodes the attempt leaves out at first, a bit for each, and for how long.
func (q *Quorum) later(s *Spec, id protocol.ID, unwell uint32) (nodes uint32, after time.Duration) {
	n, need := len(q.nodes), len(q.nodes)/2+1
	// Whose lease is not renewed does not get another node later, either.
	if !s.Brief || !s.quiet() || s.Set.NoRenewal || need == n || id[3]%everyone == 0 {
		return 0, 0
	}
	var buf [32]int64
	paces := buf[:n]
	for i, node := range q.nodes {
		paces[i] = node.pace.Load()
	}
	var sorted [32]int64
	copy(sorted[:], paces)
	slices.Sort(sorted[:n])
	usual := time.Duration(sorted[need-1])
	h := fnv.New32a()
	_, _ = h.Write([]byte(s.Name))
	first := int(h.Sum32() % uint32(n))
	for k := range n {
		i := (first + k) % n
		switch {
		case unwell&(1<<i) != 0 || q.nodes[i].recovering.Load(): // it may be well again: ask, and do not wait
		case need > 0 && time.Duration(paces[i]) <= usual+usual/4+slack:
			need--
		default:
			nodes |= 1 << i
		}
	}
	if need > 0 {
		return 0, 0
	}
	return nodes, min(3*usual+patience, s.Set.NodeTimeout/4)
}
