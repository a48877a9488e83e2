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

// ErrSkip means that a fault was skipped because it was not allowed or not
// possible.
var ErrSkip = errors.New("skipped")

// Memory ensures that no more nodes lack their data than the protocol
// tolerates: a minority at a time, or the only node. A node lacks its data from
// the moment of the loss until it has been repaired and votes again, which is a
// guard time after the first client has noticed. The nemesis asks Memory before
// each loss, so that neither a slow restart nor a late client can break the
// limit.
type Memory struct {
	guard  time.Duration
	sets   func() [][]int                 // that may count
	marker func(node int) (Marker, error) // nil if nodes have no marker

	mu    sync.Mutex
	lost  map[int]loss
	log   []judge.Loss
	slips []judge.Loss // small jumps of clocks, which lose nothing
}

// Marker is what a node stores about itself, and what it has recorded about its
// set. It is zero if the node has no marker.
type Marker struct {
	Incarnation int64
	born        time.Time // when its guard time began, by the machine's clock
	whole       bool      // the node is caught up
	set         nodeset.NodeSet
}

// loss is when a node lost its data, and when it was back; back is zero until
// then.
type loss struct {
	at, back time.Time
	// The incarnation that the node still shows, until a client notices that
	// something has happened. 0 if the loss is visible at once, because the
	// marker is lost too or the server has a new run id.
	pretends int64
	// The node has lost nothing, but its clock was set. Clients that cannot
	// tell whose clock jumped shorten their leases by the jump and leave the
	// node as it is. So the jump may never be noticed, and the loss is over
	// when the earlier leases have ended.
	clock bool
}

// unnoticed reports whether the node still shows the old marker, and whether
// that still matters.
func (m *Memory) unnoticed(l loss, k Marker) bool {
	aged := l.clock && !l.back.IsZero() && time.Since(l.back) > 3*m.guard
	return l.pretends != 0 && k.Incarnation == l.pretends && !aged
}

// NewMemory returns a Memory of nodes that have lost nothing yet. sets returns
// the sets that may count; ask returns the marker of a node, and is nil if
// nodes have none.
func NewMemory(sets func() [][]int, guard time.Duration, ask func(int) (Marker, error)) *Memory {
	return &Memory{guard: guard, sets: sets, marker: ask, lost: map[int]loss{}}
}

// Lose checks whether the node may lose its data now. If so, it records the
// loss.
func (m *Memory) Lose(node int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	// Two unnoticed jumps may cancel out, and then no client would ever notice.
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
	if !member { // a server that has left the set keeps its data
		return fmt.Errorf("%w: it is no member any more", ErrSkip)
	}
	m.lost[node] = loss{at: time.Now()}
	m.log = append(m.log, judge.Loss{Node: node, From: record.Now()})
	return nil
}

// over reports whether a node votes again, and attests what is recorded.
func (m *Memory) over(n int, l loss) bool {
	// A node reports its age in whole seconds, so allow one more second.
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

// Pretend records that the node, which is losing its data, keeps a marker that
// does not show it.
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

// Back records that the node is up again, and remembers from now on.
func (m *Memory) Back(node int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.lost[node]
	l.back = time.Now()
	m.lost[node] = l
	m.last(node).To = record.Now()
}

// last returns the node's last loss.
func (m *Memory) last(node int) *judge.Loss {
	for i := len(m.log) - 1; i >= 0; i-- {
		if m.log[i].Node == node {
			return &m.log[i]
		}
	}
	return &judge.Loss{}
}

// ByClock records that the node's loss consists in its clock being set.
func (m *Memory) ByClock(node int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last(node).Clock = true
	l := m.lost[node]
	l.clock = true
	m.lost[node] = l
}

// Slip records that the node's clock has jumped by so little that no lease is
// affected. A client that notices still makes the node begin a guard time.
func (m *Memory) Slip(node int, from int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.slips = append(m.slips, judge.Loss{Node: node, From: from, To: record.Now()})
}

// Losses returns all losses so far.
func (m *Memory) Losses() []judge.Loss {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.log)
}

// LostSince reports whether the node has lost its data since then, is losing it
// now, or has had a small jump of its clock.
func (m *Memory) LostSince(node int, then int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(append(slices.Clip(m.log), m.slips...),
		func(l judge.Loss) bool { return l.Node == node && (l.To == 0 || l.To > then) })
}

// Marker reads a node's marker: its incarnation, when that began by the node's
// own clock, the run id, and a w if the node is whole.
func (n *Node) Marker() (k Marker, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	if k.set, err = n.recorded(ctx); err != nil {
		return k, err
	}
	// The marker's key changes when a set is recorded.
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
