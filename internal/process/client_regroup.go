package process

import (
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
)

// This file owns what a Client does when another configuration begins to count.

// Group returns which nodes the client asks now.
func (c *Client) Group() protocol.Group { return *c.group.Load() }

// Regroup has the client count on other nodes. The claims and the operations
// under way are for the caller to tell.
func (c *Client) Regroup(now protocol.Time, g protocol.Group) (do []Action) {
	c.mu.Lock()
	c.grow(g.Nodes)
	c.group.Store(&g)
	c.repair.Group = g
	c.judgeClocks(func(j *nodeset.Clocks) { j.Regroup(g.Sets, g.Guard) })
	if !c.closed {
		c.repair.Hurry(now)
	}
	return c.unlock(now)
}
