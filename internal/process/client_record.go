package process

import (
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
	"time"
)

// This file owns how an operation on a record begins in its process.

// StartRegisterOp begins an operation on the record of a name. timeout and ttl
// are those of the name.
func (c *Client) StartRegisterOp(now protocol.Time, q *lease.RegisterOp, name string, timeout, ttl time.Duration, rules protocol.Rules) {
	g := c.group.Load()
	q.Sets, q.Absent = g.Of(q.Succession)
	q.Nodes, q.NodeTimeout, q.MaxPause, q.Rules = g.Nodes, c.fanout.QuorumTimeout(0, timeout, ttl), ttl/3, rules
	// A node that loses its data is not caught up before its guard time is
	// over. So what it said less than a guard time ago it still has, or it says
	// that it is recovering.
	q.Fresh = g.Fresh()
	if g.Past(q.Succession, name, rules) {
		q.Supersede()
		return
	}
	q.Start(now)
}
