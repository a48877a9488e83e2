package libraries

import (
	"fmt"
	"sync/atomic"
)

// Guard sees that those inside fit: a benchmark of a lock that does not exclude
// says nothing. It sees all clients, as they are in this process.
type Guard struct{ inside atomic.Int64 }

// Enter counts in what has locked m.
func (g *Guard) Enter(m Locker) error {
	weight, room := shareOf(m)
	if n := g.inside.Add(weight); n > room {
		return fmt.Errorf("not exclusive: %d inside, where there is room for %d", n, room)
	}
	return nil
}

// Leave counts out what is about to unlock m.
func (g *Guard) Leave(m Locker) {
	weight, _ := shareOf(m)
	g.inside.Add(-weight)
}

// shareOf is how much a lock that is held takes, and of how much.
func shareOf(m Locker) (weight, room int64) {
	if s, ok := m.(sharer); ok {
		return s.share()
	}
	return 1, 1
}
