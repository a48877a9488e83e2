package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// memory sees to it that no more nodes are without memory than the protocol
// bears: a minority at a time, each from the moment it forgets until it votes
// again, a guard time after the first client has noticed, and has been told all
// that is recorded. It stands between the
// nemesis and the nodes, so that neither a restart that takes long nor a client
// that comes late can break the rule.
type memory struct {
	guard time.Duration
	most  int
	// marker asks a node since when it counts its guard time, the zero time when it
	// has not begun, and whether it has been told again what is recorded. Nil where
	// nobody has such a thing.
	marker func(node int) (born time.Time, whole bool, err error)

	mu   sync.Mutex
	lost map[int]loss
}

// loss is when a node lost its memory, and when it was back; zero while it is not.
type loss struct{ at, back time.Time }

func newMemory(nodes int, guard time.Duration, marker func(int) (time.Time, bool, error)) *memory {
	return &memory{guard: guard, most: (nodes - 1) / 2, marker: marker, lost: map[int]loss{}}
}

// lose asks whether the node may lose its memory now, and if so takes it that it does.
func (m *memory) lose(node int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	without := 0
	for n, l := range m.lost {
		if n != node && !m.over(n, l) {
			without++
		}
	}
	if without >= m.most {
		return fmt.Errorf("%w: %d nodes are without memory already", errSkip, without)
	}
	m.lost[node] = loss{at: time.Now()}
	return nil
}

// over says whether a node votes again, and is a witness of what is recorded.
func (m *memory) over(n int, l loss) bool {
	// A node tells its age in seconds, so one of them may be added.
	if l.back.IsZero() || time.Since(l.back) < m.guard+m.guard/10+time.Second {
		return false
	}
	if m.marker == nil {
		return true
	}
	born, whole, err := m.marker(n)
	if err != nil || born.IsZero() || !whole {
		return false
	}
	return born.Before(l.at) || time.Since(born) > m.guard+m.guard/10
}

// back says that the node is there again, and remembers from now on.
func (m *memory) back(node int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lost[node] = loss{m.lost[node].at, time.Now()}
}

// marker reads a node's marker: its incarnation, since when it has been that, a
// run, and a w if the node is whole.
func (n *node) marker() (born time.Time, whole bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	text, err := n.admin.Get(ctx, markerKey).Result()
	if errors.Is(err, redis.Nil) {
		return time.Time{}, false, nil
	}
	if err != nil {
		return time.Time{}, false, err
	}
	var incarnation, ms int64
	if _, err := fmt.Sscan(text, &incarnation, &ms); err != nil {
		return time.Time{}, false, err
	}
	return time.UnixMilli(ms), strings.HasSuffix(text, " w"), nil
}
