package sim

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
)

// This file owns what was decided of the set of nodes, and what its operator
// does beside exchanges.

// decides notes that a configuration was recorded, or decided. One follows
// another at most.
func (w *world) decides(c *nodeset.Configuration) {
	if w.decided[c.Stamp] != nil {
		return
	}
	w.log("decided: %v", c)
	for _, o := range w.decided {
		if o.Kin(c) && o.Stamp.Epoch() == c.Stamp.Epoch() {
			w.fail("set", "two configurations follow: %v and %v", o, c)
		}
	}
	w.decided[c.Stamp] = c
}

// registered notes what a majority has in the register of what follows a
// configuration: that is decided, whether or not a process has heard of it.
func (w *world) registered(name string) {
	for _, c := range w.decided {
		if nodeset.SuccessorName(c.Stamp) != name {
			continue
		}
		have := map[string]uint32{}
		for _, n := range w.nodes {
			k := c.Member(n.keeps().Identity)
			if k < 0 {
				continue
			}
			s := n.model.Name(name).Recorded()
			of := fmt.Sprint(s.Version, " ", string(s.Value))
			if have[of] |= 1 << c.Members[k].Number; len(s.Value) > 0 && decided(c, have[of]) {
				next, _ := nodeset.ParseConfiguration(string(s.Value))
				w.decides(next)
			}
		}
		return
	}
}

// decided reports whether nodes are a majority of those that decide what
// follows a configuration.
func decided(c *nodeset.Configuration, nodes uint32) bool {
	return 2*bits.OnesCount32(nodes&c.Deciders()) > bits.OnesCount32(c.Deciders())
}

// latest is the configuration that was decided last, nil where there is none.
func (w *world) latest() (last *nodeset.Configuration) {
	for _, c := range w.decided {
		if last == nil || cmp.Or(last.Origin.Compare(c.Origin), last.Stamp.Compare(c.Stamp)) < 0 {
			last = c
		}
	}
	return last
}

// number is the node's in what was decided last, -1 if it has none.
func (w *world) number(n *node) int {
	last := w.latest()
	if last == nil {
		return n.idx
	}
	if k := last.Place(n.address()); k >= 0 {
		return last.Members[k].Number
	}
	return -1
}

// numbers are those of the nodes of which is true, a bit for each.
func (w *world) numbers(is func(n *node) bool) (numbers uint32) {
	for _, n := range w.nodes {
		if k := w.number(n); k >= 0 && is(n) {
			numbers |= 1 << k
		}
	}
	return numbers
}

// sets is which nodes make a quorum by what was decided last.
func (w *world) sets() protocol.Quorums {
	last := w.latest()
	if last == nil {
		return protocol.Majority(len(w.nodes))
	}
	return last.Quorums(protocol.Rules{})
}

// next are the sets that are about to count alone: an operator has looked at
// their nodes, and does not know yet what these lose from now on.
func (w *world) next() (sets []protocol.Quorums) {
	last := w.latest()
	for _, x := range w.exchangers {
		if x.o != nil && x.o.Config() == last && last.Stage == nodeset.Jointly && x.o.Next(x.p.now().Add(2*w.nodeTimeout)) {
			sets = append(sets, change.Finish(last, "").Quorums(protocol.Rules{}))
		}
	}
	return sets
}

// recordAgain is what an operator does whose set has too few members left that
// know it while it is being changed. The program that exchanges nodes looks at
// them afterwards.
func (w *world) recordAgain() {
	last := w.latest()
	if last == nil {
		return
	}
	var lost []*node
	knows, stages := uint32(0), last.Stage != nodeset.Stable
	for _, n := range w.nodes {
		k := last.Place(n.address())
		if k < 0 || last.Members[k].Role == nodeset.Enters {
			continue
		}
		if has := n.model.Set(); has.Recorded() == nil || !has.Config.Kin(last) {
			lost = append(lost, n)
		} else {
			knows |= 1 << last.Members[k].Number
			stages = stages || has.Config.Stage != nodeset.Stable
		}
	}
	if decided(last, knows) || knows == 0 || !stages {
		return
	}
	for _, n := range lost {
		n.step(nodeset.RecordStep{Kind: nodeset.SetRestore, Identity: last.Members[last.Place(n.address())].Identity, Config: last, Seen: n.model.SetText()})
		n.eachLink((*link).snap)
	}
}

// retired reports whether a node was of the set, and is not any more.
func (w *world) retired(n *node) bool {
	last := w.latest()
	if last == nil || last.Place(n.address()) >= 0 {
		return false
	}
	for _, c := range w.decided {
		if c.Stage == nodeset.Stable && c.Place(n.address()) >= 0 {
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

// exchangesEnd has the schedule last until the exchanges under way are over. A
// change takes two guard times at least: in one the nodes that enter begin, in
// the other one the leases of before end. If an address leaves, clients have
// half a guard time to follow (Sets 24). And one is to spare, for nodes that
// are looked at again.
func (w *world) exchangesEnd() {
	for _, x := range w.exchangers {
		w.limit = w.limit.add(time.Duration(len(x.goals)) * 7 * w.guard / 2)
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
// process from each quorum that it knows, or the set that it counts on is known
// to nodes that have left only: all others have lost it, and are another one.
func (p *proc) blocked() bool {
	if p.members == nil {
		return false
	}
	gone, c := uint32(0), p.members.Config()
	if c == nil {
		return true
	}
	for _, m := range c.Members {
		l := p.link(m.Number)
		if l.node.gone || l == p.nowhere {
			gone |= 1 << m.Number
		}
	}
	knows := func(n *node) bool { set := n.model.Set(); has := set.Recorded(); return has != nil && has.Kin(c) }
	if c.Origin != p.w.latest().Origin && slices.ContainsFunc(p.w.nodes, knows) {
		return !slices.ContainsFunc(p.w.nodes, func(n *node) bool { return knows(n) && !p.w.retired(n) })
	}
	return gone != 0 && p.client.Group().Sets.Blocked(gone)
}
