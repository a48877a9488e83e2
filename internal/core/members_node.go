package core

// This file owns what the beginning of a connection does about the set: it
// shows nodeset.Membership what the node has recorded, and says to the node
// what that answers.
// Invariant: a node gets no request of a claim before its record has been
// judged.

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/transport"
)

// meet finds out what the server counts as that a connection has just reached,
// of which this is the run. It runs in hello, on the goroutine that makes the
// connection. If done, the node is not marked, and gets no request.
func (n *node) meet(run string) (cmds []transport.Command, done bool, err error) {
	q := n.q
	p := &n.probed
	has, ok := nodeset.ParseNodeSet(p.set)
	if layout := nodeset.LayoutOf(p.set); !ok && layout > 0 && layout != nodeset.Layout {
		return nil, true, fmt.Errorf("its set was recorded by another version of this library, with version %d of the keys, and this program has version %d: "+
			"run the same version in all clients", layout, nodeset.Layout)
	}
	if !ok {
		return nil, true, fmt.Errorf("its record of the set of nodes makes no sense; the key is %q", script.SetKey(q.set.Prefix))
	}
	// This connection judges the node, as the timer would have it do.
	if n.later != nil {
		n.later.Stop()
	}
	var v nodeset.SetVerdict
	left := false
	for _, s := range q.members.change(n.index, func(m *nodeset.Membership) {
		if left = !n.serves(m); !left {
			v = m.Met(n.index, has)
		}
	}) {
		cmds = append(cmds, n.step(s, run))
	}
	if left {
		return nil, true, errRejudged
	}
	n.logVerdict(v)
	switch v.Fault {
	case nodeset.SetFits:
		n.pause = 0
		// A member has a marker, or makes one in its handshake.
		if p.home == q.members.home() && has.Stamp() == p.home.Stamp() && p.marker == "" && len(cmds) == 0 {
			cmds = append(cmds, n.step(nodeset.RecordStep{Node: n.index, Kind: nodeset.SetCommit, Identity: has.Identity, Config: has.Config}, run))
		}
		return cmds, false, nil
	// No error: recordings and exchanges need a connection to this node, which
	// itself refuses the requests of claims (rule 1).
	case nodeset.SetUnknown, nodeset.SetPending, nodeset.SetLost, nodeset.SetBetween, nodeset.SetAhead, nodeset.SetWrong:
		n.judgeAgain()
		return cmds, true, nil
	case nodeset.SetRetired:
		if n.seed() {
			return cmds, true, nil // it is not needed, and its connection ends
		}
	}
	return nil, true, q.members.verdictError(v)
}

// askServes asks a node whether it still serves the configuration that requests
// name. What it shows instead is found out by the next connection.
// Invariant: a client that is idle asks too.
func (n *node) askServes() {
	s := n.q.members
	n.send(&adminRequest{command: resp.AppendCommand(nil, script.ReadShort(s.markerKey())...), reply: func(v []resp.Value, err error) {
		if err == nil && text(v, 0) == "" {
			s.change(n.index, func(m *nodeset.Membership) { m.Refused(n.index) })
		}
	}})
}

// step is a command by which a node takes a step of its set's register.
func (n *node) step(s nodeset.RecordStep, run string) *adminRequest {
	q := n.q
	c := &adminRequest{command: q.members.setStep(nil, s, run)}
	switch {
	case s.Kind == nodeset.SetLife:
		return n.keeps(c.command, func(m *nodeset.Membership, has nodeset.NodeSet) { m.Kept(n.index, has) })
	case s.Kind != nodeset.SetRestore:
	case s.Config.Members[s.Config.Member(s.Identity)].Role == nodeset.Enters:
		q.set.Logger.Info("quorate: a node enters the set; it votes after the guard time", "node", n.addr)
	default:
		q.set.Logger.Info("quorate: a node lost its data and is given back its place in the set; it votes after the guard time", "node", n.addr)
	}
	return c
}

// judgeAgain has a node without a vote be judged again after a pause. What is
// under way is over in a few round trips, so the pause is short at first.
// Invariant: one pause at a time, whatever ends the connection meanwhile.
func (n *node) judgeAgain() {
	q := n.q
	longest := 5 * q.set.NodeTimeout
	if n.pause = min(2*n.pause, longest); n.pause == 0 {
		n.pause = q.set.NodeTimeout / 4
	}
	n.later = time.AfterFunc(n.pause, func() {
		q.members.change(-1, func(m *nodeset.Membership) { m.Again(n.index) })
	})
}

// logVerdict logs what is new about a node.
func (n *node) logVerdict(v nodeset.SetVerdict) {
	q := n.q
	s := q.members
	switch {
	// The node gets its place back once the members have answered.
	case v.Fault == nodeset.SetLost && v.Asks,
		// Each client that follows its set meets that for a moment. The second
		// verdict is logged.
		v.Fault == nodeset.SetAhead && n.pause == 0,
		// A node that enters is blank, and gets its place in a moment.
		v.Enters(),
		// What is no member is not used, which the log says elsewhere.
		v.Fault == nodeset.SetRetired:
		return
	}
	s.mu.Lock()
	was := s.logged[n.index]
	s.logged[n.index] = v.Fault
	s.mu.Unlock()
	switch v.Fault {
	case was, nodeset.SetFits, nodeset.SetUnknown, nodeset.SetPending:
		return
	}
	q.set.Logger.Warn("quorate: a node has no vote", "node", n.addr, "error", s.verdictError(v))
}
