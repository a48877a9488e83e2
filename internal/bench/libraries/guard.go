package libraries

import (
	"fmt"
	"sync/atomic"
)

// Guard checks that holders really exclude each other, because a benchmark of a
// lock that does not exclude is worthless. It sees all clients, because they
// all run in this process.
type Guard struct{ inside atomic.Int64 }

// Enter counts a new holder of m.
func (g *Guard) Enter(m Locker) error {
	weight, room := shareOf(m)
	if n := g.inside.Add(weight); n > room {
		return fmt.Errorf("not exclusive: %d inside, where there is room for %d", n, room)
	}
	return nil
}

// Leave counts a holder that is about to unlock m.
func (g *Guard) Leave(m Locker) {
	weight, _ := shareOf(m)
	g.inside.Add(-weight)
}

// shareOf returns the weight of a held lock, and the capacity.
func shareOf(m Locker) (weight, room int64) {
	if s, ok := m.(sharer); ok {
		return s.share()
	}
	return 1, 1
}
