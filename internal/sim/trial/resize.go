package trial

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/world"
)

// Checks on the number of permits.

// Resize changes the number of permits at some nodes at once; once a majority
// has it, it is in force.
func (p *number) Resize(w *Schedule, limit uint64, nodes []*world.Node) {
	w.Log("%d permits from now on, as %d nodes know", limit, len(nodes))
	if w.Tape != nil {
		var ns []string
		for _, n := range nodes {
			ns = append(ns, strconv.Itoa(n.Index+1))
		}
		w.Tape.Note("resize %d %s", limit, strings.Join(ns, ","))
	}
	p.Most = max(cmp.Or(p.Most, w.Capacity), limit)
	p.At++
	p.limit, p.since = limit, w.Now
	for _, n := range nodes {
		n.Data(0).Resize(limit, p.At)
		// As the client does that has resized: some request, for the nodes to
		// look again.
		n.BeginIncarnation()
		_, outs := n.Data(0).Handle(n.Millis(), protocol.Terms{Capacity: w.Capacity, Counting: true},
			"", protocol.Request{Op: protocol.OpBeat})
		for _, o := range outs {
			n.Push(o)
		}
	}
}

// fits holds an admission against the number of permits: a claim that began
// after a majority knew of the last Resize is bound by it, alongside all claims
// that still hold.
func (p *number) fits(w *Schedule, a *world.Attempt, holders []*world.Attempt) {
	if p.limit == 0 || a.BeganAt <= p.since {
		return
	}
	var sum uint64
	for _, h := range holders {
		if h.InForce() {
			sum += h.Claim.State.Weight
		}
	}
	if sum > p.limit {
		w.Fail("capacity", "%v is admitted, and %d of %d permits are held", a, sum, p.limit)
	}
}
