package core

// The time of a node, and for how long it has had its memory.

import (
	"context"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/peers"
	"github.com/quorate/quorate/internal/script"
)

// Age returns for how long a member has remembered what it did, by its own
// clock.
func (q *Quorum) Age(ctx context.Context, number int) (time.Duration, error) {
	n := q.Node(number)
	if n == nil {
		return 0, fault.ErrNoAnswer
	}
	n.Tried(ctx)
	ctx, cancel := context.WithTimeout(ctx, 2*n.Timeout(&q.Set))
	defer cancel()
	m, err := n.Marker(ctx, q.Members.MarkerKey())
	if err != nil {
		return 0, err
	}
	now, err := timeOf(ctx, n)
	return now.Sub(m.Born), err
}

// timeOf asks a node for its time.
func timeOf(ctx context.Context, n *peers.Node) (time.Time, error) {
	v, err := n.Do(ctx, "TIME")
	if err != nil {
		return time.Time{}, err
	}
	return script.DecodeTime(v)
}
