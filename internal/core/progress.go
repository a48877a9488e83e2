package core

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/repair"
	"github.com/quorate/quorate/internal/rule"
)

// A Repairing is what a client that repairs a node says there of how far it is.
type Repairing struct {
	Host string
	PID  int
	Left int // records that it has yet to bring; -1: it lists them still
}

// The turn to repair a node is a key there. Its value is the client's channel
// and how many records are left, so each client can tell how long it takes.

func turnOf(channel string, left int) string { return channel + " " + strconv.Itoa(left) }

// parseTurn reads what turnOf has written. ok is false if no client has the
// turn. A channel has no blank: Hostname replaces those, and Settings.Check
// refuses them in a prefix. What another program wrote there may show as
// process 0, and harms nothing: only Check reads it.
func parseTurn(value string) (r Repairing, ok bool) {
	channel, left, found := strings.Cut(value, " ")
	if !found {
		return r, false
	}
	r.Left = -1
	if n, err := strconv.Atoi(left); err == nil {
		r.Left = n
	}
	r.Host, r.PID, _ = ParseOwner(channel)
	return r, true
}

// String says how far the repair is.
func (r *Repairing) String() string {
	if r.Left < 0 {
		return fmt.Sprintf("process %d on %s lists what was recorded", r.PID, r.Host)
	}
	return fmt.Sprintf("process %d on %s has %d records left to bring", r.PID, r.Host, r.Left)
}

// lacks says why a node that votes is not caught up, as far as that is known,
// and what to do about it. Another client's repair comes first: while it is
// under way an operator only has to wait, whatever has failed here.
func (r *NodeReport) lacks() string {
	switch {
	case r.Repairing != nil:
		return r.Repairing.String() + "; wait"
	case r.repairErr != nil:
		return "the last try failed: " + r.repairErr.Error() + "; " + repairRemedy
	}
	return repairRemedy
}

// restartable reports whether one more node may be restarted of those that a
// group counts: see repair.MayRestart. A node without a report counts as one
// that does not vote: it was dropped, or made after the reports.
func restartable(nodes []NodeReport, g protocol.Group) bool {
	health := make([]repair.NodeHealth, g.Nodes)
	for i := range nodes {
		if n := &nodes[i]; n.Index < len(health) {
			health[n.Index] = repair.NodeHealth{Votes: n.Votes(), CaughtUp: n.CaughtUp}
		}
	}
	return repair.MayRestart(rule.Protocol(), health, g.Sets)
}

// Votes reports whether the node answers and votes. An empty role is unknown:
// the user may not ask INFO, and the handshake refuses a replica only where it
// can tell.
func (r *NodeReport) Votes() bool {
	return r.Err == nil && r.Recovering == 0 && (r.Role == "" || r.Role == "master")
}

// why returns why the last attempt to repair a node has failed; nil: it has
// not, or another client had the turn.
func (r *repairer) why(n *node) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed[n.index]
}

// outcome returns why an attempt has failed, nil if it has not, and keeps that
// for why. It runs in the goroutine of a step that only reports, before the
// logger is called.
func (r *repairer) outcome(s *repair.RepairStep) error {
	q, err := r.q, s.Err
	switch {
	case s.Kind == repair.RepairDone:
	case errors.Is(err, repair.ErrUndecided):
		err = errUndecided
	case err == nil:
		s.Nodes[s.Target] = errForgetful // it is not one of those that are asked
		f := &fault.Failure{Err: fault.ErrNoQuorum, Needed: q.Size() - 1}
		for i, why := range s.Nodes {
			if why != nil {
				f.Nodes = append(f.Nodes, fault.NodeFailure{Addr: q.addr(i), Err: fault.NamesAge(why)})
			}
		}
		err = f
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed[s.Target] = err
	return err
}
