package trial

import (
	"maps"
	"slices"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/world"
)

// judge has the checks hear what happens in the world.
type judge struct{ w *Schedule }

func (j *judge) Began(a *world.Attempt)                    { j.w.Checks.began(a) }
func (j *judge) Worked(a *world.Attempt)                   { j.w.Checks.busy(a) }
func (j *judge) Changed(a *world.Attempt, was lease.Phase) { j.w.Checks.changed(a, was) }
func (j *judge) Gone(a *world.Attempt)                     { j.w.Checks.gone(a) }
func (j *judge) OpBegins(i *world.RegisterOp)              { i.Before = j.w.Ledger.Best }
func (j *judge) OpSettled(i *world.RegisterOp)             { j.w.Ledger.settled(j.w, i) }
func (j *judge) Resized()                                  { j.w.Permits.inForce(j.w) }
func (j *judge) Lost()                                     { j.w.Ledger.lost(j.w) }

func (j *judge) Entered(c *world.Caller) {
	j.w.Checks.Of[c.Value.Part.Lock].local.entered(j.w, c)
}

func (j *judge) Fenced(lock int, fence protocol.Ticket) {
	c := j.w.Checks.Of[lock]
	c.fence = max(c.fence, fence)
}

func (j *judge) CaughtUp(n *world.Node) {
	w := j.w
	for _, name := range slices.Sorted(maps.Keys(w.Listed)) {
		if !n.Names[name] && !w.Ledger.void {
			w.Fail("record", "node %d is marked as caught up, and lacks %s", n.Index, name)
		}
	}
}
