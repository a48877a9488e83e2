package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
)

// This file owns what the operators of a set do: which exchanges are under way,
// and what is done beside those.

// operators are those of all processes together.
type operators struct {
	w          *world
	added      int // members so far
	exchangers []*exchanger
	exchanging *exchanger // the last one that has begun
	stepped    func()     // a node has carried out a step of its set's register
}

// next are the sets that are about to count alone: an operator has looked at
// their nodes, and does not know yet what these lose from now on.
func (o *operators) next() (sets []protocol.Quorums) {
	last := o.w.latest()
	for _, x := range o.exchangers {
		if x.o != nil && x.o.Config() == last && last.Stage == nodeset.Jointly && x.o.Next(x.p.now().Add(2*o.w.nodeTimeout)) {
			sets = append(sets, change.Finish(last, "").Quorums(protocol.Rules{}))
		}
	}
	return sets
}

// recordAgain is what an operator does whose set has too few members left that
// know it while it is being changed. The program that exchanges nodes looks at
// them afterwards.
func (o *operators) recordAgain() {
	last := o.w.latest()
	if last == nil {
		return
	}
	var lost []*node
	knows, stages := uint32(0), last.Stage != nodeset.Stable
	for _, n := range o.w.nodes {
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

// stopRetired is what an operator has to do: nodes that are not of the set any
// more are stopped, or at least do not come back without their data. A process
// that starts with a list of such nodes alone takes them for nodes without a
// set.
func (o *operators) stopRetired() {
	for _, n := range o.w.nodes {
		if !o.w.retired(n) || n.epoch() > 0 {
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
func (o *operators) exchangesEnd() {
	for _, x := range o.exchangers {
		o.w.limit = o.w.limit.add(time.Duration(len(x.goals)) * 7 * o.w.guard / 2)
	}
}

// exchanges reports whether an exchange is under way.
func (o *operators) exchanges() bool { return slices.ContainsFunc(o.exchangers, (*exchanger).goesOn) }

// dismiss ends the processes that wait for good. Their lists have to be
// changed.
func (o *operators) dismiss() {
	for _, p := range o.w.procs {
		if !p.alive || !p.blocked() {
			continue
		}
		p.crash()
		for _, x := range o.exchangers {
			if x.p == p {
				x.goals = nil
			}
		}
	}
}

// emptyAhead is what an operator does with a node that stays ahead of the
// others, as the decision that it carries out has been forgotten. One that had
// left by that decision, and was stopped, is started again first.
func (o *operators) emptyAhead() {
	w := o.w
	for _, n := range w.nodes {
		if n.gone && !w.retired(n) {
			n.gone = false
			n.restart()
		}
		set := n.model.Set()
		has := set.Recorded()
		if n.down || has == nil || slices.ContainsFunc(w.procs, func(p *proc) bool { return p.alive && p.members.Stamp().Epoch() >= has.Stamp.Epoch() }) {
			continue
		}
		w.log("node %d is ahead, and is emptied", n.idx+1)
		n.forget()
		n.eachLink((*link).snap)
	}
	w.forgetDecisions()
}

// member is a node as one that is to be added.
func (o *operators) member(n *node) nodeset.Member {
	o.added++
	return nodeset.Member{Identity: fmt.Sprintf("new%d.%d", n.idx, o.added), Addr: n.address()}
}

// change is what adds some of the world's nodes to a set, and removes others.
func (o *operators) change(add, remove []*node) (ch change.Goal) {
	for _, n := range add {
		ch.Add = append(ch.Add, o.member(n))
	}
	for _, n := range remove {
		ch.Remove = append(ch.Remove, n.address())
	}
	return ch
}

// changes are some changes, one after the other: to replace nodes, to go from 1
// to 3 to 5, and back.
func (o *operators) changes() (all []change.Goal) {
	w := o.w
	in, out := slices.Clone(w.nodes[:w.members]), slices.Clone(w.nodes[w.members:])
	for range 1 + w.rng.IntN(2) {
		adds := w.rng.IntN(min(2, len(out)) + 1)
		removes := w.rng.IntN(min(2, len(in)+adds-1, len(in)) + 1)
		if adds+removes == 0 {
			continue
		}
		w.rng.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
		all = append(all, o.change(out[:adds], in[:removes]))
		in, out = slices.Concat(in[removes:], out[:adds]), slices.Concat(out[adds:], in[:removes])
	}
	return all
}

// moves is a change that gives the node another address. The server changes it
// when that has been decided.
func (o *operators) moves(n *node) change.Goal {
	w, to := o.w, n.address()+"m"
	own := w.latest().Members[w.latest().Place(n.address())]
	moved := func() {
		if w.latest().Place(to) < 0 || n.addr == to {
			return
		}
		n.crash()
		n.addr = to
		n.restart()
		for _, p := range w.procs {
			p.tend()
		}
	}
	for i := range 200 {
		w.at(time.Duration(i+1)*w.guard/10, moved)
	}
	return change.Goal{Move: []nodeset.Member{{Identity: own.Identity, Addr: to}}}
}

// swap has the third process replace the nodes of the set. It returns them in a
// random order, and which process holds, which one comes later, and which one
// is the operator.
func (o *operators) swap() (old, next []*node, holder, other, operator *proc) {
	w := o.w
	old, next = slices.Clone(w.nodes[:3]), slices.Clone(w.nodes[3:])
	w.rng.Shuffle(3, func(i, j int) { old[i], old[j] = old[j], old[i] })
	w.assemble(true)
	w.once(func() bool { return true }, 0, w.around(w.nodeTimeout), func() {
		w.procs[2].exchange(o.change(next, old))
	})
	return old, next, w.procs[0], w.procs[1], w.procs[2]
}
