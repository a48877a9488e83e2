package sim

import (
	"cmp"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// This file owns the number of permits, and the aims in which it changes.

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

// resized: nothing fails, and the number of permits goes up and down.
var resized = generator{
	name: "resized",
	set: func(r *rand.Rand, s *setting) {
		calm.set(r, s)
		s.nodes, s.procs, s.parts = 3+2*r.IntN(2), 4, 2
		s.capacity, s.weights, s.counting = 3, []uint64{1, 2}, true
		s.tryEvery, s.cancelEvery = 0, 0
		s.hold = s.ttl / 2
	},
	plan: func(w *world) {
		w.allLoop()
		w.permits.most = w.capacity
		for range 8 {
			w.at(w.around(w.length/2), func() { w.permits.resize(w, 2+w.rng.Uint64N(4), w.nodes) })
		}
	},
}

// shrunk: a majority knows that there is only one permit left; one of it
// forgets that, and the other cannot be asked for a while.
var shrunk = generator{
	name: "shrunk",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 3)
		s.capacity, s.weights, s.counting = 3, []uint64{1}, true
		s.hold, s.think = s.ttl, s.ttl/20
		s.length = 3 * s.guard
	},
	plan: func(w *world) {
		ns := w.shuffled()
		a, b := ns[0], ns[1]
		w.allLoop()
		w.then(w.around(w.ttl), func() { w.permits.resize(w, 1, ns[:2]) })
		// Before the third node is brought the number.
		w.then(w.around(w.nodeTimeout/4), func() {
			w.wipe(a, w.rng.IntN(2) == 0)
			b.pause()
		})
		// Not for longer than the node that forgot waits to be repaired.
		w.then(w.guard+time.Duration(w.rng.Int64N(int64(w.guard/2))), b.resume)
	},
}

// raised: there is one permit; a Resize to more has reached one node and
// failed. Two processes each reach that one and one other.
var raised = generator{
	name: "raised",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 2)
		s.capacity, s.weights, s.counting = 3, []uint64{1}, true
		s.hold = s.ttl
		s.length = 6 * s.ttl
	},
	plan: func(w *world) {
		ns := w.shuffled()
		w.then(w.delay, func() {
			w.permits.resize(w, 1, ns)
			ns[2].model.Resize(3, w.permits.at+1)
		})
		w.then(w.nodeTimeout, func() {
			for i, p := range w.procs {
				p.cut(ns[i])
				p.parts[0].loop()
			}
		})
		w.then(4*w.ttl, func() {
			for i, p := range w.procs {
				p.to(ns[i]).heal(true)
			}
		})
	},
}
