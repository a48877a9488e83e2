package play

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/sim/world"
)

// Commands about the set that nodes belong to; see members.go.

// list LABEL NODES: the list that the process begins with; it is the members
// else. It stands before members.
func (s *recorders) list(a *args) error {
	q := s.c.proc(a.next())
	q.Follower.List = append(q.Follower.List, s.c.nodes(a)...)
	return nil
}

// members [recorded]: each process that has been named begins with its list. If
// recorded, the first nodes are a set.
func (s *recorders) members(a *args) error {
	s.c.World.Decisions.Assemble(a.take("recorded"))
	return nil
}

// record LABEL NODES [once] [ready]: the process records a set if one is due.
// Only these nodes answer it. With once it stops after one step of the
// recording, and the next such command goes on.
func (s *recorders) recordSet(a *args) error {
	label := a.next()
	q := s.c.proc(label)
	answers := a.numbers()
	if a.err != nil || q.Follower.Members == nil {
		return fmt.Errorf("members stands before record LABEL NODES")
	}
	once, ready := a.take("once"), a.take("ready")
	r := s.recordings[label]
	ballot := nodeset.Ballot(fmt.Sprintf("00000000%04x%07x", q.Index+1, 0))
	if r.Recording == nil {
		recorder := &q.Follower.Members.Recorder
		recorder.Want()
		r.Recording, r.steps = recorder.Record(func(nodeset.Ballot) nodeset.Ballot { return ballot },
			s.c.World.Settings(), ready, q.Follower.Chance)
		if r.Recording == nil {
			s.c.wire.Say("%s has nothing to record", q.Label)
			return nil
		}
	}
	for goesOn := true; goesOn && len(r.steps) > 0; goesOn = !once {
		has := make([]*nodeset.NodeSet, len(r.steps))
		for i, s := range r.steps {
			if n := q.Link(s.Node).Node; slices.Contains(answers, n.Index+1) {
				keeps := n.Step(s)
				has[i] = &keeps
			}
		}
		r.steps = q.Follower.Members.Next(has)
	}
	if len(r.steps) > 0 {
		s.recordings[label] = r
		return nil
	}
	delete(s.recordings, label)
	if r.Outcome != nodeset.RecordDone {
		s.c.wire.Say("%s has not recorded its set", q.Label)
		return nil
	}
	whose := "its set"
	if r.Config.Stamp != nodeset.StampOf(1, ballot) {
		whose = "the set of another process"
	}
	s.c.wire.Say("%s has recorded %s", q.Label, whose)
	q.Follower.Regroup()
	return nil
}

// change reads what is added to a set and removed, and the guard time that it
// gets: [add NODES] [remove NODES] [guard DURATION].
func (s *recorders) change(a *args) change.Goal {
	var add, remove []*world.Node
	if a.take("add") {
		add = s.c.nodes(a)
	}
	if a.take("remove") {
		remove = s.c.nodes(a)
	}
	goal := s.c.World.Operators.Change(add, remove)
	if a.take("guard") {
		shared := s.c.World.Settings()
		shared.Guard = a.duration()
		shared.Retention = max(shared.Retention, shared.Guard)
		goal.Shared = &shared
	}
	return goal
}

// operator reads a process that counts on a recorded set.
func (s *recorders) operator(a *args) (*world.Proc, error) {
	q := s.c.proc(a.next())
	if s.c.World.Members == 0 || q.Follower.Members == nil || q.Follower.Members.Config() == nil {
		return nil, fmt.Errorf("a set is exchanged after nodes N members M, and members recorded")
	}
	return q, a.err
}

// exchange LABEL [add NODES] [remove NODES] [guard DURATION]: the process exchanges nodes, as an
// operator does.
func (s *recorders) exchange(a *args) error {
	q, err := s.operator(a)
	if err != nil {
		return err
	}
	ch := s.change(a)
	if a.err == nil {
		q.Exchange(ch)
	}
	return nil
}

// undo LABEL: the process gives up what it exchanges, or what another one has
// begun.
func (s *recorders) undo(a *args) error {
	q, err := s.operator(a)
	if err != nil {
		return err
	}
	found := false
	for _, x := range s.c.World.Exchangers {
		if x.P == q && x.GoesOn() {
			x.GiveUp()
			found = true
		}
	}
	if !found {
		q.Exchange(change.Goal{}).Undo = true // before it begins
	}
	return nil
}

// decide LABEL begin [add NODES] [remove NODES] [guard DURATION], or decide LABEL join, finish
// or undo: the process decides at once what follows.
func (s *recorders) decide(a *args) error {
	q, err := s.operator(a)
	if err != nil {
		return err
	}
	c := q.Follower.Members.Config()
	ballot := nodeset.Ballot(fmt.Sprintf("00000000%04x%07x", q.Index+1, 0))
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
		s.c.World.Decisions.Successor(q, next)
	}
	return nil
}
