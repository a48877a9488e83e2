package sim

import (
	"slices"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// This file owns what was decided of the set of nodes, and what its operator
// does beside exchanges.

// latest is the configuration that was decided last, nil where no nodes are
// exchanged.
func (w *world) latest() (last *protocol.Configuration) {
	for _, c := range w.decided {
		if last == nil || c.Stamp.Epoch() > last.Stamp.Epoch() {
			last = c
		}
	}
	return last
}

// sets is which nodes make a quorum by what was decided last.
func (w *world) sets() protocol.Quorums {
	last := w.latest()
	if last == nil {
		return protocol.Majority(len(w.nodes))
	}
	return w.quorums(last)
}

func (w *world) quorums(c *protocol.Configuration) protocol.Quorums {
	return c.Quorums(func(k int) int {
		return slices.IndexFunc(w.nodes, func(n *node) bool { return n.address() == c.Members[k].Addr })
	}, protocol.Rules{})
}

// next are the sets that are about to count alone: an operator has looked at
// their nodes, and does not know yet what these lose from now on.
func (w *world) next() (sets []protocol.Quorums) {
	last := w.latest()
	for _, x := range w.exchangers {
		if x.config == last && last.Stage == protocol.Jointly && x.e.Next(x.p.now().Add(2*w.nodeTimeout)) {
			sets = append(sets, w.quorums(last.Finish("")))
		}
	}
	return sets
}

// recordAgain is what an operator does whose set has no member left that knows
// it, or too few of them while nodes are being exchanged. The program that
// exchanges nodes looks at them afterwards.
func (w *world) recordAgain() {
	last := w.latest()
	var lost []*node
	knows := 0
	for _, n := range w.nodes {
		if last == nil || last.Place(n.address()) < 0 || last.Members[last.Place(n.address())].Role == protocol.Enters {
			continue
		}
		set := n.model.Set()
		switch {
		case set.Phase != protocol.SetRecorded:
			lost = append(lost, n)
		case last.Stage == protocol.Stable && set.Config.Stage == protocol.Stable: // the others regain it
			return
		default:
			knows++
		}
	}
	if knows > len(lost) {
		return
	}
	for _, n := range lost {
		n.step(protocol.RecordStep{Kind: protocol.SetRestore, Identity: last.Members[last.Place(n.address())].Identity, Config: last, Seen: n.model.SetText()})
		for _, x := range w.exchangers {
			x.p.to(n).snap()
		}
	}
}

// retired reports whether a node was of the set, and is not any more.
func (w *world) retired(n *node) bool {
	last := w.latest()
	if last == nil || last.Place(n.address()) >= 0 {
		return false
	}
	for _, c := range w.decided {
		if c.Stage == protocol.Stable && c.Place(n.address()) >= 0 {
			return true
		}
	}
	return false
}

// stopRetired is what an operator has to do: nodes that are not of the set any
// more are stopped, or at least do not come back without their data. A process
// that starts with a list of such nodes alone takes them for nodes without a
// set.
func (w *world) stopRetired() {
	for _, n := range w.nodes {
		if !w.retired(n) || n.epoch() > 0 {
			continue
		}
		n.gone = true
		if !n.down {
			n.crash()
		}
	}
}

// exchangesEnd has the schedule last until the exchanges under way are over:
// each change takes two guard times at least.
func (w *world) exchangesEnd() {
	for _, x := range w.exchangers {
		w.limit = w.limit.add(time.Duration(len(x.goals)) * 3 * w.guard)
	}
}

// exchanges reports whether an exchange is under way.
func (w *world) exchanges() bool { return slices.ContainsFunc(w.exchangers, (*exchanger).goesOn) }

// dismiss ends the processes that wait for good. Their lists have to be
// changed.
func (w *world) dismiss() {
	for _, p := range w.procs {
		if !p.alive || !p.blocked() {
			continue
		}
		p.crash()
		for _, x := range w.exchangers {
			if x.p == p {
				x.goals = nil
			}
		}
	}
}

// blocked reports whether nodes that have left and were stopped keep the
// process from each quorum that it knows.
func (p *proc) blocked() bool {
	gone := uint32(0)
	for i, n := range p.w.nodes {
		if n.gone && p.w.retired(n) {
			gone |= 1 << i
		}
	}
	return gone != 0 && p.client.Group().Sets.Blocked(gone)
}
