package report

// This file owns what Check finds out about all nodes, and how the surveys of
// buckets become one.

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

// Survey is what Check finds out about all nodes. It is a view of one client at
// one moment. An operator that restarts a node by MayRestart asks again before
// the next one.
type Survey struct {
	Nodes      []Node // in the order of the list
	Ready      int    // nodes that answer and vote; of the bucket where these are fewest
	MayRestart bool
	Bare       []BareHold             // of this process
	Set        *nodeset.Configuration // that this client counts on; nil: none is known
}

// BareHold is a hold that is lost when one more node is: one of Nodes.
type BareHold struct {
	Name  string
	Token uint64
	Nodes []string
}

// Unrecorded reports whether nodes answer, and none of them has recorded a set.
// Only then may a text name Bootstrap to an operator. Where a node shows a set,
// its members that do not answer may have given leases.
func (s *Survey) Unrecorded() bool {
	answers := false
	for i := range s.Nodes {
		switch n := &s.Nodes[i]; {
		case n.Standing != "":
			answers = true // blank, or its recording has not ended
		case fault.IsVerdict(n.Err):
			return false // it shows a set
		}
	}
	return answers
}

// Restartable reports whether one more node may be restarted of those that a
// group counts: see repair.MayRestart. A node without a report counts as one
// that does not vote: it was dropped, or made after the reports.
func Restartable(nodes []Node, g protocol.Group) bool {
	health := make([]repair.NodeHealth, g.Nodes)
	for i := range nodes {
		if n := &nodes[i]; n.Index < len(health) {
			health[n.Index] = repair.NodeHealth{Votes: n.Votes(), CaughtUp: n.CaughtUp}
		}
	}
	return repair.MayRestart(health, g.Sets)
}

// Merge puts the surveys of all buckets together, for the addresses of a list.
// cluster says of which of them a cluster is the node. skew goes where no set
// is known.
func Merge(all []Survey, list []string, cluster func(i int) bool, skew time.Duration) Survey {
	// Each bucket is a set of its own, and a name is in one of them. So the
	// whole is ready, and bears a restart, as far as its worst bucket does.
	s := Survey{Nodes: make([]Node, len(list)), Ready: all[0].Ready, MayRestart: true}
	odd := -1 // the bucket whose set is shown: each records its own
	for b := range all {
		s.Ready = min(s.Ready, all[b].Ready)
		s.MayRestart = s.MayRestart && all[b].MayRestart
		s.Bare = append(s.Bare, all[b].Bare...)
		answers := slices.ContainsFunc(all[b].Nodes, func(n Node) bool { return n.Err == nil })
		if answers && (odd < 0 || all[odd].Set != nil && all[b].Set == nil) {
			odd = b
		}
	}
	// One bucket stands for all. If some have recorded their set and others
	// have not, it is one that has not: Bootstrap was cut short, and an
	// operator has to call it again.
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

// merge puts the reports of all buckets about one node together: by server, and
// as a whole, which is as good as the worst of them.
func merge(buckets int, of func(b int) *Node, addr string, cluster bool, skew time.Duration) Node {
	var shards []Node
	// Buckets that one server has, and that fail alike, are one entry.
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
	// A server's warnings are made of its worst bucket, once.
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
	// A plain server beside a cluster has buckets, and is shown as it is.
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

// shard is what a server of a cluster is called in warnings.
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

// worsen makes r as good as the worse one of both.
func (r *Node) worsen(o *Node) {
	// What a reader acts upon is the worst value, field by field. The result
	// may be one that no bucket has.
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
