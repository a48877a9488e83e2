package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
)

// This file owns whether a majority of the nodes can be asked, and what an
// onlooker finds out about one node.

// Ready waits until a majority of the nodes is connected. It gives up when the
// context ends, or when so many have failed for good that this cannot be. With
// buckets the first one must have a majority: a bucket begins with its first
// name.
func (q *Quorum) Ready(ctx context.Context) error {
	if q.buckets != nil {
		return q.buckets.all[0].Load().Ready(ctx)
	}
	return q.readyWith(ctx, &q.set)
}

// readyWith is Ready for claims with these settings.
func (q *Quorum) readyWith(ctx context.Context, set *setup.Settings) error {
	// Nothing says when a majority is connected, so this looks each 2 ms.
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := q.members.outOfSet(set); err != nil {
			return &fault.Failure{Err: err}
		}
		err, hopeless := q.reached()
		if err == nil || q.members.blank() {
			return nil
		}
		if hopeless {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err.Cut(ctx)
		case <-q.closing:
			return &fault.Failure{Err: fault.ErrClosed}
		}
	}
}

// reached returns nil if a quorum of the set's members is connected, else what
// each node says, and whether no waiting helps: so many refuse for good. While
// no set is known the nodes are those of the list. A majority is enough, even
// where another node is refused for good: that node's error is in Check.
func (q *Quorum) reached() (f *fault.Failure, hopeless bool) {
	// sets is read before the list: a node is made before claims count on it.
	sets, list := q.driver.sets(), q.nodes.all()
	if !q.members.usable() {
		list = q.seeds.live()
		sets = protocol.Majority(len(list))
	}
	f, met, hopeless := tally(list, sets, (*node).unfit)
	if met {
		return nil, false
	}
	return f, hopeless
}

// tally is what the nodes have against their votes, each by err, whether the
// others are a quorum, and whether so many refuse for good that they cannot be.
func tally(list []*node, sets protocol.Quorums, err func(n *node) error) (f *fault.Failure, met, hopeless bool) {
	good, refused := uint32(0), uint32(0)
	f = &fault.Failure{Err: fault.ErrNoQuorum, Needed: sets.Need()}
	for i, n := range list {
		if n.dropped.Load() {
			continue
		}
		err := err(n)
		if err == nil {
			good |= 1 << i
			continue
		}
		if fault.ForGood(err) {
			refused |= 1 << i
		}
		f.Nodes = append(f.Nodes, fault.NodeFailure{Addr: n.addr, Err: fault.NamesAge(err)})
	}
	f.Votes = bits.OnesCount32(good & sets.All())
	return f, sets.Met(good), refused != 0 && sets.Blocked(refused)
}

// unfit is why a node is not connected, or has no vote in the set; nil: it has.
func (n *node) unfit() error { return cmp.Or(n.err(), n.q.members.unfit(n.index)) }

// tried waits for the first attempt to connect, which may still be under way.
// Without it a process that has just begun would report each node as down. It
// returns at once ever after, also while the node is down: that is an answer.
func (n *node) tried(ctx context.Context) {
	select {
	case <-n.ready:
	case <-ctx.Done():
	}
}

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
