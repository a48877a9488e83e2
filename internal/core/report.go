package core

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/flow"
	"github.com/quorate/quorate/internal/peers"
	"github.com/quorate/quorate/internal/report"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
)

// What an onlooker finds out about each node, and about all nodes together.

// Check asks every node about everything that affects safety, and makes it
// write as a lock does: see peers.Node.Writes. It calls report for one node
// at a time, with a lock held, until report returns that it has heard enough;
// then Check returns without waiting for the other nodes. It takes as long as
// the slowest node, but at most ten node timeouts. If the Quorum is closed,
// Check fails with ErrClosed and reports nothing.
func (o Onlooker) Check(ctx context.Context, report func(report.Node) (enough bool)) error {
	q := o.q
	if q.IsClosed() {
		return &fault.Failure{Err: fault.ErrClosed}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	over := false
	var all sync.WaitGroup
	q.Members.Settled(ctx)
	list := q.Nodes.Live()
	if q.Members.Config.Load() == nil {
		list = q.Seeds.Live()
	}
	for _, n := range list {
		all.Go(func() {
			r := o.checkNode(ctx, n)
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

// checkNode makes Check's report on one node. While the connection to the node
// is being replaced, it keeps asking for a moment.
func (o Onlooker) checkNode(ctx context.Context, n *peers.Node) report.Node {
	trying, stop := context.WithTimeout(ctx, 10*o.q.Set.NodeTimeout)
	n.Tried(trying)
	stop()
	// All questions together take at most ten times what the node needs for an
	// answer, which is known once it is connected.
	ctx, cancel := context.WithTimeout(ctx, 10*n.Timeout(&o.q.Set))
	defer cancel()
	// A client that learns the set from one node connects to the others again.
	lasts := time.After(o.q.Set.NodeTimeout)
	for {
		r := o.look(ctx, n)
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

// look asks a node once for everything that Check reports.
func (o Onlooker) look(ctx context.Context, n *peers.Node) report.Node {
	q := o.q
	r := report.Node{Index: n.Index, Addr: n.Addr}
	// Without this wait a short command would exit while its own repair of the
	// node is in progress (cmd/quorate: TestShortCommandRepairsANode).
	if !n.Seed() {
		q.repairs.await(ctx, n) // the repair began with the connection
	}
	// The set has become known in the meantime, and the connection is ending.
	if r.Err = n.Unfit(); r.Err == nil && n.Seed() {
		r.Err = fault.ErrRejudged
	}
	r.Membership = q.Members.Membership(n.Index)
	if r.Err != nil {
		return r
	}
	r.Server = n.Info().Addr
	at, err := o.lookAtClock(ctx, n, &r)
	if r.Err = err; err != nil {
		return r
	}
	// If the Redis user may not run a command, its field stays empty. If a node
	// does not answer, it counts as not asked.
	allowed := func(words ...string) []resp.Value {
		v, err := n.Do(ctx, words...)
		if _, refused := errors.AsType[resp.Error](err); !refused && r.Err == nil {
			r.Err = err
		}
		return v
	}
	r.Describe(flow.Text(allowed("INFO"), 0))
	if n.Slot != "" { // a cluster's master stops by itself when it is cut off
		r.Replicas = 0
	}
	if r.AOF {
		r.Fsync = flow.Text(allowed("CONFIG", "GET", "appendfsync"), 1)
	}
	o.lookAtMarker(n, &r, at, allowed)
	o.lookAtRetained(ctx, n, &r)
	// A recovering node refuses before it writes, and a replica refuses because
	// it is a replica, so neither shows whether the server can write.
	if r.Err == nil && !n.Seed() && r.Recovering == 0 && (r.Role == "" || r.Role == "master") {
		r.Refuses, r.Err = n.Writes.Try(ctx)
	}
	if r.Err != nil {
		return report.Node{Index: n.Index, Addr: n.Addr, Err: r.Err, Membership: r.Membership,
			Server: r.Server}
	}
	if jump := n.Jump.Load(); jump != nil {
		r.Jumped, r.JumpedAt = jump.By, jump.When
	}
	r.Warn(q.Skew())
	return r
}

// lookAtMarker fills in whether a node votes, and whether it has been repaired.
func (o Onlooker) lookAtMarker(
	n *peers.Node, r *report.Node, at time.Time, allowed func(words ...string) []resp.Value,
) {
	q := o.q
	m, ok := script.ParseMarker(flow.Text(allowed(script.ReadShort(q.Members.MarkerKey())...), 0))
	// The turn is a key on the node itself, so it shows a repair by any client.
	// If that client has died, the key expires with its turn.
	if !m.CaughtUp && r.Err == nil {
		if turn, ok := script.ParseTurn(flow.Text(allowed(script.ReadShort(q.repairs.turn())...), 0)); ok {
			r.Repairing = &turn
		}
		r.RepairErr = q.repairs.why(n)
	}
	if ok && r.Err == nil {
		// A node that was a replica a moment ago has its master's marker, which
		// wrongly says that the node votes.
		r.Err = q.Driver.CheckIncarnation(n.Index, m.Inc)
	}
	// Without a marker no client has connected to the node yet: its guard time
	// has not begun, so all of it is left.
	if r.Recovering = q.Guard(); ok {
		r.Recovering = m.Recovers(at)
	}
	r.CaughtUp = m.CaughtUp
}

// lookAtRetained estimates how many of a server's keys are the retained tickets
// of names that are not locked. It asks only a server with many keys, and looks
// at about a hundred of them. SCAN returns keys in the order of their hashes,
// so the first ones are a random sample. If the Redis user may not SCAN, there
// is no estimate. A server of a cluster has keys of many buckets and is not
// asked.
func (o Onlooker) lookAtRetained(ctx context.Context, n *peers.Node, r *report.Node) {
	if r.Err != nil || n.Slot != "" || !r.MayRetainMuch() {
		return
	}
	keys, err := n.Do(ctx, "SCAN", "0", "COUNT", "100")
	if err != nil || len(keys) < 2 {
		return
	}
	var retained atomic.Int32
	var all sync.WaitGroup
	for i := range keys[1:] {
		key := flow.Text(keys, 1+i)
		if !strings.HasPrefix(key, o.q.Set.Prefix+":{") || !strings.HasSuffix(key, "}") {
			continue // not the state of a name
		}
		all.Go(func() {
			if v, err := n.Do(ctx, script.ReadShort(key)...); err == nil &&
				script.IsReleased(flow.Text(v, 0)) {
				retained.Add(1)
			}
		})
	}
	all.Wait()
	r.EstimateRetained(int(retained.Load()), len(keys)-1)
}

// lookAtClock returns a node's time, and fills in its round trip and offset.
func (o Onlooker) lookAtClock(ctx context.Context, n *peers.Node, r *report.Node) (time.Time, error) {
	q := o.q
	before := q.Now()
	at, err := timeOf(ctx, n)
	r.RoundTrip = q.Now().Sub(before)
	if err != nil {
		return time.Time{}, err
	}
	// The node read its clock at some moment between our two readings. Assuming
	// the middle is wrong by at most half a round trip.
	r.Offset = at.Sub(q.Driver.NodesTime(before.Add(r.RoundTrip / 2)))
	return at, nil
}

// Age returns for how long a member has remembered what it did, by its own
// clock.
func (q *Quorum) Age(ctx context.Context, number int) (time.Duration, error) {
	n := q.Node(number)
	if n == nil {
		return 0, fault.ErrNoAnswer
	}
	n.Tried(ctx)
	ctx, cancel := context.WithTimeout(ctx, 2*n.Timeout(&q.Set))
	defer cancel()
	m, err := n.Marker(ctx, q.Members.MarkerKey())
	if err != nil {
		return 0, err
	}
	now, err := timeOf(ctx, n)
	return now.Sub(m.Born), err
}

// timeOf asks a node for its time.
func timeOf(ctx context.Context, n *peers.Node) (time.Time, error) {
	v, err := n.Do(ctx, "TIME")
	if err != nil {
		return time.Time{}, err
	}
	return script.DecodeTime(v)
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
	// Wait for all nodes, up to ten node timeouts: unlike a lock, a report is
	// useless without the nodes that fail.
	err := o.Check(ctx, func(n report.Node) bool {
		s.Nodes = append(s.Nodes, n)
		return false
	})
	slices.SortFunc(s.Nodes, func(a, b report.Node) int { return cmp.Compare(a.Index, b.Index) })
	if err != nil {
		return report.Survey{}, err
	}
	// The group is read after the reports. If the set has changed in between, a
	// node of the new set has no report and counts as not voting. So the answer
	// is "not yet" in that case, and never "yes" for an old set.
	s.Bare = bareHolds(&q.claims)
	s.MayRestart = report.Restartable(s.Nodes, q.Driver.Client.Group()) && len(s.Bare) == 0
	s.Set = q.Members.Config.Load()
	s.Ready = report.Ready(s.Nodes, s.Set)
	return s, nil
}

// survey asks all nodes of all buckets, and puts the reports together.
func (set *buckets) survey(ctx context.Context) (report.Survey, error) {
	if set.q.IsClosed() {
		return report.Survey{}, &fault.Failure{Err: fault.ErrClosed}
	}
	var all [script.Buckets]report.Survey
	if err := set.each(func(b int, bucket *Quorum) (err error) {
		all[b], err = bucket.Onlooker().Survey(ctx)
		return err
	}); err != nil {
		return report.Survey{}, err
	}
	list := set.q.Clients.List()
	return report.Merge(all[:], list, func(i int) bool { return setup.IsClusterClient(set.clients[i]) },
		set.q.Set.Skew), nil
}

// Queue returns the claims that a majority of the nodes may have, in the order
// of the highest ticket that a node shows for each, the holder's among them. A
// node that has not answered, or that may have forgotten claims, counts as having
// every claim. Queue waits for a majority only. Nodes report only the first
// hundred claims.
func (o Onlooker) Queue(ctx context.Context, name string) ([]script.Claim, error) {
	if err := o.q.Members.Await(ctx, true); err != nil {
		return nil, err
	}
	answers, sets := o.ask(ctx, true, func(dst []byte, _ *NodeAnswer, keys func(string) script.Keys) []byte {
		return script.AppendInspect(dst, keys(name), 100, 0)
	})
	found, at, silent, answered := map[string]script.Claim{}, map[string]uint32{}, sets.All(), uint32(0)
	f := &fault.Failure{Err: fault.ErrNoQuorum, Needed: sets.Need()}
	for _, n := range answers {
		queue, err := script.DecodeInspect(n.Values)
		if err = cmp.Or(n.Err, err); err != nil {
			f.Nodes = append(f.Nodes, fault.NodeFailure{Addr: n.Addr, Err: err})
			continue
		}
		answered |= 1 << n.Index
		if queue.Memory >= o.q.Guard() { // otherwise it may have forgotten claims
			silent &^= 1 << n.Index
		}
		for _, c := range queue.Claims {
			at[c.ID] |= 1 << n.Index
			if c.Ticket > found[c.ID].Ticket {
				found[c.ID] = c
			}
		}
	}
	if f.Votes = bits.OnesCount32(answered & sets.All()); !sets.Met(answered) {
		return nil, f
	}
	maps.DeleteFunc(found, func(id string, _ script.Claim) bool { return !sets.Met(at[id] | silent) })
	return slices.SortedFunc(maps.Values(found),
		func(a, b script.Claim) int { return cmp.Compare(a.Ticket, b.Ticket) }), nil
}
