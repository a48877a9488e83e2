package protocol

// This file owns what a Client does when another configuration begins to count.

// Group returns which nodes the client asks now.
func (c *Client) Group() Group { return *c.group.Load() }

// Regroup has the client count on other nodes. The claims and the operations
// under way are for the caller to tell.
func (c *Client) Regroup(now Time, g Group) (do []Action) {
	c.mu.Lock()
	c.grow(g.Nodes)
	c.group.Store(&g)
	c.repair.Group = g
	c.judgeClocks(func(j *Clocks) { j.Regroup(g.Sets, g.Guard) })
	if !c.closed {
		c.repair.Hurry(now)
	}
	return c.unlock(now)
}
