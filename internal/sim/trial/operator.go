package trial

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/world"
	"github.com/quorate/quorate/internal/testkit/mutant"
)

// What the operators of a set do: which exchanges are in progress, and what
// else they do.

// next are the sets that are about to count alone: an operator has looked at
// their nodes, and does not know yet what these lose from now on.
func (o *operators) next() (sets []protocol.Quorums) {
	last := o.w.Decisions.Latest()
	for _, x := range o.w.Exchangers {
		if x.Call != nil && x.Call.Config() == last && last.Stage == nodeset.Jointly &&
			x.Call.Next(x.P.Now().Add(2*o.w.NodeTimeout)) {
			sets = append(sets, mutant.Honest(change.Finish(last, "").Quorums))
		}
	}
	return sets
}

// recordAgain is what an operator does whose set has too few members left that
// know it while it is being changed. The program that exchanges nodes looks at
// them afterwards.
func (o *operators) recordAgain() {
	last := o.w.Decisions.Latest()
	if last == nil {
		return
	}
	o.emptyEntering()
	var lost []*world.Node
	knows, stages := uint32(0), last.Stage != nodeset.Stable
	for _, n := range o.w.Nodes {
		k := last.Place(n.Address())
		if k < 0 || last.Members[k].Role == nodeset.Enters {
			continue
		}
		if has := n.Model.Set(); has.Recorded() == nil || !has.Config.Kin(last) {
			lost = append(lost, n)
		} else {
			knows |= 1 << last.Members[k].Number
			stages = stages || has.Config.Stage != nodeset.Stable
		}
	}
	if world.Decided(last, knows) || knows == 0 || !stages {
		return
	}
	for _, n := range lost {
		n.Step(nodeset.RecordStep{Kind: nodeset.SetRestore,
			Identity: last.Members[last.Place(n.Address())].Identity, Config: last, Seen: n.Model.SetText()})
		n.EachLink((*world.Link).Snap)
	}
}

// emptyEntering is what an operator does if all members that decide what follows
// have lost their data, perhaps to another set: the set is gone, but nodes that
// were entering it still show it.
func (o *operators) emptyEntering() {
	for _, n := range o.w.Nodes {
		set := n.Model.Set()
		has := set.Recorded()
		if has == nil {
			continue
		}
		decides := func(other *world.Node) bool {
			knows := other.Model.Set()
			last := knows.Recorded()
			return last != nil && last.Kin(has) && (votesIn(has, knows.Identity) || votesIn(last, knows.Identity))
		}
		if !slices.ContainsFunc(o.w.Nodes, decides) {
			n.Forget()
			n.EachLink((*world.Link).Snap)
		}
	}
}

// votesIn reports whether a node decides in a configuration what follows.
func votesIn(c *nodeset.Configuration, identity string) bool {
	i := c.Member(identity)
	return i >= 0 && c.Members[i].Role != nodeset.Enters
}

// exchangesEnd has the schedule last until the exchanges under way are over. A
// change takes two guard times at least: in one the nodes that enter begin, in
// the other one the earlier leases end. If an address leaves, clients have half
// a guard time to follow (Sets 24). And one is to spare, for nodes that are
// looked at again. The guard time may be a later one.
func (o *operators) exchangesEnd() {
	for _, x := range o.w.Exchangers {
		o.w.Limit = o.w.Limit.Add(time.Duration(len(x.Goals)) * 7 * o.w.Operators.LongestGuard() / 2)
	}
}

// dismiss ends the processes that wait forever. Their lists have to be changed.
func (o *operators) dismiss() {
	for _, p := range o.w.Procs {
		if !p.Alive || !p.Follower.Blocked() {
			continue
		}
		p.Crash()
		for _, x := range o.w.Exchangers {
			if x.P == p {
				x.Goals = nil
			}
		}
	}
}

// EmptyAhead is what an operator does with a node that stays ahead of the
// others, as the decision that it carries out has been forgotten. One that had
// left by that decision, and was stopped, is started again first.
func (o *operators) EmptyAhead() {
	w := o.w
	for _, n := range w.Nodes {
		if n.Gone && !w.Decisions.Retired(n) {
			n.Gone = false
			n.Restart()
		}
		set := n.Model.Set()
		has := set.Recorded()
		if n.Down || has == nil || slices.ContainsFunc(w.Procs,
			func(p *world.Proc) bool { return p.Alive && p.Follower.Members.Stamp().Epoch() >= has.Stamp.Epoch() }) {
			continue
		}
		w.Log("node %d is ahead, and is emptied", n.Index+1)
		n.Forget()
		n.EachLink((*world.Link).Snap)
	}
	w.Decisions.ForgetDecisions()
}

// member is a node as one that is to be added.
func (o *operators) member(n *world.Node) nodeset.Member {
	o.added++
	return nodeset.Member{Identity: fmt.Sprintf("new%d.%d", n.Index, o.added), Addr: n.Address()}
}

// Change is what adds some of the world's nodes to a set, and removes others.
func (o *operators) Change(add, remove []*world.Node) (ch change.Goal) {
	for _, n := range add {
		ch.Add = append(ch.Add, o.member(n))
	}
	for _, n := range remove {
		ch.Remove = append(ch.Remove, n.Address())
	}
	return ch
}

// Changes are some changes, one after the other: to replace nodes, to go from 1
// to 3 to 5, and back.
func (o *operators) Changes() (all []change.Goal) {
	w := o.w
	in, out := slices.Clone(w.Nodes[:w.Members]), slices.Clone(w.Nodes[w.Members:])
	for range 1 + w.RNG.IntN(2) {
		adds := w.RNG.IntN(min(2, len(out)) + 1)
		removes := w.RNG.IntN(min(2, len(in)+adds-1, len(in)) + 1)
		if adds+removes == 0 {
			continue
		}
		w.RNG.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
		all = append(all, o.Change(out[:adds], in[:removes]))
		in, out = slices.Concat(in[removes:], out[:adds]), slices.Concat(out[adds:], in[:removes])
	}
	return all
}

// OtherSettings are some changes of the settings, one after the other. They
// allow half of the ttl at least, or a quarter while two settings count: the
// library refuses a change that allows none meanwhile.
func (o *operators) OtherSettings(times int) (all []change.Goal) {
	w, was := o.w, o.w.Settings()
	for range times {
		ttl := w.TTL * time.Duration(1+w.RNG.IntN(6)) / 2
		s := nodeset.Shared{Skew: w.TTL * time.Duration(w.RNG.IntN(3)) / 4}
		s.Guard = 2*ttl + 2*s.Skew
		s.Retention = max(s.Guard, w.Retention)
		if min(s.Guard, was.Guard)/2-max(s.Skew, was.Skew) < w.TTL/4 {
			continue
		}
		all, was, o.longest = append(all, change.Goal{Shared: &s}), s, max(o.longest, s.Guard)
	}
	return all
}

// LongestGuard is the longest guard time that the set has at any time.
func (o *operators) LongestGuard() time.Duration { return max(o.longest, o.w.Guard) }

// Moves is a change that gives the node another address. The server changes it
// when that has been decided.
func (o *operators) Moves(n *world.Node) change.Goal {
	w, to := o.w, n.Address()+"m"
	own := w.Decisions.Latest().Members[w.Decisions.Latest().Place(n.Address())]
	moved := func() {
		if w.Decisions.Latest().Place(to) < 0 || n.Addr == to {
			return
		}
		n.Crash()
		n.Addr = to
		n.Restart()
		for _, p := range w.Procs {
			p.Follower.Tend()
		}
	}
	for i := range 200 {
		w.At(time.Duration(i+1)*w.Guard/10, moved)
	}
	return change.Goal{Move: []nodeset.Member{{Identity: own.Identity, Addr: to}}}
}

// Opens has the servers be reached by a second address, too, and returns the
// changes by which the set records these in addition to the first ones. Shuts
// returns those by which it records these alone: the servers may close the
// first ones when these changes are over.
func (o *operators) Opens(nodes []*world.Node) (all []change.Goal) {
	for _, n := range nodes {
		n.Second = n.Address() + "s"
		own := o.w.Decisions.Latest().Members[o.w.Decisions.Latest().Place(n.Address())]
		all = append(all, change.Goal{Move: []nodeset.Member{{Identity: own.Identity, Addr: n.Second}}, Keep: true})
	}
	return all
}

// Shuts is Opens for the end of the first addresses.
func (o *operators) Shuts(nodes []*world.Node) (all []change.Goal) {
	for _, n := range nodes {
		own := o.w.Decisions.Latest().Members[o.w.Decisions.Latest().Place(n.Second)]
		all = append(all, change.Goal{Move: []nodeset.Member{{Identity: own.Identity, Addr: n.Second}}})
	}
	return all
}

// Swap has the third process replace the nodes of the set. It returns them in a
// random order, and which process holds, which one comes later, and which one
// is the operator.
func (o *operators) Swap() (old, next []*world.Node, holder, other, operator *world.Proc) {
	w := o.w
	old, next = slices.Clone(w.Nodes[:3]), slices.Clone(w.Nodes[3:])
	w.RNG.Shuffle(3, func(i, j int) { old[i], old[j] = old[j], old[i] })
	w.Decisions.Assemble(true)
	w.Once(func() bool { return true }, 0, w.Around(w.NodeTimeout), func() {
		w.Procs[2].Exchange(o.Change(next, old))
	})
	return old, next, w.Procs[0], w.Procs[1], w.Procs[2]
}
