package world

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/testkit/mutant"
)

// What has been decided about the set of nodes.

// decisions are what was recorded, or decided, of which nodes are the set.
type decisions struct {
	w         *World
	decided   map[nodeset.Stamp]*nodeset.Configuration // nil: the processes know no sets
	forgotten map[nodeset.Stamp]bool                   // see forgetDecisions
	// In a trace: the last one of which it has said that it was decided.
	told nodeset.Stamp
}

// Assemble has each process begin with its list. If recorded, the first nodes
// are a set already, and the others are blank.
func (d *decisions) Assemble(recorded bool) {
	w, first := d.w, d.w.Nodes
	if w.Members > 0 {
		first = w.Nodes[:w.Members]
	}
	d.decided, d.forgotten = map[nodeset.Stamp]*nodeset.Configuration{}, map[nodeset.Stamp]bool{}
	for _, n := range w.Nodes {
		n.Model.Forget()
		n.Names = map[string]bool{}
	}
	if recorded {
		d.belong(d.configuration(first, "10000000000"), first)
	}
	for _, p := range w.Procs {
		if p.Follower.List == nil {
			p.Follower.List = first
		}
		p.Follower.join()
	}
}

// belong has nodes be a set.
func (d *decisions) belong(c *nodeset.Configuration, nodes []*Node) {
	d.decides(c)
	for _, n := range nodes {
		for _, kind := range []nodeset.RecordKind{nodeset.SetPromise, nodeset.SetAccept, nodeset.SetCommit} {
			n.Step(nodeset.RecordStep{Kind: kind, Ballot: "0", Identity: c.Members[c.Place(n.Address())].Identity,
				Config: c, Ready: d.w.Bootstrap})
		}
	}
}

// configuration is a set of some nodes.
func (d *decisions) configuration(nodes []*Node, chance string) *nodeset.Configuration {
	stamp := nodeset.Stamp("1.00000000" + chance)
	c := &nodeset.Configuration{Stamp: stamp, Origin: stamp, Now: d.w.Settings(),
		Next: d.w.Settings(), Last: len(nodes) - 1}
	for i, n := range nodes {
		c.Members = append(c.Members, nodeset.Member{Number: i,
			Identity: fmt.Sprintf("%s%d", chance[:4], n.Index), Addr: n.Address()})
	}
	return c
}

// decides notes that a configuration was recorded, or decided. One follows
// another at most.
func (d *decisions) decides(c *nodeset.Configuration) {
	if d.decided[c.Stamp] != nil {
		return
	}
	d.w.Log("decided: %v", c)
	for _, o := range d.decided {
		if o.Kin(c) && o.Stamp.Epoch() == c.Stamp.Epoch() {
			d.w.Fail("set", "two configurations follow: %v and %v", o, c)
		}
	}
	d.decided[c.Stamp] = c
}

// allAccepted reports whether each member of a configuration keeps that it has
// accepted it at this ballot: it is decided before any of them records it.
func (d *decisions) allAccepted(s nodeset.RecordStep) bool {
	for _, m := range s.Config.Members {
		i := slices.IndexFunc(d.w.Nodes, func(n *Node) bool { return n.Address() == m.Addr })
		if i < 0 {
			return false
		}
		if has := d.w.Nodes[i].Keeps(); has.Phase != nodeset.SetAccepted || has.Accepted != s.Ballot {
			return false
		}
	}
	return true
}

// registered notes what a majority has in the register of what follows a
// configuration: that is decided, whether or not a process has heard of it.
func (d *decisions) registered(name string) {
	for _, c := range d.decided {
		if nodeset.SuccessorName(c.Stamp) != name {
			continue
		}
		have := map[string]uint32{}
		for _, n := range d.w.Nodes {
			k := c.Member(n.Keeps().Identity)
			if k < 0 {
				continue
			}
			s := n.Model.Name(name).Recorded()
			of := fmt.Sprint(s.Version, " ", string(s.Value))
			if have[of] |= 1 << c.Members[k].Number; len(s.Value) > 0 && Decided(c, have[of]) {
				next, _ := nodeset.ParseConfiguration(string(s.Value))
				d.decides(next)
			}
		}
		return
	}
}

// Decided reports whether nodes are a majority of those that decide what
// follows a configuration.
func Decided(c *nodeset.Configuration, nodes uint32) bool {
	return 2*bits.OnesCount32(nodes&c.Deciders()) > bits.OnesCount32(c.Deciders())
}

// Latest is the configuration that was decided last, nil where there is none.
func (d *decisions) Latest() (last *nodeset.Configuration) {
	for _, c := range d.decided {
		if last == nil || cmp.Or(last.Origin.Compare(c.Origin), last.Stamp.Compare(c.Stamp)) < 0 {
			last = c
		}
	}
	return last
}

// Number is the node's in what was decided last, -1 if it has none.
func (d *decisions) Number(n *Node) int {
	last := d.Latest()
	if last == nil {
		return n.Index
	}
	if k := last.Place(n.Address()); k >= 0 {
		return last.Members[k].Number
	}
	return -1
}

// Numbers are those of the nodes of which is true, a bit for each.
func (d *decisions) Numbers(is func(n *Node) bool) (numbers uint32) {
	for _, n := range d.w.Nodes {
		if k := d.Number(n); k >= 0 && is(n) {
			numbers |= 1 << k
		}
	}
	return numbers
}

// Sets is which nodes make a quorum by what was decided last.
func (d *decisions) Sets() protocol.Quorums {
	last := d.Latest()
	if last == nil {
		return protocol.Majority(len(d.w.Nodes))
	}
	return mutant.Honest(last.Quorums)
}

// Retired reports whether a node was of the set, and is not any more.
func (d *decisions) Retired(n *Node) bool {
	last := d.Latest()
	if last == nil || last.Place(n.Address()) >= 0 {
		return false
	}
	for _, c := range d.decided {
		if c.Stage == nodeset.Stable && c.Place(n.Address()) >= 0 {
			return true
		}
	}
	return false
}

// Successor: the process has read, or recorded, which configuration follows.
// One is decided at most.
func (d *decisions) Successor(p *Proc, c *nodeset.Configuration) {
	if d.w.Wire != nil && d.told.Compare(c.Stamp) < 0 {
		d.told = c.Stamp
		d.w.say("%s decides epoch %d: %v, %s", p.Label, c.Stamp.Epoch(), c.Stage, d.roles(c))
	}
	d.decides(c)
	p.Follower.Members.Decide(c)
	p.Follower.Regroup()
	d.w.Decisions.StopRetired()
}

// StopRetired is what an operator has to do: nodes that are not of the set any
// more are stopped, or at least do not come back without their data. A process
// that starts with a list of such nodes alone takes them for nodes without a
// set.
func (d *decisions) StopRetired() {
	for _, n := range d.w.Nodes {
		if !d.w.Decisions.Retired(n) || n.epoch() > 0 {
			continue
		}
		n.Gone = true
		if !n.Down {
			n.Crash()
		}
	}
}

// roles says which nodes stay, leave and enter.
func (d *decisions) roles(c *nodeset.Configuration) string {
	var words []string
	for _, r := range []nodeset.Role{nodeset.Stays, nodeset.Leaves, nodeset.Enters} {
		for i, n := range d.w.Nodes {
			if k := c.Place(n.Address()); k >= 0 && c.Members[k].Role == r {
				words = append(words, fmt.Sprint(i+1)+[]string{"", " leaves", " enters"}[r])
			}
		}
	}
	return strings.Join(words, ", ")
}

// ForgetDecisions has what was decided be open once more that no process knows
// any longer, and no majority of the nodes: the site has lost its registers as
// well.
func (d *decisions) ForgetDecisions() {
	var forgotten []nodeset.Stamp
	for stamp, c := range d.decided {
		known := slices.ContainsFunc(d.w.Procs, func(p *Proc) bool {
			return p.Alive && p.Follower.Members.Stamp() == stamp
		})
		if stamp.Epoch() > 1 && !known && !d.remembered(c) {
			forgotten = append(forgotten, stamp)
		}
	}
	for _, stamp := range forgotten {
		delete(d.decided, stamp)
		d.forgotten[stamp] = true
	}
}

// remembered reports whether a majority of the nodes that decided a
// configuration serves it, or has it in its register.
func (d *decisions) remembered(c *nodeset.Configuration) bool {
	for _, before := range d.decided {
		if before.Stamp.Epoch()+1 != c.Stamp.Epoch() {
			continue
		}
		have := uint32(0)
		for _, n := range d.w.Nodes {
			set := n.Model.Set()
			k, s := before.Member(set.Identity), n.Model.Name(nodeset.SuccessorName(before.Stamp)).Recorded()
			if k >= 0 && (set.Stamp() == c.Stamp || string(s.Value) == c.String()) {
				have |= 1 << before.Members[k].Number
			}
		}
		if Decided(before, have) {
			return true
		}
	}
	return false
}

// knowing returns the nodes that know the set of c, without those that enter:
// they decide nothing.
func (d *decisions) knowing(c *nodeset.Configuration) (all []*Node) {
	for _, n := range d.w.Nodes {
		set := n.Model.Set()
		has := set.Recorded()
		if has == nil || !has.Kin(c) {
			continue
		}
		if i := has.Member(set.Identity); i < 0 || has.Members[i].Role != nodeset.Enters {
			all = append(all, n)
		}
	}
	return all
}

// SetsAgree: a set that one node takes for recorded is that of all its members.
func (d *decisions) SetsAgree() {
	for _, n := range d.w.Nodes {
		set := n.Model.Set()
		if set.Phase != nodeset.SetRecorded {
			continue
		}
		for _, o := range d.w.Nodes {
			if has := o.Model.Set(); set.Config.Place(o.Address()) >= 0 && has.Stamp() != set.Stamp() {
				d.w.Fail("set", "node %s takes %v for recorded, and node %s has %q", n.Address(),
					set.Config, o.Address(), has.Text)
			}
		}
	}
}
