package sim

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
func (n *node) repairStep(m *message) (res repair.RepairResult) {
	w, s, by := n.w, m.task.step, m.link.proc
	inc, marked := n.model.Incarnation()
	set := n.model.Set()
	switch {
	case n.refuse:
		return repair.RepairResult{Err: errRefused, ForGood: true}
	case by.members != nil && n.lie == nil && m.stamp != set.Stamp() && (s.Kind == repair.RepairLook || s.Kind == repair.RepairMark):
		return repair.RepairResult{Err: errOtherSet}
	case !marked:
		return repair.RepairResult{Err: errUnmarked}
	}
	switch now := n.millis(w.now); s.Kind {
	case repair.RepairLook:
		n.looks++
		return repair.RepairResult{Incarnation: inc, CaughtUp: n.model.CaughtUp(), Kept: n.model.Kept(), Wait: n.model.Recovering(now)}
	case repair.RepairTurn:
		if res.OK = n.turnEnds <= now; res.OK {
			n.turnEnds = now + s.For.Milliseconds()
			n.turnOf = by
		}
	case repair.RepairStay:
		if n.turnEnds > now {
			n.turnEnds = now + s.For.Milliseconds()
		}
	case repair.RepairYield:
		n.turnEnds, n.turnOf = 0, nil
	case repair.RepairList:
		res.Names, res.Cursor = n.list(s.Cursor)
	case repair.RepairMark:
		if res.OK = inc == s.Incarnation; res.OK {
			n.complete(inc)
		}
	}
	return res
}

// perPortion is how many names a node lists at a time.
const perPortion = 7

// list lists a portion of the names that the node has something of.
func (n *node) list(cursor string) (names []string, next string) {
	all := slices.Sorted(maps.Keys(n.names))
	if n.model.HasRegister() {
		all = append(all, recordName)
	}
	for _, name := range slices.Sorted(n.model.Names()) {
		if strings.HasPrefix(name, successor) && n.model.Name(name).HasRegister() {
			all = append(all, name)
		}
	}
	if limit, _ := n.model.Limit(); limit > 0 {
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

// complete marks the node as caught up.
func (n *node) complete(inc protocol.Incarnation) {
	w := n.w
	w.log("node %d is caught up", n.idx)
	for _, name := range slices.Sorted(maps.Keys(w.listed)) {
		if !n.names[name] && !w.ledger.void {
			w.fail("record", "node %d is marked as caught up, and lacks %s", n.idx, name)
		}
	}
	w.tape.note("caughtup %d", n.idx+1)
	if w.wire != nil {
		w.wire.say("node %d is caught up", n.idx+1)
	}
	n.model.Complete(inc)
}
