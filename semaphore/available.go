package semaphore

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"slices"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
)

// listed is the maximum number of claims that a node reports for a name.
const listed = 100

// Available asks the nodes how many permits could be acquired right now. The
// number is 0 while a claim is waiting, because no request overtakes an earlier
// one. It is also 0 while more permits are held than the last [Weighted.Resize]
// allows.
//
// The number is a snapshot for metrics and dashboards. It may be out of date by
// the time Available returns, so use [Weighted.TryAcquire] to find out whether
// you can get a permit. A node reports the permits of only the first 100
// claims, and every later claim is assumed to hold one permit, so the number
// can be too high if more than 100 claims hold several permits each.
//
// Available waits for a majority of the nodes until ctx is done, and returns
// [quorate.ErrNoQuorum] if too few nodes know which permits are held. It
// returns [quorate.ErrHeld] while a Resize is in progress, and
// [quorate.ErrInvalid] if the name is in use with a different number of
// permits.
func (s *Weighted) Available(ctx context.Context) (int64, error) {
	s.usable()
	n, err := uint64(0), s.err
	if err == nil {
		n, err = s.available(ctx)
	}
	return int64(n), core.WrapError("available", s.spec.Name, err)
}

func (s *Weighted) available(ctx context.Context) (uint64, error) {
	size, resized, err := core.Permits(ctx, s.q, s.spec)
	if err != nil {
		return 0, err
	}
	said, sets, err := s.q.Onlooker().Ask(ctx, func(dst []byte, _ *core.NodeAnswer,
		keys func(string) script.Keys) []byte {
		return script.AppendInspect(dst, keys(s.spec.Name), listed, 0)
	})
	if err != nil {
		return 0, err
	}
	queues, known := map[int]script.Queue{}, uint32(0)
	f := &fault.Failure{Err: fault.ErrNoQuorum, Needed: sets.Need()}
	for _, n := range said {
		queue, err := script.Queue{}, n.Err
		if err == nil {
			queue, err = script.DecodeInspect(n.Values)
		}
		if err == nil && queue.Memory < s.q.Guard() { // it may lack claims
			err = fault.ErrForgetful
		}
		if err != nil {
			f.Nodes = append(f.Nodes, fault.NodeFailure{Addr: n.Addr, Err: err})
			continue
		}
		known |= 1 << n.Index
		queues[n.Index] = queue
	}
	if !sets.Met(known) {
		f.Votes = bits.OnesCount32(known & sets.All())
		if ctx.Err() != nil {
			f.Cut(ctx)
		}
		return 0, f
	}
	if other := capacityOf(queues, sets); !resized && other != 0 && other != size {
		return 0, fmt.Errorf("%w: %w", fault.ErrInvalid, &fault.ClashError{Asked: size, InForce: other})
	}
	return free(size, queues, sets), nil
}

// capacityOf returns the capacity that the claims on a quorum of nodes were
// made with, or 0 if no quorum has claims or agrees.
func capacityOf(queues map[int]script.Queue, sets protocol.Quorums) uint64 {
	nodes := map[uint64]uint32{}
	for i, q := range queues {
		if nodes[q.Capacity] |= 1 << i; sets.Met(nodes[q.Capacity]) {
			return q.Capacity
		}
	}
	return 0
}

// free returns how many of size permits a new claim could get, according to the
// queues of the nodes that answered. It counts by rule 3 of
// docs/internals/protocol.md: a claim takes up its permits if a majority could
// have it, assuming that every node that did not answer has it. So a claim that
// is joining or leaving and has reached only a minority takes up none.
//
// Three nodes, size 5: a holder of 2 is on nodes 0 and 1, a holder of 1 on all,
// and node 2 still has a claim of 4 that has just left the others. It returns 2.
func free(size uint64, queues map[int]script.Queue, sets protocol.Quorums) uint64 {
	known := uint32(0)
	for i := range queues {
		known |= 1 << i
	}
	counts := func(nodes uint32) bool { return sets.Any(nodes | sets.All()&^known) }
	type claim struct {
		nodes  uint32
		weight uint64
	}
	claims, waiting := map[string]claim{}, uint32(0)
	for i, q := range queues {
		for _, c := range q.Claims {
			m := claims[c.ID]
			if m.nodes == 0 || c.Weight < m.weight { // claims only ever get lighter
				m.weight = c.Weight
			}
			m.nodes |= 1 << i
			claims[c.ID] = m
		}
		if q.Queued > q.Voted {
			waiting |= 1 << i
		}
	}
	taken, n := uint64(0), 0
	for _, c := range claims {
		if counts(c.nodes) {
			taken, n = taken+c.weight, n+1
		}
	}
	taken += uint64(max(0, queued(queues, counts)-n))
	if waiting != 0 && counts(waiting) || taken >= size {
		return 0
	}
	return size - taken
}

// queued returns how many claims a majority could have in its queues.
func queued(queues map[int]script.Queue, counts func(nodes uint32) bool) int {
	type length struct{ node, claims int }
	var all []length
	for i, q := range queues {
		all = append(all, length{i, q.Queued})
	}
	slices.SortFunc(all, func(a, b length) int { return cmp.Compare(b.claims, a.claims) })
	nodes := uint32(0)
	for _, l := range all {
		if nodes |= 1 << l.node; counts(nodes) {
			return l.claims
		}
	}
	return 0
}
