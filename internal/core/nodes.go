package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/flow"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/setup"
)

// This file owns the set of a Quorum's nodes, and whether a majority of them
// can be asked.

// maxNodes is how many nodes a client can have: sets of nodes are a uint32 in
// the whole protocol.
const maxNodes = 32

// nodes are the nodes of a Quorum, by index: those of its set, by their
// numbers, or those of its list. They may come and go while it runs. It is safe
// for concurrent use: mu guards changes. Readers see a list that is not written
// to. Lock order: mu, then the lock of a link. No callback of a link takes mu.
// Invariant: each index that claims know has a node. One that is dropped stays
// in the list, with a connection that is closed, until another node takes the
// index, and a number that no member has is one that was dropped.
// Invariant: a node begins after the last one with its index, or its address,
// has ended.
type nodes struct {
	mu     sync.Mutex
	base   int // what is added to a place in the list for the index
	closed bool
	list   atomic.Pointer[[]*node] // nil: there is none yet
}

func (s *nodes) all() []*node {
	if list := s.list.Load(); list != nil {
		return *list
	}
	return nil
}

// live are the nodes that were not dropped. It is for what looks at nodes one
// by one. What counts votes goes by the Client's Group.
func (s *nodes) live() []*node {
	return slices.DeleteFunc(slices.Clone(s.all()), func(n *node) bool { return n.dropped.Load() })
}

func (s *nodes) at(i int) *node { return (*s.list.Load())[i-s.base] }

func (s *nodes) size() int { return len(s.all()) }

// pool returns the nodes that an index is of.
func (q *Quorum) pool(i int) *nodes {
	if i >= nodeset.Seed {
		return &q.seeds
	}
	return &q.nodes
}

// node returns the node with an index, nil if there is none.
func (q *Quorum) node(i int) *node {
	s := q.pool(i)
	if i-s.base >= s.size() {
		return nil
	}
	return s.at(i)
}

// grow has a node for each index below size, a dropped one until it connects.
func (s *nodes) grow(q *Quorum, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if size <= s.size() {
		return
	}
	list := slices.Clone(s.all())
	for i := len(list); i < size; i++ {
		n := blankNode(q, s.base+i, "")
		n.Link = flow.Nowhere{}
		n.dropped.Store(true)
		n.first.Do(func() { close(n.ready) })
		close(n.ended)
		list = append(list, n)
	}
	s.list.Store(&list)
}

// connect begins a node with an index. It waits until those that had the index
// or the address have ended, which is bounded, and for nothing else.
func (s *nodes) connect(q *Quorum, i int, addr string, c redis.UniversalClient, own bool) error {
	s.grow(q, i-s.base+1)
	// Without mu: the task that ends old may have to wait for a node timeout,
	// and nodes.close takes mu. closing ends the wait where Close has begun
	// before that task could start.
	for _, old := range s.all() {
		if !old.dropped.Load() || old.index != i && old.addr != addr {
			continue
		}
		select {
		case <-old.ended:
		case <-q.closing:
			return fault.ErrClosed
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(s.all())
	switch at := list[i-s.base]; {
	case s.closed:
		return fault.ErrClosed
	case !at.dropped.Load(): // by another call, meanwhile
		return fmt.Errorf("%w: %s is in use already", fault.ErrInvalid, at.addr)
	}
	n, err := newNode(q, i, addr, c)
	if err != nil {
		return err
	}
	n.own = own
	list[i-s.base] = n
	s.list.Store(&list)
	close(n.placed)
	return nil
}

// close ends all nodes at the same time, each when it has acknowledged all
// leaves, or acknowledges none any more.
func (s *nodes) close(ctx context.Context, timeout time.Duration) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	// No node is added from here on: connect sees closed under mu.
	errs := make([]error, s.size())
	var wg sync.WaitGroup
	for i, n := range s.all() {
		wg.Go(func() {
			ctx, cancel := n.WhileAcknowledged(ctx, timeout)
			defer cancel()
			errs[i] = n.end(ctx)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

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
func (n *node) unfit() error { return cmp.Or(n.Err(), n.q.members.unfit(n.index)) }

// tried waits for the first attempt to connect, which may still be under way.
// Without it a process that has just begun would report each node as down. It
// returns at once ever after, also while the node is down: that is an answer.
func (n *node) tried(ctx context.Context) {
	select {
	case <-n.ready:
	case <-ctx.Done():
	}
}

// end ends what a node has: goroutines, connections and timers.
func (n *node) end(ctx context.Context) error {
	unsent := n.Drain(ctx)
	// ready is closed after the link: a call that waits for the first attempt
	// goes on, and finds the error of a closed node.
	err := n.Link.Close(ctx)
	if unsent > 0 {
		err = errors.Join(fmt.Errorf("%d requests waited for room at the node: %w", unsent, context.Cause(ctx)), err)
	}
	n.first.Do(func() { close(n.ready) })
	if n.later != nil { // no connection begins any more
		n.later.Stop()
	}
	if n.own {
		_ = n.client.Close() // it has no connections
	}
	return err
}

// mask has a bit for each node. With 32 nodes the shift leaves 0, and 0 - 1 has
// all bits.
func (s *nodes) mask() uint32 { return 1<<s.size() - 1 }

// flush writes the requests that are queued for the nodes, a bit for each.
// The caller holds no lock of an attempt: Flush may write to a socket.
func (s *nodes) flush(nodes uint32) {
	for ; nodes != 0; nodes &= nodes - 1 {
		s.at(bits.TrailingZeros32(nodes)).Link.Flush()
	}
}

// only returns the node of a set of one, else nil.
func (s *nodes) only(set uint32) *node {
	if bits.OnesCount32(set) != 1 {
		return nil
	}
	return s.at(bits.TrailingZeros32(set))
}

// read has a caller read what the node answers: see [transport.Transport]. For
// a quorum of more nodes than one a caller cannot read all answers itself, so
// there n is nil.
func (n *node) read(until <-chan struct{}) {
	if n != nil {
		n.Link.Read(until)
	}
}
