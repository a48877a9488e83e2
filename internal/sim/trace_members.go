package sim

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/protocol"
)

// This file has the commands about the set that nodes belong to: see members.go.

// own LINK [empty] or own LINK copy NODE: from now on the address of LINK reaches a server that no other process has in its
// list. It votes, has no data, or has a copy of another node's data.
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

// members [recorded]: each process that has been named looks at the sets of its nodes. If recorded, the nodes are one.
func (p *player) members(a *args) error {
	p.w.assemble(a.take("recorded"))
	return nil
}

// record LABEL NODES: the process records the set of its list. Only these nodes answer it.
func (p *player) recordSet(a *args) error {
	q := p.on.process(a.next())
	answers := a.numbers()
	if a.err != nil || q.members == nil {
		return fmt.Errorf("members stands before record LABEL NODES")
	}
	var nodes []*node
	for _, l := range q.links {
		nodes = append(nodes, l.node)
	}
	chance := fmt.Sprintf("%04x%07x", q.index+1, 0)
	r := protocol.NewRecording(p.w.configuration(nodes, chance), protocol.Ballot("00000000"+chance), p.w.rules)
	for len(r.Out) > 0 {
		todo := r.Out
		r.Out = nil
		for _, s := range todo {
			if slices.Contains(answers, s.Node+1) {
				r.Answer(s, q.links[s.Node].node.step(s))
			}
		}
	}
	if r.Outcome == protocol.RecordDone {
		q.members.Recorded(r)
		p.x.say("%s has recorded its set", q.label)
	} else {
		p.x.say("%s has not recorded its set", q.label)
	}
	return nil
}
