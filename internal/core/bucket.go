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
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/peers"
	"github.com/quorate/quorate/internal/report"
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
	spoken  report.Spoken
	mu      sync.Mutex
	closed  bool
	all     [script.Buckets]atomic.Pointer[Quorum] // nil: no name of it has been used
}

// newBucketed makes a Quorum with buckets. The first one begins at once, so
// that clients that cannot be used are refused here.
func newBucketed(clients []redis.UniversalClient, set setup.Settings) (*Quorum, error) {
	q := &Quorum{Peers: &peers.Peers{Set: set, Clients: setup.NewClients(clients, &set), Over: make(chan struct{})}, buckets: &buckets{clients: clients}}
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
	set := s.q.Set
	set.Base, set.Prefix = set.Prefix, script.BucketPrefix(set.Prefix, b)
	set.Logger = slog.New(report.Once(set.Logger.With("bucket", b).Handler(), &s.spoken))
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
	return report.Merge(all[:], list, func(i int) bool { return setup.IsCluster(set.clients[i]) }, set.q.Set.Skew), nil
}

// Ready waits until a majority of the nodes is connected. It gives up when the
// context ends, or when so many have failed for good that this cannot be. With
// buckets the first one must have a majority: a bucket begins with its first
// name.
func (q *Quorum) Ready(ctx context.Context) error {
	if q.buckets != nil {
		return q.buckets.all[0].Load().Ready(ctx)
	}
	return q.ReadyWith(ctx, &q.Set)
}

// Serving returns nil if a quorum is connected and votes, as far as this
// process knows, else what is known of the nodes. It asks no node.
func (q *Quorum) Serving() error {
	if q.IsClosed() {
		return &fault.Failure{Err: fault.ErrClosed}
	}
	if q.buckets != nil {
		for _, b := range q.buckets.begun() {
			if err := b.Serving(); err != nil {
				return err
			}
		}
		return nil
	}
	return q.Peers.Serving()
}

// Bootstrap has brand-new nodes record that they are the set of this client's
// list, and vote at once. Nodes that have recorded a set keep it.
func (q *Quorum) Bootstrap(ctx context.Context) error {
	_, err := q.Record(ctx)
	return err
}

// Record is Bootstrap, and reports whether the nodes have recorded their set by
// this call, of one bucket at least.
func (q *Quorum) Record(ctx context.Context) (mine bool, err error) {
	if q.IsClosed() {
		return false, &fault.Failure{Err: fault.ErrClosed}
	}
	if q.buckets == nil {
		return q.Peers.Bootstrap(ctx)
	}
	var some atomic.Bool
	err = q.buckets.each(func(_ int, bucket *Quorum) error {
		mine, err := bucket.Record(ctx)
		if mine {
			some.Store(true)
		}
		return err
	})
	return some.Load(), err
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
