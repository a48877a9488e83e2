package sim

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/nodeset"
)

// This file has the commands about the set that nodes belong to: see
// members.go.

// recorders are processes that record a set step by step.
type recorders struct {
	c          *cast
	recordings map[string]*nodeset.Recording // by process: that have not ended
}

// list LABEL NODES: the list that the process begins with; it is the members
// else. It stands before members.
func (s *recorders) list(a *args) error {
	q := s.c.proc(a.next())
	return s.c.onNodes(a, func(n *node) { q.list = append(q.list, n) })
}

// members [recorded]: each process that has been named begins with its list. If
// recorded, the first nodes are a set.
func (s *recorders) members(a *args) error {
	s.c.w.assemble(a.take("recorded"))
	return nil
}

// record LABEL NODES [once] [ready]: the process records a set if one is due.
// Only these nodes answer it. With once it stops after one step of the
// recording, and the next such command goes on.
func (s *recorders) recordSet(a *args) error {
	label := a.next()
	q := s.c.proc(label)
	answers := a.numbers()
	if a.err != nil || q.members == nil {
		return fmt.Errorf("members stands before record LABEL NODES")
	}
	once, ready := a.take("once"), a.take("ready")
	r := s.recordings[label]
	ballot := nodeset.Ballot(fmt.Sprintf("00000000%04x%07x", q.index+1, 0))
	if r == nil {
		q.members.Want()
		if r = q.members.Record(ballot, s.c.w.settings(), ready, q.chance); r == nil {
			s.c.say("%s has nothing to record", q.label)
			return nil
		}
	}
	for len(r.Out) > 0 {
		todo := r.Out
		r.Out = nil
		for _, s := range todo {
			if n := q.link(s.Node).node; slices.Contains(answers, n.idx+1) {
				r.Answer(s, n.step(s))
			}
		}
		if once && r.Outcome == nodeset.RecordGoesOn {
			s.recordings[label] = r
			return nil
		}
	}
	delete(s.recordings, label)
	if r.Outcome != nodeset.RecordDone {
		s.c.say("%s has not recorded its set", q.label)
		return nil
	}
	whose := "its set"
	if r.Config.Stamp != nodeset.StampOf(1, ballot) {
		whose = "the set of another process"
	}
	s.c.say("%s has recorded %s", q.label, whose)
	q.members.Recorded(r)
	q.regroup()
	return nil
}

// change reads what is added to a set and removed: [add NODES] [remove NODES].
func (s *recorders) change(a *args) change.Goal {
	var add, remove []*node
	nodes := func(into *[]*node) {
		a.fail(s.c.onNodes(a, func(n *node) { *into = append(*into, n) }))
	}
	if a.take("add") {
		nodes(&add)
	}
	if a.take("remove") {
		nodes(&remove)
	}
	return s.c.w.change(add, remove)
}

// operator reads a process that counts on a recorded set.
func (s *recorders) operator(a *args) (*proc, error) {
	q := s.c.proc(a.next())
	if s.c.w.members == 0 || q.members == nil || q.members.Config() == nil {
		return nil, fmt.Errorf("a set is exchanged after nodes N members M, and members recorded")
	}
	return q, a.err
}

// exchange LABEL [add NODES] [remove NODES]: the process exchanges nodes, as an
// operator does.
func (s *recorders) exchange(a *args) error {
	q, err := s.operator(a)
	if err != nil {
		return err
	}
	ch := s.change(a)
	if a.err == nil {
		q.exchange(ch)
	}
	return a.err
}

// undo LABEL: the process gives up what it exchanges, or what another one has
// begun.
func (s *recorders) undo(a *args) error {
	q, err := s.operator(a)
	if err != nil {
		return err
	}
	found := false
	for _, x := range s.c.w.exchangers {
		if x.p == q && x.goesOn() {
			x.giveUp()
			found = true
		}
	}
	if !found {
		q.exchange(change.Goal{}).undo = true // before it begins
	}
	return a.err
}

// decide LABEL begin [add NODES] [remove NODES], or decide LABEL join, finish
// or undo: the process decides at once what follows.
func (s *recorders) decide(a *args) error {
	q, err := s.operator(a)
	if err != nil {
		return err
	}
	c := q.members.Config()
	ballot := nodeset.Ballot(fmt.Sprintf("00000000%04x%07x", q.index+1, 0))
	var next *nodeset.Configuration
	switch what := a.next(); what {
	case "begin":
		next = change.Begin(c, s.change(a), ballot)
	case "join":
		next = change.Join(c, ballot)
	case "finish":
		next = change.Finish(c, ballot)
	case "undo":
		next = change.Undo(c, ballot)
	default:
		return fmt.Errorf("%q is no step of an exchange", what)
	}
	if a.err == nil {
		s.c.w.successor(q, next)
	}
	return a.err
}
