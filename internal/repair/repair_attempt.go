package repair

import (
	"cmp"
	"errors"
	"fmt"
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
	"maps"
	"slices"
)

// This file owns one attempt to repair a node: the steps of it, in this order.
//
//	look at the node    it is caught up: done. Its guard time runs: later
//	take the turn       another client has it: later
//	look at the others  too few can attest: later
//	list their names    one after the other, in portions; each is looked at once more
//	bring the names     in batches; a register that is undecided is decided
//	mark the node       if it is in the same incarnation still
//
// What an attempt has listed and brought stays for the next one, as long as the
// node keeps its incarnation. An attempt that has failed ends when nothing of
// it is under way any more.

// Bounds of what one node may list. A node whose cursor never returns to 0
// would otherwise fill this process's memory, or keep it busy.
const (
	maxNameBytes = 128 << 20 // of all names, with perName for each
	perName      = 64
	maxPortions  = 100_000 // of at least 1,000 keys each, on a server that is not broken
)

// ErrEndless is why the names of a node are not used.
var ErrEndless = fmt.Errorf("lists more than %d MB of names, or its list never ends", maxNameBytes>>20)

// ErrLostMeanwhile is why what a node has listed does not count.
var ErrLostMeanwhile = errors.New("lost its data or restarted while it listed names")

// Done says what has become of a step.
func (r *Repair) Done(now protocol.Time, s RepairStep, res RepairResult) {
	if s.Kind == RepairSpread {
		delete(r.numbers, s.Name) // the next answer that shows that a node lacks the number begins again
		return
	}
	n := &r.nodes[s.Target]
	n.busy--
	if !n.failed {
		r.take(now, s, res)
	}
	r.advance(now, s.Target)
}

// take takes the result of a step of an attempt that has not failed.
func (r *Repair) take(now protocol.Time, s RepairStep, res RepairResult) {
	i, n := s.Target, &r.nodes[s.Target]
	switch s.Kind {
	case RepairRead, RepairDecide:
		r.brought(i, s, res)
		return
	case RepairLook, RepairList:
		if s.Node != i {
			r.asked(i, s, res)
			return
		}
	}
	if res.Err != nil {
		n.fail(res.Err, res.ForGood)
		return
	}
	switch s.Kind {
	case RepairLook:
		r.looked(i, res)
	case RepairTurn:
		if !res.OK { //mutant:RuleRepairTurns
			n.fail(nil, false) // one client at a time: all at once would only be slower
			return
		}
		n.turn, n.prolong = true, now.Add(r.turn()/2)
		if n.listed {
			r.bring(i)
			return
		}
		r.lookAtOthers(i)
	case RepairMark:
		if n.finished = res.OK; !n.finished { // it has lost its data again
			n.fail(nil, false)
			return
		}
		r.Out = append(r.Out, RepairStep{Kind: RepairDone, Target: i, Count: n.total})
	}
}

// looked takes what the marker of the node says. Names are listed once the
// guard time is over: before that, other nodes may take more that rests on what
// the node forgot. Names that were listed in an earlier incarnation count for
// nothing.
func (r *Repair) looked(i int, res RepairResult) {
	n := &r.nodes[i]
	if res.CaughtUp {
		n.finished = true
		return
	}
	if res.Incarnation != n.incarnation {
		n.incarnation = res.Incarnation
		n.listed, n.names, n.batch = false, nil, 0 //mutant:RuleRepairRestart
	}
	if n.batch == 0 {
		n.batch = r.most()
	}
	if n.wait = res.Wait; n.wait > 0 { //mutant:RuleRepairGuard
		n.fail(nil, false)
		return
	}
	n.wait, n.kept = 0, res.Kept
	r.do(i, RepairStep{Kind: RepairTurn, Node: i, For: r.turn()})
}

// lookAtOthers finds out whether it can help to list names at all.
func (r *Repair) lookAtOthers(i int) {
	n := &r.nodes[i]
	n.others, n.found = make([]repairPeer, len(r.nodes)), map[string]struct{}{}
	asked := 0
	for j := range r.nodes {
		switch {
		case j == i:
		case r.Group.Sets.All()&(1<<j) == 0:
			n.others[j].err = errNoMember
		default:
			asked++
			r.do(i, RepairStep{Kind: RepairLook, Node: j})
		}
	}
	if asked == 0 {
		r.list(i)
	}
}

// asked takes what another node has answered.
// Invariant: a node's list counts only if its incarnation and its run are the
// same before the first portion and after the last one (repair-steady.txt).
func (r *Repair) asked(i int, s RepairStep, res RepairResult) {
	n, p := &r.nodes[i], &r.nodes[i].others[s.Node]
	listing := n.listing == s.Node+1
	switch {
	case res.Err != nil:
		p.err = res.Err
	case s.Kind == RepairList:
		if r.portion(n, p, res); p.err != nil {
			break
		}
		next := RepairStep{Kind: RepairList, Node: s.Node, Cursor: res.Cursor}
		if res.Cursor == "0" {
			next = RepairStep{Kind: RepairLook, Node: s.Node}
		}
		r.do(i, next)
		return
	case !listing:
		p.looked, p.caughtUp, p.incarnation, p.run = true, res.CaughtUp, res.Incarnation, res.Run
	case res.Incarnation != p.incarnation || res.Run != p.run: //mutant:RuleRepairSteady
		p.err = ErrLostMeanwhile // some names may be missing; and a cursor is of one run
	default:
		p.listed = true
	}
	if listing || n.asked(i) {
		r.list(i)
	}
}

// asked: each of the other nodes has been looked at, or cannot be.
func (n *nodeRepair) asked(i int) bool {
	for j := range n.others {
		if p := &n.others[j]; j != i && !p.looked && p.err == nil {
			return false
		}
	}
	return true
}

func (r *Repair) portion(n *nodeRepair, p *repairPeer, res RepairResult) {
	for _, name := range res.Names {
		if _, known := n.found[name]; !known {
			n.found[name] = struct{}{}
			p.size += len(name) + perName
		}
	}
	if p.portions++; p.portions >= maxPortions || p.size > maxNameBytes {
		p.err = ErrEndless
	}
}

// list lists the names of the next node, if it can help. Failing q nodes that
// are caught up, all the other nodes must be asked: one that cannot be asked
// may be the only one that knows.
func (r *Repair) list(i int) {
	n := &r.nodes[i]
	n.listing = 0
	caughtUp, all := uint32(0), uint32(0)
	for j := range n.others {
		if p := &n.others[j]; j != i && p.err == nil {
			all |= 1 << j
			if p.caughtUp {
				caughtUp |= 1 << j
			}
		}
	}
	if !lease.CanListNames(r.Group.Sets, i, n.kept, caughtUp, all) {
		n.fail(nil, false)
		n.lacking = make([]error, len(r.nodes))
		for j := range n.others {
			n.lacking[j] = n.others[j].err
		}
		return
	}
	for j := range n.others {
		if p := &n.others[j]; j != i && p.err == nil && !p.listed {
			n.listing = j + 1
			r.do(i, RepairStep{Kind: RepairList, Node: j, Cursor: "0"})
			return
		}
	}
	n.listed, n.names, n.total = true, slices.Sorted(maps.Keys(n.found)), len(n.found)
	n.found, n.others = nil, nil
	r.bring(i)
}

// bring brings the next names to the node, or marks it as caught up.
// Invariant: the mark names the incarnation that was repaired, so a node that
// has lost its data since ignores it.
func (r *Repair) bring(i int) {
	n := &r.nodes[i]
	// The nodes may have been exchanged since the names were listed, so that it
	// does not need some of them.
	n.names = slices.DeleteFunc(n.names, func(name string) bool {
		brings, _ := r.Group.Brings(i, name)
		return !brings //mutant:RuleRepairSuccession=false
	})
	if len(n.names) == 0 {
		r.do(i, RepairStep{Kind: RepairMark, Incarnation: n.incarnation})
		return
	}
	n.sent = min(n.batch, len(n.names))
	n.out, n.left = n.sent, nil
	for _, name := range n.names[:n.sent] {
		_, succession := r.Group.Brings(i, name)
		r.do(i, RepairStep{Kind: RepairRead, Name: name, Succession: succession})
	}
}

// brought takes the end of a read or of a decision. A register that is
// undecided is decided once in an attempt: the run that makes it undecided
// again is alive (repair-decides.txt).
func (r *Repair) brought(i int, s RepairStep, res RepairResult) {
	n := &r.nodes[i]
	err := res.Err
	switch {
	case err != nil:
	case s.Kind == RepairDecide && res.OK:
		r.do(i, RepairStep{Kind: RepairRead, Name: s.Name, Succession: s.Succession, decided: true}) // the node need not be one of the majority
		return
	case s.Kind == RepairRead && lease.Decides(res.Outcome == lease.Inconclusive, s.decided):
		r.do(i, RepairStep{Kind: RepairDecide, Name: s.Name, Succession: s.Succession})
		return
	case s.Kind == RepairDecide || res.Outcome == lease.Inconclusive:
		err = ErrUndecided
	}
	if err != nil {
		n.left, n.why = append(n.left, s.Name), cmp.Or(n.why, err)
	}
	if n.out--; n.out == 0 {
		r.batched(i)
	}
}

// batched ends a batch. What could not be brought comes after the other names,
// in the next attempt. If nothing of a batch could be brought, it may have been
// too large (repair-portions.txt).
// Invariant: the node is marked once no name is left, those that could not be
// read included (repair-every-name.txt).
func (r *Repair) batched(i int) {
	n := &r.nodes[i]
	if n.names = n.names[n.sent:]; len(n.left) > 0 { //mutant:RuleRepairEvery
		if n.names = append(n.names, n.left...); len(n.left) == n.sent {
			n.batch = max(1, n.batch/4)
		}
		n.fail(n.why, false)
		return
	}
	n.batch = min(2*n.batch, r.most())
	r.bring(i)
}
