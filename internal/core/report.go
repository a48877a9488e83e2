package core

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/flow"
	"github.com/quorate/quorate/internal/report"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// This file owns what an onlooker finds out about one node, and about all.

// Check asks every node for what affects safety. It begins no claim and changes
// nothing on a node. report gets one report at a time, with a lock of Check
// held, until it says that it has heard enough; no node is waited for then. The
// whole takes as long as the slowest node, ten node timeouts at most. Check
// fails with ErrClosed, and reports nothing, when the Quorum is closed.
func (o Onlooker) Check(ctx context.Context, report func(report.Node) (enough bool)) error {
	q := o.q
	if q.isClosed() {
		return &fault.Failure{Err: fault.ErrClosed}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	over := false
	var all sync.WaitGroup
	q.members.settled(ctx)
	list := q.nodes.live()
	if q.members.config.Load() == nil {
		list = q.seeds.live()
	}
	for _, n := range list {
		all.Go(func() {
			r := n.checkNode(ctx)
			r.Err = fault.NamesAge(r.Err)
			mu.Lock()
			defer mu.Unlock()
			if !over && report(r) {
				over = true
				cancel()
			}
		})
	}
	all.Wait()
	return nil
}

func (n *node) checkNode(ctx context.Context) report.Node {
	// Ten node timeouts bound all of its questions together.
	ctx, cancel := context.WithTimeout(ctx, 10*n.q.set.NodeTimeout)
	defer cancel()
	n.tried(ctx)
	// A client that learns the set from one node connects to others again.
	lasts := time.After(n.q.set.NodeTimeout)
	for {
		r := n.look(ctx)
		if !errors.Is(r.Err, fault.ErrRejudged) && !errors.Is(r.Err, fault.ErrOtherSet) {
			return r
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-lasts:
			return r
		case <-ctx.Done():
			return r
		}
	}
}

// look asks a node once what Check tells of it.
func (n *node) look(ctx context.Context) report.Node {
	q := n.q
	r := report.Node{Index: n.index, Addr: n.addr}
	// Without this wait a short command would end while its own repair of the
	// node is under way (cmd/quorate: TestShortCommandRepairsANode).
	if !n.seed() {
		n.awaitRepair(ctx) // which began with the connection
	}
	if r.Err = n.unfit(); r.Err == nil && n.seed() { // the set has become known meanwhile, and the connection ends
		r.Err = fault.ErrRejudged
	}
	r.Standing = q.members.standing(n.index)
	if r.Err != nil {
		return r
	}
	r.Server = n.Info().Addr
	at, err := n.lookAtClock(ctx, &r)
	if r.Err = err; err != nil {
		return r
	}
	// What a user may not ask stays empty. A node that does not answer counts
	// as not asked.
	allowed := func(words ...string) []resp.Value {
		v, err := n.Do(ctx, words...)
		if _, refused := errors.AsType[resp.Error](err); !refused && r.Err == nil {
			r.Err = err
		}
		return v
	}
	r.Describe(flow.Text(allowed("INFO"), 0))
	if n.slot != "" { // a master of a cluster stops when it is cut off
		r.Replicas = 0
	}
	if r.AOF {
		r.Fsync = flow.Text(allowed("CONFIG", "GET", "appendfsync"), 1)
	}
	n.lookAtMarker(&r, at, allowed)
	if r.Err != nil {
		return report.Node{Index: n.index, Addr: n.addr, Err: r.Err, Standing: r.Standing, Server: r.Server}
	}
	r.Jumped, r.JumpedAt = n.jump.last()
	r.Warn(q.set.Skew)
	return r
}

// lookAtMarker notes whether a node votes, and whether it has been repaired.
func (n *node) lookAtMarker(r *report.Node, at time.Time, allowed func(words ...string) []resp.Value) {
	q := n.q
	m, ok := script.ParseMarker(flow.Text(allowed(script.ReadShort(q.members.markerKey())...), 0))
	// The turn is a key at the node itself, so it tells of the repair by any
	// client, also one that has died: the key ends with the turn.
	if !m.CaughtUp && r.Err == nil {
		if turn, ok := script.ParseTurn(flow.Text(allowed(script.ReadShort(q.repairs.turn())...), 0)); ok {
			r.Repairing = &turn
		}
		r.RepairErr = q.repairs.why(n)
	}
	if ok && r.Err == nil {
		// A node that was a replica a moment ago has its master's marker, which
		// says that the node votes.
		r.Err = q.driver.checkIncarnation(n.index, m.Inc)
	}
	// Without a marker no client has met the node: its guard time has not
	// begun, and takes the whole of it once it has.
	if r.Recovering = q.guard(); ok {
		r.Recovering = m.Recovers(at)
	}
	r.CaughtUp = m.CaughtUp
}

// lookAtClock returns a node's time, and notes its round trip and offset.
func (n *node) lookAtClock(ctx context.Context, r *report.Node) (time.Time, error) {
	before := n.q.now()
	v, err := n.Do(ctx, "TIME")
	r.RoundTrip = n.q.now().Sub(before)
	if err != nil {
		return time.Time{}, err
	}
	millis, err := script.DecodeTime(v)
	if err != nil {
		return time.Time{}, err
	}
	// The node took its time somewhere between the two looks at the clock. The
	// middle is wrong by half a round trip at most.
	at := time.UnixMilli(millis)
	r.Offset = at.Sub(n.q.driver.nodesTime(before.Add(r.RoundTrip / 2)))
	return at, nil
}

// Survey asks all nodes, see Check. It fails only if the Quorum is closed, or,
// with buckets, if one of them cannot begin: a node that does not answer is a
// report with an error.
func (o Onlooker) Survey(ctx context.Context) (report.Survey, error) {
	q := o.q
	if q.buckets != nil {
		return q.buckets.survey(ctx)
	}
	var s report.Survey
	// All nodes are waited for, up to ten node timeouts: unlike a lock, a
	// report is of use only with the nodes that fail.
	err := o.Check(ctx, func(n report.Node) bool {
		s.Nodes = append(s.Nodes, n)
		return false
	})
	slices.SortFunc(s.Nodes, func(a, b report.Node) int { return cmp.Compare(a.Index, b.Index) })
	if err != nil {
		return report.Survey{}, err
	}
	for i := range s.Nodes {
		if s.Nodes[i].Votes() {
			s.Ready++
		}
	}
	// The group is read after the reports. If the set has changed meanwhile, a
	// node of the new one has no report, and counts as one that does not vote:
	// the answer is then "not yet", and never a "yes" for a set of before.
	s.MayRestart = report.Restartable(s.Nodes, q.driver.client.Group())
	s.Set = q.members.config.Load()
	return s, nil
}
