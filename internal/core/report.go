package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/repair"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/rule"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
)

// This file owns what an onlooker finds out about one node, and about all.

// NodeReport is what Check finds out about one node.
// What is unknown has its zero value.
type NodeReport struct {
	Index      int
	Addr       string
	Err        error
	Version    string
	Role       string
	AOF        bool
	Fsync      string
	Eviction   string
	Offset     time.Duration
	RoundTrip  time.Duration
	Recovering time.Duration
	CaughtUp   bool
	Repairing  *Repairing // what the client says that repairs it; nil: none does now
	Jumped     time.Duration
	JumpedAt   time.Time
	Warnings   []string
	Standing   string       // how it stands to the set; empty: unknown
	Server     string       // that the connection goes to
	Buckets    []int        // of a shard: the buckets that it has
	Shards     []NodeReport // of a cluster: its servers that have buckets; the rest is the worst of them

	replicas  int   // that may take its place while it goes on
	repairErr error // why this client could not repair it
}

// Check asks every node for what affects safety. It begins no claim and changes
// nothing on a node. report gets one report at a time, with a lock of Check
// held, until it says that it has heard enough; no node is waited for then. The
// whole takes as long as the slowest node, ten node timeouts at most. Check
// fails with ErrClosed, and reports nothing, when the Quorum is closed.
func (o Onlooker) Check(ctx context.Context, report func(NodeReport) (enough bool)) error {
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

func (n *node) checkNode(ctx context.Context) NodeReport {
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
func (n *node) look(ctx context.Context) NodeReport {
	q := n.q
	r := NodeReport{Index: n.index, Addr: n.addr}
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
	r.Server = n.info().Addr
	at, err := n.lookAtClock(ctx, &r)
	if r.Err = err; err != nil {
		return r
	}
	// What a user may not ask stays empty. A node that does not answer counts
	// as not asked.
	allowed := func(words ...string) []resp.Value {
		v, err := n.do(ctx, words...)
		if _, refused := errors.AsType[resp.Error](err); !refused && r.Err == nil {
			r.Err = err
		}
		return v
	}
	r.describe(text(allowed("INFO"), 0))
	if n.slot != "" { // a master of a cluster stops when it is cut off
		r.replicas = 0
	}
	if r.AOF {
		r.Fsync = text(allowed("CONFIG", "GET", "appendfsync"), 1)
	}
	n.lookAtMarker(&r, at, allowed)
	if r.Err != nil {
		return NodeReport{Index: n.index, Addr: n.addr, Err: r.Err, Standing: r.Standing, Server: r.Server}
	}
	r.Jumped, r.JumpedAt = n.jump.last()
	r.Warnings = warnings(&r, &q.set)
	return r
}

// lookAtMarker notes whether a node votes, and whether it has been repaired.
func (n *node) lookAtMarker(r *NodeReport, at time.Time, allowed func(words ...string) []resp.Value) {
	q := n.q
	m, ok := parseMarker(text(allowed(script.ReadShort(q.members.markerKey())...), 0))
	// The turn is a key at the node itself, so it tells of the repair by any
	// client, also one that has died: the key ends with the turn.
	if !m.caughtUp && r.Err == nil {
		if turn, ok := parseTurn(text(allowed(script.ReadShort(q.repairs.turn())...), 0)); ok {
			r.Repairing = &turn
		}
		r.repairErr = q.repairs.why(n)
	}
	if ok && r.Err == nil {
		// A node that was a replica a moment ago has its master's marker, which
		// says that the node votes.
		r.Err = q.driver.checkIncarnation(n.index, m.inc)
	}
	// Without a marker no client has met the node: its guard time has not
	// begun, and takes the whole of it once it has.
	if r.Recovering = q.guard(); ok {
		r.Recovering = m.recovers(at)
	}
	r.CaughtUp = m.caughtUp
}

// lookAtClock returns a node's time, and notes its round trip and offset.
func (n *node) lookAtClock(ctx context.Context, r *NodeReport) (time.Time, error) {
	before := n.q.now()
	v, err := n.do(ctx, "TIME")
	r.RoundTrip = n.q.now().Sub(before)
	if err != nil {
		return time.Time{}, err
	}
	millis, err := decodeTime(v)
	if err != nil {
		return time.Time{}, err
	}
	// The node took its time somewhere between the two looks at the clock. The
	// middle is wrong by half a round trip at most.
	at := time.UnixMilli(millis)
	r.Offset = at.Sub(n.q.driver.nodesTime(before.Add(r.RoundTrip / 2)))
	return at, nil
}

// describe takes over what INFO says of the server. replicas counts those of a
// master that goes on when it is cut off from them: see warnings.
func (r *NodeReport) describe(info string) {
	fields := InfoFields(info)
	r.Version, r.Role, r.Eviction = fields["redis_version"], fields["role"], fields["maxmemory_policy"]
	r.AOF = fields["aof_enabled"] == "1"
	// INFO has the second field where min-replicas-to-write is set.
	if _, stops := fields["min_slaves_good_slaves"]; !stops {
		r.replicas, _ = strconv.Atoi(fields["connected_slaves"])
	}
}

// InfoFields returns the lines of an INFO.
func InfoFields(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[key] = value
		}
	}
	return fields
}

// An empty maxmemory-policy is unknown.
func evicts(policy string) bool { return policy != "" && policy != "noeviction" }

// Each of the warnings says what is wrong, what follows from it and what to do.
func warnings(r *NodeReport, set *setup.Settings) []string {
	var w []string
	if r.Role != "" && r.Role != "master" {
		w = append(w, "it is a "+r.Role+", not a master: it cannot be written to, and its votes would be its master's")
	}
	if evicts(r.Eviction) {
		w = append(w, "maxmemory-policy "+r.Eviction+" may throw away leases; set noeviction")
	}
	if r.replicas > 0 {
		w = append(w, fmt.Sprintf("it has %d replicas and no min-replicas-to-write: if one takes its place while it is cut off, both vote for a while; "+
			"set min-replicas-to-write %[1]d and min-replicas-max-lag 10 there and at the replicas", r.replicas))
	}
	if r.Offset.Abs() > set.Skew {
		w = append(w, fmt.Sprintf("its clock differs from the median of the nodes' clocks by %v, more than the skew of %v", r.Offset.Round(time.Millisecond), set.Skew))
	}
	if r.Jumped != 0 {
		w = append(w, fmt.Sprintf("its clock jumped by %+v at %s; let it be slewed, not set", r.Jumped.Round(time.Millisecond), r.JumpedAt.Format(time.TimeOnly)))
	}
	if r.Recovering > 0 {
		w = append(w, fmt.Sprintf("it is new or lost its data, and votes in %v", r.Recovering.Round(time.Millisecond)))
	}
	if !r.CaughtUp && r.Recovering == 0 {
		w = append(w, "it is new or lost its data and has not been repaired by the other nodes yet, so it cannot attest that something was not recorded; "+r.lacks())
	}
	return w
}

// Survey is what Check finds out about all nodes. It is a view of one client at
// one moment. An operator that restarts a node by MayRestart asks again before
// the next one.
type Survey struct {
	Nodes      []NodeReport // in the order of the list
	Ready      int          // nodes that answer and vote; of the bucket where these are fewest
	MayRestart bool
	Set        *nodeset.Configuration // that this client counts on; nil: none is known
}

// Survey asks all nodes, see Check. It fails only if the Quorum is closed, or,
// with buckets, if one of them cannot begin: a node that does not answer is a
// report with an error.
func (o Onlooker) Survey(ctx context.Context) (Survey, error) {
	q := o.q
	if q.buckets != nil {
		return q.buckets.survey(ctx)
	}
	var s Survey
	// All nodes are waited for, up to ten node timeouts: unlike a lock, a
	// report is of use only with the nodes that fail.
	err := o.Check(ctx, func(n NodeReport) bool {
		s.Nodes = append(s.Nodes, n)
		return false
	})
	slices.SortFunc(s.Nodes, func(a, b NodeReport) int { return cmp.Compare(a.Index, b.Index) })
	if err != nil {
		return Survey{}, err
	}
	for i := range s.Nodes {
		if s.Nodes[i].Votes() {
			s.Ready++
		}
	}
	// The group is read after the reports. If the set has changed meanwhile, a
	// node of the new one has no report, and counts as one that does not vote:
	// the answer is then "not yet", and never a "yes" for a set of before.
	s.MayRestart = restartable(s.Nodes, q.driver.client.Group())
	s.Set = q.members.config.Load()
	return s, nil
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
