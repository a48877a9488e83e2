package sim

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/protocol"
)

// This file owns the number of permits.

// number is how many permits there are, and have been.
type number struct {
	limit uint64 // since the last Resize; 0: none yet
	most  uint64 // that there ever were
	since moment // when a majority knew of the limit
	at    protocol.Ticket
}

// resize changes the number of permits at some nodes at once; once a majority
// has it, it is in force.
func (p *number) resize(w *world, limit uint64, nodes []*node) {
	w.log("%d permits from now on, as %d nodes know", limit, len(nodes))
	if w.tape != nil {
		var ns []string
		for _, n := range nodes {
			ns = append(ns, strconv.Itoa(n.idx+1))
		}
		w.tape.note("resize %d %s", limit, strings.Join(ns, ","))
	}
	p.most = max(cmp.Or(p.most, w.capacity), limit)
	p.at++
	p.limit, p.since = limit, w.now
	for _, n := range nodes {
		n.model.Resize(limit, p.at)
		// As the client does that has resized: some request, for the nodes to
		// look again.
		n.begins()
		_, outs := n.model.Handle(n.millis(w.now), protocol.Terms{Capacity: w.capacity, Counting: true},
			"", protocol.Request{Op: protocol.OpBeat})
		for _, o := range outs {
			n.push(o)
		}
	}
}

// inForce: what a read has brought to a majority is in force.
func (p *number) inForce(w *world) {
	limits := map[protocol.Ticket]uint32{}
	for _, n := range w.nodes {
		if limit, at := n.model.Limit(); at > p.at && w.number(n) >= 0 {
			if limits[at] |= 1 << w.number(n); w.sets().Met(limits[at]) {
				p.limit, p.at, p.since = limit, at, w.now
			}
		}
	}
}

// fits holds an admission against the number of permits: a claim that began
// after a majority knew of the last Resize is bound by it, beside all claims
// that still hold.
func (p *number) fits(w *world, a *attempt, holders []*attempt) {
	if p.limit == 0 || a.began <= p.since {
		return
	}
	var sum uint64
	for _, h := range holders {
		if h.valid() {
			sum += h.Weight
		}
	}
	if sum > p.limit {
		w.fail("capacity", "%v is admitted, and %d of %d permits are held", a, sum, p.limit)
	}
}
