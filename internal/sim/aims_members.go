package sim

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// The aims in which processes have different lists of nodes. The lists are ABC
// and ABD.

// outsider has a process reach a node of its own at the address of one of the
// world's nodes. That node votes if it is not new.
func (w *world) outsider(p *proc, at *node) *node {
	d := newNode(w, at.idx)
	d.server, d.lives = "x", 500
	l := p.to(at)
	l.snap()
	l.point(d)
	return d
}

// counts is when the process counts on a set, or on none for good.
func (p *proc) counts() func() bool {
	return func() bool { return p.members.Config() != nil }
}

// apart has a claim of each process hold with two nodes: one of the common
// ones, and the third of its list.
func (w *world) apart(holder, other *proc, ns []*node) {
	e, f := holder.parts[0], other.parts[0]
	w.then(w.around(w.delay), func() { e.acquire(false) })
	w.once(holds(e), w.ttl, w.around(w.nodeTimeout), func() { f.acquire(false) })
	w.once(holds(f), w.guard+2*w.ttl, w.around(w.nodeTimeout), func() {})
}

func membersSet(r *rand.Rand, s *setting) {
	plain(r, s, 2)
	s.hold = 2 * s.guard
	s.length = 2*s.guard + 6*s.ttl
}

// lists: a process with another list has been connected since before the set
// was recorded.
var lists = generator{
	name: "lists",
	set:  membersSet,
	plan: func(w *world) {
		ns := w.shuffled()
		holder, other := w.procs[0], w.procs[1]
		w.outsider(other, ns[2])
		w.assemble(false)
		w.then(w.around(w.nodeTimeout), func() { holder.recordSet(3) })
		w.once(holder.counts(), w.ttl, w.around(w.delay), func() {
			holder.cutOff(ns[1])
			if w.rng.IntN(2) == 0 {
				other.cutOff(ns[0])
			}
		})
		w.apart(holder, other, ns)
	},
}

// recordings: two processes record two sets at the same moment.
var recordings = generator{
	name: "recordings",
	set:  membersSet,
	plan: func(w *world) {
		ns := w.shuffled()
		holder, other := w.procs[0], w.procs[1]
		d := w.outsider(other, ns[2])
		w.assemble(false)
		w.then(w.around(w.nodeTimeout), func() {
			holder.recordSet(2)
			w.at(time.Duration(w.rng.Int64N(int64(32*w.delay))), func() { other.recordSet(2) })
		})
		// Each has another one of the two common nodes from then on.
		w.once(holder.counts(), w.ttl, 0, func() { holder.cutOff(ns[1]) })
		w.once(other.counts(), w.ttl, 0, func() { other.cutOff(ns[0]) })
		w.then(0, func() {
			if holder.members.Config() != nil && other.members.Config() != nil {
				holder.parts[0].acquire(false)
				other.parts[0].acquire(false)
			}
		})
		w.then(4*w.ttl, func() { w.setsAgree(append(ns, d)) })
	},
}

// setsAgree: a set that one node takes for recorded is that of all its members.
func (w *world) setsAgree(all []*node) {
	for _, n := range all {
		set := n.model.Set()
		if set.Phase != protocol.SetRecorded {
			continue
		}
		for _, o := range all {
			if has := o.model.Set(); set.Config.Place(o.address()) >= 0 && has.Stamp() != set.Stamp() {
				w.fail("set", "node %s takes %v for recorded, and node %s has %q", n.address(), set.Config, o.address(), has.Text)
			}
		}
	}
}

// besides has one process hold without one of its nodes, and another one ask
// for the same name later, without one of its own.
func (w *world) besides(holder *proc, without *node, other *proc, withoutToo *node) {
	holder.cutOff(without)
	w.then(w.around(w.nodeTimeout), func() { holder.parts[0].acquire(false) })
	w.then(w.around(w.guard)+w.guard/2, func() { other.cutOff(withoutToo) })
	w.then(w.around(w.delay), func() { other.parts[0].acquire(false) })
	w.once(holds(other.parts[0]), 2*w.ttl, w.around(w.nodeTimeout), func() {})
}

// places: a process whose list is another one meets a node without data at the
// place of a member.
var places = generator{
	name: "places",
	set:  membersSet,
	plan: func(w *world) {
		ns := w.shuffled()
		holder, other := w.procs[0], w.procs[1]
		d := w.outsider(other, ns[2])
		d.model.Forget()
		w.assemble(true)
		w.besides(holder, ns[1], other, ns[0])
	},
}

// copies: a process has a copy of a member's data in its list, and the member.
// Or another member's address leads to the copy, and the process does not reach
// the member.
var copies = generator{
	name: "copies",
	set:  membersSet,
	plan: func(w *world) {
		ns := w.shuffled()
		c, holder, other := ns[2], w.procs[0], w.procs[1]
		parted := w.rng.IntN(2) == 0
		if parted {
			w.assemble(true)
		}
		d := w.outsider(other, ns[0])
		if parted {
			other.cutOff(c)
			other.to(c).snap()
			ns[1], ns[2] = ns[2], ns[1]
		} else {
			w.assemble(true)
		}
		d.model = c.model.Clone()
		d.mark() // as by the first client that meets this run of a server
		w.besides(holder, ns[2], other, ns[1])
	},
}

// remnants: two sets have had two nodes in common, one after the other, and
// these have lost their data. One member of each set is left. At about the same
// moment a process of each set reaches the second one of the empty nodes: each
// another one.
var remnants = generator{
	name: "remnants",
	set:  membersSet,
	plan: func(w *world) {
		ns := w.shuffled()
		holder, other := w.procs[0], w.procs[1]
		d := w.outsider(other, ns[2])
		w.belong(w.configuration(w.nodes, "10000000000"), ns[2:])
		w.belong(w.configuration([]*node{ns[0], ns[1], d}, "20000000000"), []*node{d})
		holder.cutOff(ns[1])
		other.cutOff(ns[0])
		for _, n := range ns[:2] {
			w.wipe(n, false)
		}
		w.assemble(false)
		w.then(w.around(w.nodeTimeout), func() {
			w.at(w.around(w.delay), func() { holder.to(ns[1]).heal(false) })
			w.at(w.around(w.delay), func() { other.to(ns[0]).heal(false) })
		})
		w.then(4*w.delay, func() {
			holder.cutOff(ns[0])
			other.cutOff(ns[1])
		})
		w.then(w.guard+w.around(w.ttl), func() { holder.parts[0].acquire(false) })
		w.once(holds(holder.parts[0]), 2*w.ttl, w.around(w.nodeTimeout), func() { other.parts[0].acquire(false) })
		w.once(holds(other.parts[0]), 2*w.ttl, w.around(w.nodeTimeout), func() {})
	},
}

// wiped: most nodes of a set lose their data at about one time, or all, again
// and again. They come back by themselves.
var wiped = generator{
	name: "wiped",
	set: func(_ *rand.Rand, s *setting) {
		s.bootstrap = true
		s.length = 8 * s.guard
	},
	plan: func(w *world) {
		w.assemble(true)
		w.allLoop()
		for range 1 + w.rng.IntN(3) {
			ns := w.shuffled()
			for _, n := range ns[:len(ns)-w.rng.IntN(w.spare()+1)] {
				w.then(0, func() {
					n.crash()
					n.forget()
					w.at(w.around(2*w.nodeTimeout), n.restart)
				})
			}
			w.then(w.around(2*w.guard), func() {})
		}
	},
}

// recordedStorm: anything fails at any time, and the nodes are a set, or are
// recorded as one meanwhile.
var recordedStorm = generator{
	name: "recorded storm",
	plan: func(w *world) {
		w.assemble(w.rng.IntN(2) == 0)
		w.allLoop()
		w.randomFaults(w.rng.IntN(12))
		w.at(w.around(w.length/2), func() { w.operator(w.procs[0]) })
	},
}

// operator has a process record the set, and again for as long as a recording
// that was interrupted has left nodes that serve no client: an operator repeats
// a bootstrap that has failed.
func (w *world) operator(p *proc) {
	p.recordSet(3)
	w.operatorLooks(p)
}

// operatorLooks has the operator look at the nodes now and then: a request of a
// recording may arrive late.
func (w *world) operatorLooks(p *proc) {
	w.at(w.around(2*w.ttl), func() {
		for _, n := range w.nodes {
			if set := n.model.Set(); set.Phase == protocol.SetAccepted && !set.Regains {
				w.operator(p)
				return
			}
		}
		if !w.draining || !w.idle() {
			w.operatorLooks(p)
		}
	})
}
