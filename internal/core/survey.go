package core

// This file owns the reports about all nodes at once, and how those of a node's
// buckets become one.

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/script"
)

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

// survey asks all nodes of all buckets, and puts the reports together.
func (set *buckets) survey(ctx context.Context) (Survey, error) {
	if set.q.isClosed() {
		return Survey{}, &fault.Failure{Err: fault.ErrClosed}
	}
	var all [script.Buckets]Survey
	if err := set.each(func(b int, bucket *Quorum) (err error) {
		all[b], err = bucket.Onlooker().Survey(ctx)
		return err
	}); err != nil {
		return Survey{}, err
	}
	// Each bucket is a set of its own, and a name is in one of them. So the
	// whole is ready, and bears a restart, as far as its worst bucket does.
	s := Survey{Nodes: make([]NodeReport, len(set.q.clients.List())), Ready: all[0].Ready, MayRestart: true}
	odd := -1 // the bucket whose set is shown: each records its own
	for b := range all {
		s.Ready = min(s.Ready, all[b].Ready)
		s.MayRestart = s.MayRestart && all[b].MayRestart
		answers := slices.ContainsFunc(all[b].Nodes, func(n NodeReport) bool { return n.Err == nil })
		if answers && (odd < 0 || all[odd].Set != nil && all[b].Set == nil) {
			odd = b
		}
	}
	odd = max(odd, 0)
	for i, addr := range set.q.clients.List() {
		s.Nodes[i] = set.merge(i, func(b int) *NodeReport {
			for k := range all[b].Nodes {
				if all[b].Nodes[k].Addr == addr {
					return &all[b].Nodes[k]
				}
			}
			return &NodeReport{Addr: addr, Err: fault.ErrSetRetired}
		})
	}
	// One bucket stands for all. If some have recorded their set and others
	// have not, it is one that has not: Bootstrap was cut short, and an
	// operator has to call it again.
	s.Set = all[odd].Set
	return s, nil
}

// merge puts the reports of all buckets about one node together: by server, and
// as a whole, which is as good as the worst of them.
func (set *buckets) merge(i int, of func(b int) *NodeReport) NodeReport {
	var shards []NodeReport
	// Buckets that one server has, and that fail alike, are one entry.
	place := map[string]int{}
	for b := range script.Buckets {
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
			s.Warnings = warnings(s, &set.q.set)
		}
		whole.worsen(s)
	}
	whole.Addr, whole.Warnings = set.q.clients.List()[i], shards[0].Warnings
	// A plain server beside a cluster has buckets, and is shown as it is.
	if len(shards) == 1 && !isCluster(set.clients[i]) {
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
func (r *NodeReport) shard() string {
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
func (r *NodeReport) worsen(o *NodeReport) {
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
	if r.repairErr == nil {
		r.repairErr = o.repairErr
	}
	if o.JumpedAt.After(r.JumpedAt) {
		r.Jumped, r.JumpedAt = o.Jumped, o.JumpedAt
	}
}
