package sim

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/protocol"
)

// This file has the commands about the set that nodes belong to: see
// members.go.

// own LINK [empty] or own LINK copy NODE: from now on the address of LINK
// reaches a server that no other process has in its list. It votes, has no
// data, or has a copy of another node's data.
func (p *player) own(a *args) error {
	l, err := p.link(a)
	if err != nil {
		return err
	}
	d := p.w.outsider(l.proc, l.node)
	d.clock.offset = p.w.nodes[l.idx].clock.offset
	if a.take("empty") {
		d.model.Forget()
	}
	if a.take("copy") {
		o, err := p.node(a.next())
		if err != nil {
			return err
		}
		d.model = o.model.Clone()
		d.mark() // as by the first client that meets this run of a server
	}
	l.connect()
	return nil
}

// members [recorded]: each process that has been named looks at the sets of its
// nodes. If recorded, the nodes are one.
func (p *player) members(a *args) error {
	p.w.assemble(a.take("recorded"))
	return nil
}

// record LABEL NODES [once]: the process records the set of its list. Only
// these nodes answer it. With once it stops after one step of the recording,
// and the next such command goes on.
func (p *player) recordSet(a *args) error {
	label := a.next()
	q := p.on.process(label)
	answers := a.numbers()
	if a.err != nil || q.members == nil {
		return fmt.Errorf("members stands before record LABEL NODES")
	}
	r := p.recordings[label]
	if r == nil {
		r = q.recording()
	}
	for once := a.take("once"); len(r.Out) > 0; {
		todo := r.Out
		r.Out = nil
		for _, s := range todo {
			if slices.Contains(answers, s.Node+1) {
				r.Answer(s, q.links[s.Node].node.step(s))
			}
		}
		if once && r.Outcome == protocol.RecordGoesOn {
			p.recordings[label] = r
			return nil
		}
	}
	delete(p.recordings, label)
	switch {
	case r.Outcome != protocol.RecordDone:
		p.x.say("%s has not recorded its set", q.label)
		return nil
	case r.Config.Stamp != q.proposal().Stamp:
		p.x.say("%s has recorded the set of another process", q.label)
	default:
		p.x.say("%s has recorded its set", q.label)
	}
	q.members.Recorded(r)
	return nil
}

// sets LABEL: what the nodes of the process show of their set.
func (p *player) sets(a *args) error {
	q := p.on.process(a.next())
	if a.err != nil || q.members == nil {
		return fmt.Errorf("members stands before sets LABEL")
	}
	var has []*protocol.NodeSet
	for i := range q.links {
		has = append(has, q.members.Has(i))
	}
	r := protocol.ReportSet(q.members.Config(), has)
	p.x.say("%s: recorded %t, begun %t, nodes %v", q.label, r.Recorded, r.Half, r.Standing)
	return nil
}

// proposal is the set that a process records in a trace.
func (p *proc) proposal() *protocol.Configuration {
	var nodes []*node
	for _, l := range p.links {
		nodes = append(nodes, l.node)
	}
	return p.w.configuration(nodes, fmt.Sprintf("%04x%07x", p.index+1, 0))
}

func (p *proc) recording() *protocol.Recording {
	ballot := protocol.Ballot(fmt.Sprintf("00000000%04x%07x", p.index+1, 0))
	return protocol.NewRecording(p.proposal(), ballot, p.w.rules)
}

// change reads what is added to a set and removed: [add NODES] [remove NODES].
func (p *player) change(a *args) protocol.Change {
	var add, remove []*node
	nodes := func(into *[]*node) {
		a.fail(p.onNodes(a, func(n *node) { *into = append(*into, n) }))
	}
	if a.take("add") {
		nodes(&add)
	}
	if a.take("remove") {
		nodes(&remove)
	}
	return p.w.change(add, remove)
}

// operator reads a process that counts on a recorded set.
func (p *player) operator(a *args) (*proc, error) {
	q := p.on.process(a.next())
	if p.w.members == 0 || q.members == nil || q.members.Config() == nil {
		return nil, fmt.Errorf("a set is exchanged after nodes N members M, and members recorded")
	}
	return q, a.err
}

// exchange LABEL [add NODES] [remove NODES]: the process exchanges nodes, as an
// operator does.
func (p *player) exchange(a *args) error {
	q, err := p.operator(a)
	if err != nil {
		return err
	}
	ch := p.change(a)
	if a.err == nil {
		q.exchange(ch)
	}
	return a.err
}

// undo LABEL: the process gives up what it exchanges, or what another one has
// begun.
func (p *player) undo(a *args) error {
	q, err := p.operator(a)
	if err != nil {
		return err
	}
	found := false
	for _, x := range p.w.exchangers {
		if x.p == q && x.goesOn() {
			x.undo, found = true, true
		}
	}
	if !found {
		q.exchange(protocol.Change{}).undo = true
	}
	return a.err
}

// decide LABEL begin [add NODES] [remove NODES], or decide LABEL join, finish
// or undo: the process decides at once what follows.
func (p *player) decide(a *args) error {
	q, err := p.operator(a)
	if err != nil {
		return err
	}
	c := q.members.Config()
	ballot := protocol.Ballot(fmt.Sprintf("00000000%04x%07x", q.index+1, 0))
	var next *protocol.Configuration
	switch what := a.next(); what {
	case "begin":
		next = c.Begin(p.change(a), ballot)
	case "join":
		next = c.Join(ballot)
	case "finish":
		next = c.Finish(ballot)
	case "undo":
		next = c.Undo(ballot)
	default:
		return fmt.Errorf("%q is no step of an exchange", what)
	}
	if a.err == nil {
		p.w.successor(q, []byte(next.String()))
	}
	return a.err
}
