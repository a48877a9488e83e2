package core

// This file owns the buckets of a Quorum of which a node is a Redis Cluster.
//
// A server of a cluster carries out a request only if all its keys lie in one
// slot, and a name's keys need the node's marker. So such a Quorum has buckets.
// A name is in the same bucket at each node, and all keys of a bucket lie in
// one slot: script.BucketPrefix is their hash tag. A bucket has a marker, a
// guard time, a repair and a recorded set of its own. To the protocol it is N
// nodes. So each bucket is a Quorum, which begins with the first use of a name
// in it. Servers beside a cluster in one list have buckets, too: the votes for
// a name must be comparable. The Quorum that has the buckets has no nodes
// itself.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
)

// buckets are those of a Quorum. It is safe for concurrent use. mu guards the
// beginning of a bucket and closed; all is read without it. Lock order: mu
// comes before every lock of a bucket's Quorum.
// Invariant: a bucket that has begun stays. Primitives keep the Quorum that For
// returned.
type buckets struct {
	q       *Quorum
	clients []redis.UniversalClient
	spoken  spoken
	mu      sync.Mutex
	closed  bool
	all     [script.Buckets]atomic.Pointer[Quorum] // nil: no name of it has been used
}

// newBucketed makes a Quorum with buckets. The first one begins at once, so
// that clients that cannot be used are refused here.
func newBucketed(clients []redis.UniversalClient, set setup.Settings) (*Quorum, error) {
	q := &Quorum{set: set, clients: setup.NewClients(clients, &set), closing: make(chan struct{}), buckets: &buckets{clients: clients, spoken: spoken{when: map[string]time.Time{}}}}
	q.buckets.q = q
	_, err := q.buckets.begin(0)
	return q, err
}

// For returns the Quorum that has a name: q itself, or the name's bucket.
func (q *Quorum) For(name string) *Quorum {
	if q.buckets == nil {
		return q
	}
	// No lock where the bucket has begun: all uses but the first.
	b := script.BucketOf(name)
	if had := q.buckets.all[b].Load(); had != nil {
		return had
	}
	made, err := q.buckets.begin(b)
	if err != nil {
		// A primitive's constructor has no error to return.
		panic("quorate: " + err.Error()) // the first bucket has begun with the same clients and settings
	}
	return made
}

func (s *buckets) begin(b int) (*Quorum, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if had := s.all[b].Load(); had != nil {
		return had, nil
	}
	// The prefix is all that tells a bucket from another: keys, markers and the
	// record of the set are below it.
	set := s.q.set
	set.Base, set.Prefix = set.Prefix, script.BucketPrefix(set.Prefix, b)
	set.Logger = slog.New(once{set.Logger.With("bucket", b).Handler(), &s.spoken})
	made, err := open(s.clients, set)
	if err != nil {
		return nil, err
	}
	// A primitive may be made after Close.
	if s.closed {
		_ = made.Close(context.Background()) // each call fails with ErrClosed
	}
	s.all[b].Store(made)
	return made, nil
}

// begun may miss a bucket that begins meanwhile. close has set closed before it
// looks, so begin closes such a bucket.
func (s *buckets) begun() (all []*Quorum) {
	for i := range s.all {
		if b := s.all[i].Load(); b != nil {
			all = append(all, b)
		}
	}
	return all
}

func (s *buckets) close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	all := s.begun()
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, b := range all {
		wg.Go(func() { errs[i] = b.Close(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// atOnce is how many buckets Check and Bootstrap ask at a time. Each has a
// connection to each node.
const atOnce = 16

// each calls f for every bucket, and begins those that have not begun.
func (s *buckets) each(f func(b int, bucket *Quorum) error) error {
	errs := make([]error, script.Buckets)
	room := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for b := range script.Buckets {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			bucket, err := s.begin(b)
			if err == nil {
				err = f(b, bucket)
			}
			errs[b] = err
		})
	}
	wg.Wait()
	// The first bucket that fails stands for all: what is wrong is nearly
	// always wrong for the server, and so for most of them.
	for b, err := range errs {
		if err != nil {
			return inBucket(b, err)
		}
	}
	return nil
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

// inBucket adds to the errors of nodes of which bucket they are. It copies the
// Failure, which is not changed once it is returned.
func inBucket(b int, err error) error {
	f, ok := errors.AsType[*fault.Failure](err)
	if !ok {
		return err
	}
	c := *f
	c.Nodes = nil
	for _, n := range f.Nodes {
		c.Nodes = append(c.Nodes, fault.NodeFailure{Addr: n.Addr, Err: fmt.Errorf("bucket %d: %w", b, n.Err)})
	}
	return &c
}

func isCluster(c redis.UniversalClient) bool {
	_, is := c.(*redis.ClusterClient)
	return is
}
