package report

// Survey, the result of Check for all nodes, and how the surveys of several
// buckets are merged.

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/repair"
)

// Survey is the result of Check for all nodes: one client's view at one moment.
// An operator who restarts a node because of MayRestart must check again before
// the next restart.
type Survey struct {
	Nodes      []Node // in the order of the list
	Ready      int    // see Ready, of the bucket with the fewest
	MayRestart bool
	Bare       []BareHold             // of this process
	Set        *nodeset.Configuration // the set this client uses; nil if unknown
}

// BareHold is a hold that will be lost if one more of Nodes fails.
type BareHold struct {
	Name  string
	Token uint64
	Nodes []string
}

// Unrecorded reports whether some nodes answer and none of them has recorded a
// set. Only then may a message suggest Bootstrap. If a node shows a set,
// members that do not answer may have granted leases.
func (s *Survey) Unrecorded() bool {
	answers := false
	for i := range s.Nodes {
		switch n := &s.Nodes[i]; {
		case n.Membership != "":
			answers = true // blank, or its recording has not ended
		case fault.IsVerdict(n.Err):
			return false // it shows a set
		}
	}
	return answers
}

// Ready returns how many of the nodes count toward a quorum of the set, or, if
// no set is known, how many of them vote. A node that enters the set may answer
// like the others, but it has no vote yet.
func Ready(nodes []Node, set *nodeset.Configuration) (ready int) {
	voting := uint32(0)
	for i := range nodes {
		if n := &nodes[i]; n.Votes() {
			voting |= 1 << n.Index
			ready++
		}
	}
	if set != nil {
		return set.Quorums().Count(voting)
	}
	return ready
}

// Restartable reports whether it is safe to restart one more node of the group:
// see repair.MayRestart. A node without a report counts as not voting: it was
// dropped, or it was added after the reports were made.
func Restartable(nodes []Node, g protocol.Group) bool {
	health := make([]repair.NodeHealth, g.Nodes)
	for i := range nodes {
		if n := &nodes[i]; n.Index < len(health) {
			health[n.Index] = repair.NodeHealth{Votes: n.Votes(), CaughtUp: n.CaughtUp}
		}
	}
	return repair.MayRestart(health, g.Sets)
}

// Merge combines the surveys of all buckets for the addresses in list. cluster
// reports whether node i is a cluster. skew is used if no set is known.
func Merge(all []Survey, list []string, cluster func(i int) bool, skew time.Duration) Survey {
	// Each bucket is a set of its own and each name is in one bucket. So the
	// whole is only as ready, and only as safe to restart, as its worst bucket.
	s := Survey{Nodes: make([]Node, len(list)), Ready: all[0].Ready, MayRestart: true}
	odd := -1 // the bucket whose set is shown; each bucket records its own
	for b := range all {
		s.Ready = min(s.Ready, all[b].Ready)
		s.MayRestart = s.MayRestart && all[b].MayRestart
		s.Bare = append(s.Bare, all[b].Bare...)
		answers := slices.ContainsFunc(all[b].Nodes, func(n Node) bool { return n.Err == nil })
		if answers && (odd < 0 || all[odd].Set != nil && all[b].Set == nil) {
			odd = b
		}
	}
	// Show one bucket's set for all. If some buckets have not recorded their
	// set, show one of those: Bootstrap was interrupted and must be run again.
	if s.Set = all[max(odd, 0)].Set; s.Set != nil {
		skew = s.Set.Skew()
	}
	for i, addr := range list {
		s.Nodes[i] = merge(len(all), func(b int) *Node {
			for k := range all[b].Nodes {
				if all[b].Nodes[k].Addr == addr {
					return &all[b].Nodes[k]
				}
			}
			return &Node{Addr: addr, Err: fault.ErrSetRetired}
		}, addr, cluster(i), skew)
	}
	return s
}

// merge combines the reports of all buckets about one node: one entry for each
// server, and a total that is as bad as the worst of them.
func merge(buckets int, of func(b int) *Node, addr string, cluster bool, skew time.Duration) Node {
	var shards []Node
	// Buckets on the same server that fail with the same error share an entry.
	place := map[string]int{}
	for b := range buckets {
		r := *of(b)
		at := r.Server
		if r.Err != nil {
			at += " " + r.Err.Error()
		}
		k, known := place[at]
		if !known {
			k = len(shards)
			place[at] = k
			r.Addr = at
			shards = append(shards, r)
		}
		shards[k].Buckets = append(shards[k].Buckets, b)
		shards[k].worsen(&r)
	}
	// Warnings are computed once for each server, from its worst bucket.
	whole := shards[0]
	whole.Buckets = nil
	for k := range shards {
		s := &shards[k]
		s.Addr = s.Server
		if s.Err == nil {
			s.Warn(skew)
		}
		whole.worsen(s)
	}
	whole.Addr, whole.Warnings = addr, shards[0].Warnings
	// A plain server that is listed alongside a cluster has buckets but no shards.
	if len(shards) == 1 && !cluster {
		return whole
	}
	whole.Shards, whole.Warnings = shards, nil
	for _, s := range shards {
		if s.Err != nil && whole.Err == s.Err {
			whole.Err = fmt.Errorf("%s: %w", s.shard(), s.Err)
		}
		for _, w := range s.Warnings {
			whole.Warnings = append(whole.Warnings, s.shard()+": "+w)
		}
	}
	return whole
}

// shard returns how warnings refer to one server of a cluster.
func (r *Node) shard() string {
	of := "bucket " + strconv.Itoa(r.Buckets[0])
	if n := len(r.Buckets); n > 1 {
		of = fmt.Sprintf("%d buckets", n)
	}
	if r.Server == "" {
		return of
	}
	return r.Server + " (" + of + ")"
}

// worsen makes r as bad as o where o is worse. merge calls it to combine the
// reports of several buckets about one node. A reader acts on the worst value
// of each field, so the result may match no single bucket: r may get the round
// trip of one bucket and the error of another.
//
// Only the fields below are compared. All others stay r's: they describe the
// server or the node (Version, Role, Fsync, Eviction, Membership, Replicas,
// Keys, Memory, Retained), or merge sets them itself (Addr, Buckets, Shards,
// Warnings).
func (r *Node) worsen(o *Node) {
	if r.Err == nil {
		r.Err = o.Err
	}
	r.RoundTrip, r.Recovering = max(r.RoundTrip, o.RoundTrip), max(r.Recovering, o.Recovering)
	if o.Offset.Abs() > r.Offset.Abs() {
		r.Offset = o.Offset
	}
	r.AOF, r.CaughtUp = r.AOF && o.AOF, r.CaughtUp && o.CaughtUp
	if r.Repairing == nil {
		r.Repairing = o.Repairing
	}
	if r.Refuses == nil {
		r.Refuses = o.Refuses
	}
	if r.RepairErr == nil {
		r.RepairErr = o.RepairErr
	}
	if o.JumpedAt.After(r.JumpedAt) {
		r.Jumped, r.JumpedAt = o.Jumped, o.JumpedAt
	}
}
