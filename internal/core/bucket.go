package core

// The calls of a Quorum that concern all of its nodes, from New to Close, and
// its buckets. A Quorum has buckets if a node is a Redis Cluster.
//
// A server of a cluster carries out a request only if all its keys lie in one
// slot, and every request uses the node's marker besides the keys of its name.
// So the names are divided into buckets. A name is in the same bucket at each
// node, and all keys of a bucket lie in one slot: script.BucketPrefix is their
// hash tag. Each bucket has its own marker, guard time, repair and recorded
// set. To the protocol a bucket is N nodes of its own, so each bucket is a
// Quorum, which begins when a name in it is first used. Single servers that
// share a list with a cluster have buckets too, because the votes for a name
// must be comparable. The Quorum that has the buckets has no nodes itself.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/peers"
	"github.com/quorate/quorate/internal/report"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/transport"
)

// New connects to the nodes. It returns at once; nodes that cannot be reached
// are tried again until Close. An error is about the settings or the clients,
// never about a node.
func New(clients []redis.UniversalClient, set setup.Settings) (*Quorum, error) {
	if err := set.Check(); err != nil {
		return nil, err
	}
	if err := checkClients(clients, &set); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(clients, setup.IsClusterClient) {
		return open(clients, set)
	}
	// Begin the first bucket now, so that unusable clients are refused here.
	q := &Quorum{buckets: &buckets{clients: clients}}
	q.Peers = &peers.Peers{Set: set, Clients: setup.NewClients(clients, &set), Over: make(chan struct{})}
	q.buckets.q = q
	_, err := q.buckets.begin(0)
	return q, err
}

// checkClients refuses clients that cannot be a set of independent masters. Its
// errors number the nodes from 1, as ParseNodes does.
func checkClients(clients []redis.UniversalClient, set *setup.Settings) error {
	if len(clients) == 0 {
		return fmt.Errorf("%w: no nodes; pass 1, 3 or 5 independent Redis masters", fault.ErrInvalid)
	}
	// The whole protocol keeps sets of nodes in a uint32, one bit per node.
	if len(clients) > 31 {
		return fmt.Errorf("%w: %d nodes: at most 31 are allowed, and 3 or 5 are enough",
			fault.ErrInvalid, len(clients))
	}
	if set.Development && len(clients) > 1 {
		return fmt.Errorf("%w: ForDevelopment() is for one node, but %d are listed; remove it, or list one node",
			fault.ErrInvalid, len(clients))
	}
	if len(set.Names) > 0 && len(set.Names) != len(clients) {
		return fmt.Errorf("%w: WithNodeNames has %d names for %d nodes",
			fault.ErrInvalid, len(set.Names), len(clients))
	}
	at := map[string]int{}
	for i, c := range clients {
		missing := true
		switch c := c.(type) {
		case *redis.Client:
			missing = c == nil
		case *transport.SentinelClient:
			missing = c == nil
		case *redis.ClusterClient:
			missing = c == nil
		default:
			return fmt.Errorf("%w: node %d is a %T; pass a *redis.Client (one master) or a *redis.ClusterClient (a "+
				"cluster)", fault.ErrInvalid, i+1, c)
		}
		if missing {
			return fmt.Errorf("%w: node %d is nil", fault.ErrInvalid, i+1)
		}
		// redis.NewFailoverClusterClient makes such a client, for a Sentinel
		// set. With it the names would be in buckets, so its locks would not
		// exclude those of other clients of the same set.
		if c, is := c.(*redis.ClusterClient); is && len(c.Options().Addrs) == 0 {
			return fmt.Errorf("%w: node %d is a cluster client without addresses: set ClusterOptions.Addrs or, for a "+
				"Sentinel set, use quorate.NewFailoverClient", fault.ErrInvalid, i+1)
		}
		// Equal addresses are only the simplest duplicate. If two addresses
		// lead to one server, both show the same identity once the set is
		// recorded.
		if single, is := setup.Single(c); is && single.Options().Addr == transport.FailoverAddr {
			return fmt.Errorf("%w: node %d was made by redis.NewFailoverClient, which sends the password to whatever "+
				"address the first Sentinel names: use quorate.NewFailoverClient with the same options, or pass its "+
				"URL to Connect", fault.ErrInvalid, i+1)
		}
		name := set.NameOf(c, i)
		if j, dup := at[name]; dup {
			return fmt.Errorf("%w: nodes %d and %d are the same server, %s; list each server once",
				fault.ErrInvalid, j+1, i+1, name)
		}
		at[name] = i
	}
	return set.CheckDatabases(clients)
}

// For returns the Quorum that serves a name: q itself, or the bucket of the
// name.
func (q *Quorum) For(name string) *Quorum {
	if q.buckets == nil {
		return q
	}
	// No lock is needed after the first use of the bucket.
	b := script.BucketOf(name)
	if had := q.buckets.all[b].Load(); had != nil {
		return had
	}
	made, err := q.buckets.begin(b)
	if err != nil {
		// A primitive's constructor has no error to return.
		// Cannot happen: the first bucket has begun with the same clients and
		// settings.
		panic("quorate: " + err.Error())
	}
	return made
}

// begin returns a bucket, and starts it if it has not begun.
func (s *buckets) begin(b int) (*Quorum, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if had := s.all[b].Load(); had != nil {
		return had, nil
	}
	// Only the prefix distinguishes one bucket from another: keys, markers and
	// the record of the set begin with it.
	set := s.q.Set
	set.Base, set.Prefix = set.Prefix, script.BucketPrefix(set.Prefix, b)
	set.Logger = slog.New(report.Deduplicate(set.Logger.With("bucket", b).Handler(), &s.spoken))
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

// begun returns the buckets that have begun. It may miss one that begins at the
// same time. close sets closed before it calls begun, so begin closes such a
// bucket.
func (s *buckets) begun() (all []*Quorum) {
	for i := range s.all {
		if b := s.all[i].Load(); b != nil {
			all = append(all, b)
		}
	}
	return all
}

// close closes all buckets. A bucket that begins later is closed at once.
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

// each calls f for every bucket, and starts those that have not begun.
func (s *buckets) each(f func(b int, bucket *Quorum) error) error {
	errs := make([]error, script.Buckets)
	room := make(chan struct{}, 16) // 16 at a time, because each one connects to every node
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
	// The first bucket that fails stands for all: a problem nearly always
	// concerns the whole server, and so most buckets.
	for b, err := range errs {
		if err != nil {
			return inBucket(b, err)
		}
	}
	return nil
}

// Ready waits until a majority of the nodes is connected and belongs to the
// set, or is blank. It does not wait until they vote; see Serving. It fails if
// ctx ends, on Close, if the settings do not fit the set, or if too many nodes
// have failed permanently. With buckets it waits for a
// majority of the first bucket only, since the others begin with their first
// name.
func (q *Quorum) Ready(ctx context.Context) error {
	if q.buckets != nil {
		return q.buckets.all[0].Load().Ready(ctx)
	}
	return q.ReadyWith(ctx, &q.Set)
}

// Serving returns nil if a quorum is connected and votes, as far as this
// process knows, and otherwise an error with the state of each node. It does
// not wait for a node. (peers/doc.go compares Ready, Serving and the other
// checks.) It starts a connection attempt to nodes that have not been tried for
// a while, so that the next call knows more.
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
	for _, n := range q.Nodes.Live() {
		n.Writes.TryLater()
	}
	return q.Peers.Serving()
}

// Bootstrap makes brand-new nodes record that they are the set of this client's
// list, so that they vote at once. Nodes that have recorded a set keep it.
func (q *Quorum) Bootstrap(ctx context.Context) error {
	_, err := q.Record(ctx)
	return err
}

// Record is like Bootstrap, and reports whether this call made the nodes record
// their set, in at least one bucket.
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

// AwaitRepairs waits until every repair in progress has been attempted once,
// ctx ends, or ten node timeouts have passed, so that a process that is about
// to exit does not leave a repair half done.
func (q *Quorum) AwaitRepairs(ctx context.Context) {
	if q.buckets != nil {
		for _, b := range q.buckets.begun() {
			b.AwaitRepairs(ctx)
		}
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*q.Set.NodeTimeout)
	defer cancel()
	for _, n := range q.Nodes.All() {
		q.repairs.await(ctx, n)
	}
}

// inBucket adds the bucket's number to each node's error in err. It copies the
// Failure, because a Failure must not change after it is returned. What wraps the
// Failure is dropped.
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

// Size returns N, the number of nodes that have a vote. While two sets count,
// it includes the nodes of both.
func (q *Quorum) Size() int {
	if q.buckets != nil {
		return len(q.Clients.List())
	}
	return q.Count()
}

// Close ends the client, see end. A second call waits until the first has
// finished, and fails with ErrClosed. It waits on a channel and not on a lock,
// because the fake time of testing/synctest stands still while a goroutine
// waits for a lock.
func (q *Quorum) Close(ctx context.Context) error {
	first := q.closeCalled.CompareAndSwap(false, true)
	switch {
	case q.buckets != nil:
		if first {
			close(q.Over)
		}
		return q.buckets.close(ctx)
	case !first:
		<-q.closeDone
		return &fault.Failure{Err: fault.ErrClosed}
	}
	defer close(q.closeDone)
	return q.end(ctx)
}
