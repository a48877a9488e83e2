package core

// This file owns what the beginning of a connection does about the set: it
// shows protocol.Membership what the node has recorded, and says to the node
// what that answers.
//
// Invariant: a node gets no request of a claim before its record has been
// judged. Without that order a node of another set gives a vote, and two lists
// of nodes let two holders in.

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/transport"
)

// meet finds out of which set a node is that a connection has just reached. It
// runs in hello, on the goroutine that makes the connection. If done, there is
// nothing more to say to the node than what is returned: it is not marked, so
// no guard time begins there by this client.
func (n *node) meet(run string) (cmds []transport.Command, done bool, err error) {
	q := n.q
	p := &n.probed
	// A record that makes no sense is no reason to take the node for one
	// without a set. It would then serve clients of any list.
	has, ok := protocol.ParseNodeSet(p.set)
	if layout := protocol.LayoutOf(p.set); !ok && layout > 0 && layout != protocol.Layout {
		return nil, true, fmt.Errorf("its set was recorded by another version of this library, with version %d of the keys, and this program has version %d: "+
			"run the same version in all clients", layout, protocol.Layout)
	}
	if !ok {
		return nil, true, fmt.Errorf("its record of the set of nodes makes no sense; the key is %q", script.SetKey(q.set.Prefix))
	}
	// This connection judges the node. The timer would end it for the same
	// reason.
	if n.later != nil {
		n.later.Stop()
	}
	var v protocol.SetVerdict
	// A dropped node may be in its handshake still. Its index stands for
	// another node by then: Membership would take what the old server keeps for
	// the new one's.
	left := false // under members.mu: another node may have the index from then on
	for _, s := range q.members.change(n.index, func(m *protocol.Membership) {
		if left = n.dropped.Load(); !left {
			v = m.Met(n.index, run, has)
		}
	}) {
		c := &adminRequest{command: q.members.setStep(nil, n, s)}
		if s.Kind == protocol.SetLife {
			c = n.keeps(c.command, func(m *protocol.Membership, has protocol.NodeSet) { m.Kept(n.index, has) })
		}
		if s.Kind == protocol.SetRestore && s.Config.Members[s.Config.Member(s.Identity)].Role == protocol.Enters {
			q.set.Logger.Info("quorate: a node enters the set; it votes after the guard time", "node", n.addr)
		} else if s.Kind == protocol.SetRestore {
			q.set.Logger.Info("quorate: a node lost its data and is given back its place in the set; it votes after the guard time", "node", n.addr)
		}
		cmds = append(cmds, c)
	}
	if left {
		return nil, true, errRejudged
	}
	n.logVerdict(v)
	switch v.Fault {
	case protocol.SetFits:
		n.pause = 0
		// Invariant: a node of the set has a marker, or makes one in its
		// handshake. Without one it would refuse each request as a node of
		// another set, and be connected to again without end.
		if has.Stamp() == q.members.home().Stamp() && has.Config != nil && p.home == q.members.home() && p.marker == "" && len(cmds) == 0 {
			// The marker is gone, and nothing else: an operator has removed it.
			cmds = append(cmds, &adminRequest{command: q.members.setStep(nil, n, protocol.RecordStep{Node: n.index, Kind: protocol.SetCommit, Identity: has.Identity, Config: has.Config})})
		}
		return cmds, false, nil
	// No error: a connection that failed would be made again and again, and
	// Bootstrap, regain and exchanges need one to this node. The node itself
	// refuses the requests of claims (rule 1).
	case protocol.SetPending, protocol.SetLost: // the connection serves Bootstrap alone
		n.judgeAgain()
		return cmds, true, nil
	}
	return nil, true, q.members.verdictError(v)
}

// judgeAgain has a node without a vote be judged again after a pause. A
// recording is over in a few round trips, so the pause is short at first; one
// that was interrupted stays until an operator ends it. A node that enters a
// set has to wait until a majority of the others shows that it is to enter.
//
// Invariant: one pause at a time, whatever ends the connection meanwhile.
func (n *node) judgeAgain() {
	q := n.q
	longest := 5 * q.set.NodeTimeout
	if n.pause = min(2*n.pause, longest); n.pause == 0 {
		n.pause = q.set.NodeTimeout / 4
	}
	n.later = time.AfterFunc(n.pause, func() {
		q.members.change(-1, func(m *protocol.Membership) { m.Again(n.index) })
	})
}

// logVerdict logs what is new about a node. A node whose verdict stays is
// connected to again and again, by judgeAgain and by the link, and one line
// about it is enough.
func (n *node) logVerdict(v protocol.SetVerdict) {
	q := n.q
	s := q.members
	// The node gets its place back once the members have answered. If they do
	// not, their connections end, and the next verdict is logged.
	if v.Fault == protocol.SetLost && v.Asks {
		return
	}
	s.mu.Lock()
	was := s.logged[n.index]
	s.logged[n.index] = v.Fault
	s.mu.Unlock()
	if v.Fault == was || v.Fault == protocol.SetFits || v.Fault == protocol.SetLost && v.Set.Entering(n.addr) {
		return // a node that enters is empty, and gets its place in a moment
	}
	q.set.Logger.Warn("quorate: a node of the list has no vote", "node", n.addr, "error", s.verdictError(v))
}

// roundsToConnect is how many answers a connection may take: the pause before
// it, the dial, the login, the probe and the mark.
const roundsToConnect = 5

// judged waits until the nodes have been judged that the set does not name as
// this client's list does: they may be of another list. It waits for the time
// of one connection at most. A shorter wait lets Connect accept a wrong list
// whose odd node is far away or busy. It returns what outOfSet does then.
func (s *members) judged(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, roundsToConnect*s.q.driver.furthest(&s.q.set))
	defer cancel()
	// It looks each 2 ms, as Ready does: verdicts come on the readers of all
	// nodes, and Connect waits here once.
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		c, waits := s.config.Load(), false
		for _, n := range s.q.nodes.live() {
			// A node that the set names as the list does is not waited for. If
			// it shows another set when it is reached, the calls of then are
			// refused.
			if c != nil && c.Place(n.addr) < 0 {
				n.tried(ctx)
				s.mu.Lock()
				waits = waits || !s.known.Judged(n.index)
				s.mu.Unlock()
			}
		}
		if err := s.outOfSet(&s.q.set); err != nil || !waits {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
