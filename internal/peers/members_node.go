package peers

// What a new connection does about the set.
// Invariant: a node gets no request of a claim before its record has been
// judged.

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/flow"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/transport"
)

// meet finds out which member the server behind a new connection is. run is the
// server's run. If done is true, the node is not marked and gets no request.
// meet runs in hello, on the goroutine that makes the connection.
func (h *handshake) meet(run string) (cmds []transport.Command, done bool, err error) {
	n, ps := h.n, h.n.ps
	p := &h.probed
	has, ok := nodeset.ParseNodeSet(p.set)
	if layout := nodeset.LayoutOf(p.set); !ok && layout > 0 && layout != nodeset.Layout {
		return nil, true,
			fmt.Errorf("its set was recorded by another version of this library (key version %d, this program has "+
				"%d): run the same version in all clients", layout, nodeset.Layout)
	}
	if !ok {
		return nil, true, fmt.Errorf("its record of the set is malformed; the key is %q",
			script.SetKey(ps.Set.Prefix))
	}
	// This connection judges the node, so the timer need not.
	if h.later != nil {
		h.later.Stop()
	}
	has.Run = run
	var v nodeset.SetVerdict
	left := false
	for _, s := range ps.Members.Change(n.Index, func(m *nodeset.Membership) {
		if left = !n.serves(m); !left {
			v = m.Met(n.Index, has)
		}
	}) {
		cmds = append(cmds, h.step(s, run))
	}
	if left {
		return nil, true, fault.ErrRejudged
	}
	h.logVerdict(v)
	h.votes.Store(v.Fault == nodeset.SetFits)
	switch v.Fault {
	case nodeset.SetFits:
		h.pause = 0
		// A member has a marker, or creates one in its handshake.
		if p.home == ps.Members.Home() && has.Stamp() == p.home.Stamp() && p.marker == "" && len(cmds) == 0 {
			cmds = append(cmds, h.step(nodeset.RecordStep{Node: n.Index, Kind: nodeset.SetCommit,
				Identity: has.Identity, Config: has.Config}, run))
		}
		return cmds, false, nil
	// No error: recordings and exchanges need a connection to this node, which
	// itself refuses the requests of claims (rule 1).
	case nodeset.SetUnknown, nodeset.SetPending, nodeset.SetLost, nodeset.SetBetween, nodeset.SetAhead,
		nodeset.SetWrong:
		h.judgeAgain()
		return cmds, true, nil
	case nodeset.SetRetired:
		// A client without a quorum asks the nodes of its list, and this one may become
		// a member again. If the client has a quorum, the connection ends.
		if n.Seed() {
			h.judgeAgain()
			return cmds, true, nil
		}
	}
	return nil, true, ps.Members.VerdictError(v)
}

// step returns the command for one step of the node's record of its set.
func (h *handshake) step(s nodeset.RecordStep, run string) *flow.Request {
	n, ps := h.n, h.n.ps
	c := &flow.Request{Command: ps.Members.setStep(nil, s, run)}
	switch {
	case s.Kind == nodeset.SetLife:
		return h.keeps(c.Command, func(m *nodeset.Membership, has nodeset.NodeSet) { m.HandleLife(n.Index, has) })
	case s.Kind != nodeset.SetRestore:
	case s.Config.Members[s.Config.Member(s.Identity)].Role == nodeset.Enters:
		ps.Set.Logger.Info("quorate: node joins the set; it will vote after the guard time", "node", n.Addr)
	default:
		ps.Set.Logger.Info("quorate: node lost its data and rejoins the set; it will vote after the guard time",
			"node", n.Addr)
	}
	return c
}

// keeps returns a command whose answer is the node's record of its set. The
// answer goes to nodeset.Membership.
func (h *handshake) keeps(command []byte, then func(m *nodeset.Membership,
	has nodeset.NodeSet)) *flow.Request {
	n := h.n
	return &flow.Request{Command: command, Then: func(v []resp.Value, err error) {
		has, ok := nodeset.ParseNodeSet(flow.Text(v, 0))
		if err != nil || !ok {
			return
		}
		n.ps.Members.Change(-1, func(m *nodeset.Membership) {
			if n.serves(m) {
				then(m, has)
			}
		})
	}}
}

// serves reports whether n is still the node with its index, so that its record
// belongs to the member's address. Called with members.mu held.
func (n *Node) serves(m *nodeset.Membership) bool {
	return !n.Dropped.Load() && n.Addr == m.Addr(n.Index)
}

// judgeAgain schedules another judgement of a node without a vote.
// Invariant: there is only one pause at a time, whatever ends the connection.
func (h *handshake) judgeAgain() {
	n, ps := h.n, h.n.ps
	h.pause = nodeset.JudgePause(h.pause, ps.Set.NodeTimeout)
	h.later = time.AfterFunc(h.pause, func() {
		ps.Members.Change(-1, func(m *nodeset.Membership) { m.JudgeAgain(n.Index) })
	})
}

// logVerdict logs a node's verdict if it is new.
func (h *handshake) logVerdict(v nodeset.SetVerdict) {
	n, ps := h.n, h.n.ps
	s := ps.Members
	switch {
	// The node gets its place back once the members have answered.
	case v.Fault == nodeset.SetLost && v.Asks,
		// Every client that follows its set, or that connects to a blank member
		// before the other members, sees this verdict briefly. So only a second
		// one is logged.
		(v.Fault == nodeset.SetAhead || v.Fault == nodeset.SetLost || v.Fault == nodeset.SetBetween) &&
			h.pause == 0,
		// A node that joins is blank, and gets its place in a moment.
		v.Enters(),
		// A node that is not a member is not used; another line says so.
		v.Fault == nodeset.SetRetired:
		return
	}
	s.mu.Lock()
	was := s.logged[n.Index]
	s.logged[n.Index] = v.Fault
	s.mu.Unlock()
	switch v.Fault {
	case was, nodeset.SetFits, nodeset.SetUnknown, nodeset.SetPending:
		return
	}
	ps.Set.Logger.Warn("quorate: node has no vote", "node", n.Addr, "error", s.VerdictError(v))
}
