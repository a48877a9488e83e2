package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/chaos/judge"
	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/script"
	"github.com/redis/go-redis/v9"
	"github.com/samber/lo"
)

// ErrSkip says that a fault was not done because it must not or could not be.
var ErrSkip = errors.New("skipped")

// Memory sees to it that no more nodes are without their data than the protocol
// bears: a minority at a time, or the only one, each from the moment it forgets until it votes
// again, a guard time after the first client has noticed, and has been
// repaired. It stands between the nemesis and the nodes, so that neither a
// restart that takes long nor a client that comes late can break the rule.
type Memory struct {
	guard  time.Duration
	sets   func() [][]int                 // that may count
	marker func(node int) (Marker, error) // nil where nodes have no marker

	mu    sync.Mutex
	lost  map[int]loss
	log   []judge.Loss
	slips []judge.Loss // of clocks, which lose nothing
}

// Marker is what a node remembers of itself, and what it has recorded of its
// set; the zero marker when it has none.
type Marker struct {
	Incarnation int64
	born        time.Time // since when it counts its guard time, by the machine's clock
	whole       bool      // it is caught up
	set         nodeset.NodeSet
}

// loss is when a node lost its data, and when it was back; zero while it is
// not.
type loss struct {
	at, back time.Time
	// The incarnation under which it goes on until a client notices that
	// something has happened: 0 where the marker goes with the memory, or a new
	// run tells.
	pretends int64
	// It has lost nothing, but its clock was set. Clients that cannot tell whose
	// clock it was let their leases and its votes bear the jump, and leave the
	// node alone: so it may never be noticed, and is over when the earlier leases
	// have ended.
	clock bool
}

// unnoticed says whether the node goes on under the old marker, and that still
// matters.
func (m *Memory) unnoticed(l loss, k Marker) bool {
	aged := l.clock && !l.back.IsZero() && time.Since(l.back) > 3*m.guard
	return l.pretends != 0 && k.Incarnation == l.pretends && !aged
}

// NewMemory has a memory of nodes that have lost nothing yet. sets are those
// that may count; ask returns the marker of a node, and is nil where nodes have
// none.
func NewMemory(sets func() [][]int, guard time.Duration, ask func(int) (Marker, error)) *Memory {
	return &Memory{guard: guard, sets: sets, marker: ask, lost: map[int]loss{}}
}

// Lose asks whether the node may lose its data now, and if so takes it that it
// does.
func (m *Memory) Lose(node int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	// Two jumps that no client has noticed may cancel out, and then no client
	// ever does.
	if l := m.lost[node]; l.pretends != 0 {
		if k, err := m.marker(node); err != nil || m.unnoticed(l, k) {
			return fmt.Errorf("%w: no client has noticed what came before", ErrSkip)
		}
	}
	var without []int
	for n, l := range m.lost {
		if n != node && !m.over(n, l) {
			without = append(without, n)
		}
	}
	member := false
	for _, set := range m.sets() {
		if !slices.Contains(set, node) {
			continue
		}
		member = true
		if few := len(lo.Intersect(set, without)); few >= max(1, Minority(len(set))) {
			return fmt.Errorf("%w: %d nodes are without their data already", ErrSkip, few)
		}
	}
	if !member { // what has left the set stays with its data
		return fmt.Errorf("%w: it is no member any more", ErrSkip)
	}
	m.lost[node] = loss{at: time.Now()}
	m.log = append(m.log, judge.Loss{Node: node, From: record.Now()})
	return nil
}

// over says whether a node votes again, and attests what is recorded.
func (m *Memory) over(n int, l loss) bool {
	// A node tells its age in seconds, so one of them may be added.
	if l.back.IsZero() || time.Since(l.back) < m.guard+m.guard/10+time.Second {
		return false
	}
	if m.marker == nil {
		return true
	}
	k, err := m.marker(n)
	if err != nil || k.born.IsZero() || !k.whole || m.unnoticed(l, k) {
		return false
	}
	return k.born.Before(l.at) || time.Since(k.born) > m.guard+m.guard/10
}

// Pretend says that the node, which is losing its data, keeps a marker that
// does not tell.
func (m *Memory) Pretend(node int) error {
	if m.marker == nil {
		return nil
	}
	k, err := m.marker(node)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.lost[node]
	l.pretends = k.Incarnation
	m.lost[node] = l
	return nil
}

// Back says that the node is there again, and remembers from now on.
func (m *Memory) Back(node int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.lost[node]
	l.back = time.Now()
	m.lost[node] = l
	m.last(node).To = record.Now()
}

// last is the node's last loss.
func (m *Memory) last(node int) *judge.Loss {
	for i := len(m.log) - 1; i >= 0; i-- {
		if m.log[i].Node == node {
			return &m.log[i]
		}
	}
	return &judge.Loss{}
}

// ByClock says that the node, which is losing its data, does so as its clock is
// set.
func (m *Memory) ByClock(node int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last(node).Clock = true
	l := m.lost[node]
	l.clock = true
	m.lost[node] = l
}

// Slip says that the node's clock has jumped by so little that no lease
// suffers. A client that notices has the node count a guard time all the same.
func (m *Memory) Slip(node int, from int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.slips = append(m.slips, judge.Loss{Node: node, From: from, To: record.Now()})
}

// Losses are all so far.
func (m *Memory) Losses() []judge.Loss {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.log)
}

// LostSince says whether the node has lost its data since then, or does now, or
// its clock has slipped.
func (m *Memory) LostSince(node int, then int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(append(slices.Clip(m.log), m.slips...), func(l judge.Loss) bool { return l.Node == node && (l.To == 0 || l.To > then) })
}

// Marker reads a node's marker: its incarnation, since when it has been that by
// its own clock, a run, and a w if the node is whole.
func (n *Node) Marker() (k Marker, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	if k.set, err = n.recorded(ctx); err != nil {
		return k, err
	}
	// Recording a set moves the marker.
	text, err := n.Admin.Get(ctx, script.HomeOf(k.set.Stamp()).Marker(prefix)).Result()
	if errors.Is(err, redis.Nil) {
		return k, nil
	}
	if err != nil {
		return k, err
	}
	var ms int64
	if _, err := fmt.Sscan(text, &k.Incarnation, &ms); err != nil {
		return k, err
	}
	k.born = time.UnixMilli(ms).Add(-time.Until(n.Server.Clock()))
	k.whole = strings.HasSuffix(text, " w")
	return k, nil
}
