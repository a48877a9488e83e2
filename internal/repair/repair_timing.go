package repair

// This file owns the times of repairs: the events that say that a node may lack
// something, when an attempt begins, how long a client has the turn at a node,
// and when the next attempt follows one that has failed.
// Invariant: a node that may lack something has an attempt under way, or one to
// come.

import (
	"github.com/quorate/quorate/internal/protocol"
	"maps"
	"slices"
	"time"
)

// What a repair may have under way, and how often it tries.
const (
	repairBatch   = 64 // names at a time: the connection of the node must not break
	quietAttempts = 24 // attempts, some ten seconds by default, until an operator should know
)

// Tick lets time pass. Late is allowed: another client may then get the turn at
// a node, and both bring names. That costs requests and no safety, as a node
// keeps the newest record and promise that it gets.
func (r *Repair) Tick(now protocol.Time) {
	for i := range r.nodes {
		n := &r.nodes[i]
		switch {
		case n.stage == repairPaused && now >= n.retry:
			r.begin(now, i)
		// At half of the turn, so that a request which takes a whole node
		// timeout arrives before the turn ends.
		case n.stage == repairing && n.turn && !n.failed && now >= n.prolong:
			n.prolong = now.Add(r.turn() / 2)
			count := -1 // the names are being listed
			if n.listed {
				count = len(n.names)
			}
			r.do(i, RepairStep{Kind: RepairStay, Node: i, For: r.turn(), Count: count})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.numbers)) {
		if at := r.numbers[name]; now >= at && at != protocol.Never {
			r.numbers[name] = protocol.Never
			r.Out = append(r.Out, RepairStep{Kind: RepairSpread, Name: name})
		}
	}
}

// Up says that a connection to a node has begun. The node may have lost its
// data since the last one. And it may be the node without which others could
// not be repaired.
func (r *Repair) Up(now protocol.Time, node int) {
	r.nodes[node].up = true
	r.Hurry(now)
	r.Look(now, node) //mutant:RuleRepairMeet
}

// Hurry has nodes that wait be tried now: their guard times may have been
// ended. What an attempt under way has learnt of that may be older, so the next
// one follows at once.
func (r *Repair) Hurry(now protocol.Time) {
	for i := range r.nodes {
		switch n := &r.nodes[i]; n.stage {
		case repairPaused:
			n.pause, n.retry = r.first(), now
		case repairing:
			n.hurried = true
		}
	}
	r.Tick(now)
}

// Look says that a node may have to be repaired: an answer of it has shown
// that, or it has a new incarnation. A repair under way there looks once more
// in the end.
func (r *Repair) Look(now protocol.Time, node int) {
	n := &r.nodes[node]
	switch {
	case !n.up: // the next connection begins with a look
	case n.stage != repairIdle:
		n.again = true
	default:
		n.attempts, n.attempted, n.pause = 0, false, r.first()
		r.begin(now, node)
	}
}

// Down says that the connection to a node has ended. The next one begins with a
// look, and goes on with what was listed if the node has its incarnation still.
func (r *Repair) Down(now protocol.Time, node int) {
	n := &r.nodes[node]
	n.up = false
	if n.stage == repairing {
		n.fail(nil, false)
		r.advance(now, node)
		return
	}
	n.idle()
}

// Close ends the repairs. Steps that are under way are still reported to Done,
// so that turns are given up.
func (r *Repair) Close(now protocol.Time) {
	clear(r.numbers)
	for i := range r.nodes {
		r.Down(now, i)
	}
}

func (r *Repair) Wake() protocol.Time {
	w := protocol.Never
	for i := range r.nodes {
		n := &r.nodes[i]
		switch {
		case n.stage == repairPaused:
			w = min(w, n.retry)
		case n.stage == repairing && n.turn && !n.failed:
			w = min(w, n.prolong)
		}
	}
	for _, at := range r.numbers {
		w = min(w, at)
	}
	return w
}

// first is the shortest pause, and turn how long a client has the turn at a
// node.
func (r *Repair) first() time.Duration { return r.NodeTimeout / 16 }
func (r *Repair) turn() time.Duration  { return 4 * r.NodeTimeout }

// most is how many names are brought at a time.
func (r *Repair) most() int {
	return repairBatch //mutant:RuleRepairBound=1 << 30
}

// do has the client take a step for the repair of node i.
func (r *Repair) do(i int, s RepairStep) {
	s.Target = i
	r.nodes[i].busy++
	r.Out = append(r.Out, s)
}

func (r *Repair) begin(now protocol.Time, i int) {
	n := &r.nodes[i]
	n.stage, n.attempts, n.hurried = repairing, n.attempts+1, false
	n.attemptState = attemptState{}
	r.do(i, RepairStep{Kind: RepairLook, Node: i})
}

// advance ends the attempt at node i if there is nothing left to wait for.
func (r *Repair) advance(now protocol.Time, i int) {
	n := &r.nodes[i]
	if n.stage != repairing || n.busy > 0 || !n.failed && !n.finished {
		return
	}
	n.attempted = true
	if n.turn {
		n.turn = false
		r.Out = append(r.Out, RepairStep{Kind: RepairYield, Target: i, Node: i})
	}
	switch {
	case n.finished || !n.up:
		again := n.again && n.up
		n.idle()
		if again {
			r.Look(now, i)
		}
	default:
		r.pause(now, i) //mutant:RuleRepairRetry=r.nodes[i].idle()
	}
}

// pause has the next attempt follow later. Every client does this: their
// attempts are spread, and get rarer while they fail.
func (r *Repair) pause(now protocol.Time, i int) {
	n := &r.nodes[i]
	longest := 4 * r.NodeTimeout
	if n.attempts >= quietAttempts {
		longest = max(longest, r.Guard/2)
	}
	n.pause = min(2*n.pause, longest)
	switch {
	case n.wait > 0 && n.hurried:
		n.wait, n.pause = 0, r.first()
	case n.wait > 0:
		n.attempts, n.pause = 1, r.NodeTimeout
	case n.err != nil || n.lacking != nil:
		r.Out = append(r.Out, RepairStep{
			Kind: RepairFailed, Target: i, Err: n.err, Nodes: n.lacking,
			Warn: n.attempts == quietAttempts && !n.forGood, // a client that lacks a right leaves the node to others
		})
	}
	n.stage = repairPaused
	n.retry = now.Add(n.wait + time.Duration(r.rng.Int64N(int64(n.pause)+1)))
}
