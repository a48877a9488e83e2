package trial

import (
	"maps"
	"slices"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/world"
)

// The checks are the world's Judge. What they hear of claims is in checks.go.

func (c *checks) OpBegins(i *world.RegisterOp)  { i.Before = c.w.Ledger.Best }
func (c *checks) OpSettled(i *world.RegisterOp) { c.w.Ledger.settled(c.w, i) }
func (c *checks) Lost()                         { c.w.Ledger.lost(c.w) }

func (c *checks) Entered(by *world.Caller) {
	c.Of[by.Value.Part.Lock].local.entered(c.w, by)
}

func (c *checks) Fenced(lock int, fence protocol.Ticket) {
	of := c.Of[lock]
	of.fence = max(of.fence, fence)
}

func (c *checks) CaughtUp(n *world.Node) {
	w := c.w
	for _, name := range slices.Sorted(maps.Keys(w.Listed)) {
		if !n.Names[name] && !w.Ledger.void {
			w.Fail("record", "node %d is marked as caught up, and lacks %s", n.Index, name)
		}
	}
}
