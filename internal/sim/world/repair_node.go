package world

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/repair"
)

// This file owns what the nodes do for the steps of a repair, and the names
// that they list: the record and the number of permits are those of the model,
// further names are only known or not.
//
// Invariant: a node that is marked as caught up has every name that any node
// listed. The simulator reports the violation "record" where it has not.

// repairStep is what a node does for one step.
func (n *Node) repairStep(m *Message) (res repair.RepairResult) {
	w, s, by := n.World, m.task.step, m.Link.Proc
	inc, marked := n.Model.Incarnation()
	set := n.Model.Set()
	switch {
	case n.Refuse:
		return repair.RepairResult{Err: errRefused, ForGood: true}
	case by.Members != nil && n.Lie == nil && m.stamp != set.Stamp() && (s.Kind == repair.RepairLook || s.Kind == repair.RepairMark):
		return repair.RepairResult{Err: errOtherSet}
	case !marked:
		return repair.RepairResult{Err: errUnmarked}
	}
	switch now := n.Millis(w.Now); s.Kind {
	case repair.RepairLook:
		n.Looks++
		return repair.RepairResult{Incarnation: inc, CaughtUp: n.Model.CaughtUp(), Kept: n.Model.Kept(), Wait: n.Model.Recovering(now)}
	case repair.RepairTurn:
		if res.OK = n.TurnEnds <= now; res.OK {
			n.TurnEnds = now + s.For.Milliseconds()
			n.TurnOf = by
		}
	case repair.RepairStay:
		if n.TurnEnds > now {
			n.TurnEnds = now + s.For.Milliseconds()
		}
	case repair.RepairYield:
		n.TurnEnds, n.TurnOf = 0, nil
	case repair.RepairList:
		res.Names, res.Cursor = n.list(s.Cursor)
	case repair.RepairMark:
		if res.OK = inc == s.Incarnation; res.OK {
			n.Complete(inc)
		}
	}
	return res
}

// perPortion is how many names a node lists at a time.
const perPortion = 7

// list lists a portion of the names that the node has something of.
func (n *Node) list(cursor string) (names []string, next string) {
	all := slices.Sorted(maps.Keys(n.Names))
	if n.Model.HasRegister() {
		all = append(all, recordName)
	}
	for _, name := range slices.Sorted(n.Model.Names()) {
		if strings.HasPrefix(name, successor) && n.Model.Name(name).HasRegister() {
			all = append(all, name)
		}
	}
	if limit, _ := n.Model.Limit(); limit > 0 {
		all = append(all, numberName)
	}
	from, err := strconv.Atoi(cursor)
	if err != nil {
		panic(err)
	}
	from = min(from, len(all))
	to := min(from+perPortion, len(all))
	if next = strconv.Itoa(to); to == len(all) {
		next = "0"
	}
	return all[from:to], next
}

// Complete marks the node as caught up.
func (n *Node) Complete(inc protocol.Incarnation) {
	w := n.World
	w.Log("node %d is caught up", n.Index)
	w.Judge.CaughtUp(n)
	w.Tape.Note("caughtup %d", n.Index+1)
	if w.Wire != nil {
		w.Wire.Say("node %d is caught up", n.Index+1)
	}
	n.Model.Complete(inc)
}
