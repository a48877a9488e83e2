package lease

import (
	"github.com/quorate/quorate/internal/protocol"
	"sync/atomic"
)

// Tickets are times: a node forgets a name's fence after the retention time,
// and everything when it loses its data. Later tickets are above what it forgot
// only because clocks have moved on. So each ticket stays within a Window of
// the clocks, half of the guard time in both directions:
// docs/internals/protocol.md, "Tickets and clocks".

// TicketClock proposes the tickets T0 for one name. A proposal is the time of
// process.Client.Clock, but above the highest ticket that this client has seen
// of the name, which saves a settling round. Safety does not depend on that,
// because the nodes put every claim behind the earlier ones. It is safe for
// concurrent use.
//
// Note: Here is an incorrect clock, one for all names:
//
//	t := id.Next(max(clock, seen)); seen = t
//
// Each attempt moves it on by half of the residues, 32 µs. So 50,000 attempts
// in a second, at whatever names, leave it 0.6 s ahead of the nodes' clocks.
type TicketClock struct{ seen atomic.Uint64 }

// burst is how far the proposals of one client may run ahead of the clock. The
// claims that it makes at one moment each need their own T0.
const burst = 16_000 // microseconds

// Propose returns T0 for a claim that starts when the clock shows the given
// time in microseconds.
func (c *TicketClock) Propose(id protocol.ID, clock protocol.Ticket, w protocol.Window) protocol.Ticket {
	for {
		seen := c.seen.Load()
		last := protocol.Ticket(seen)
		if w != 0 && int64(last) > int64(clock)+w.Half()-protocol.Residues {
			last = 0 // the nodes refuse a ticket this far ahead, so ignore what was seen
		}
		t := id.Next(max(clock, last))
		if t > clock+burst { //mutant:RuleBurst
			return t
		}
		if c.seen.CompareAndSwap(seen, uint64(t)) {
			return t
		}
	}
}

// Observe records a ticket that a node has shown. A ticket that is farther
// ahead of the clock than any node allows is ignored, so that it does not hide
// the true ones.
func (c *TicketClock) Observe(t, clock protocol.Ticket, w protocol.Window) {
	for {
		seen := c.seen.Load()
		if uint64(t) <= seen || w != 0 && int64(t) > int64(clock)+w.Half() ||
			c.seen.CompareAndSwap(seen, uint64(t)) {
			return
		}
	}
}
