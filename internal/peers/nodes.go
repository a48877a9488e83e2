package peers

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

// This file owns the list of the nodes, and whether a majority of them
// can be asked.

// maxNodes is how many nodes a client can have: sets of nodes are a uint32 in
// the whole protocol.
const MaxNodes = 32

// nodes are those of a client, by index: those of its set, by their numbers, or
// those of its list. They may come and go while it runs. It is safe for
// concurrent use: mu guards changes. Readers see a list that is not written to.
// Lock order: mu, then the lock of a link. No callback of a link takes mu.
// Invariant: each index that claims know has a node. One that is dropped stays
// in the list, with a connection that is closed, until another node takes the
// index, and a number that no member has is one that was dropped.
// Invariant: a node begins after the last one with its index, or its address,
// has ended.
type nodes struct {
	mu     sync.Mutex
	base   int // what is added to a place in the list for the index
	closed bool
	list   atomic.Pointer[[]*Node] // nil: there is none yet
}

func (s *nodes) All() []*Node {
	if list := s.list.Load(); list != nil {
		return *list
	}
	return nil
}

// Live are the nodes that were not dropped. It is for what looks at nodes one
// by one. What counts votes goes by the Client's Group.
func (s *nodes) Live() []*Node {
	return slices.DeleteFunc(slices.Clone(s.All()), func(n *Node) bool { return n.Dropped.Load() })
}

func (s *nodes) At(i int) *Node { return (*s.list.Load())[i-s.base] }

func (s *nodes) Size() int { return len(s.All()) }

// pool returns the nodes that an index is of.
func (ps *Peers) pool(i int) *nodes {
	if i >= nodeset.Seed {
		return &ps.Seeds
	}
	return &ps.Nodes
}

// Node returns the node with an index, nil if there is none.
func (ps *Peers) Node(i int) *Node {
	s := ps.pool(i)
	if i-s.base >= s.Size() {
		return nil
	}
	return s.At(i)
}

// Grow has a node for each index below size, a dropped one until it connects.
func (s *nodes) Grow(ps *Peers, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if size <= s.Size() {
		return
	}
	list := slices.Clone(s.All())
	for i := len(list); i < size; i++ {
		n := blankNode(ps, s.base+i, "")
		n.Link = flow.Nowhere{}
		n.Dropped.Store(true)
		n.first.Do(func() { close(n.Ready) })
		close(n.Ended)
		list = append(list, n)
	}
	s.list.Store(&list)
}

// Connect begins a node with an index. It waits until those that had the index
// or the address have ended, which is bounded, and for nothing else.
func (s *nodes) Connect(ps *Peers, i int, addr string, c redis.UniversalClient, own bool) error {
	s.Grow(ps, i-s.base+1)
	// Without mu: the task that ends old may have to wait for a node timeout,
	// and nodes.close takes mu. closing ends the wait where Close has begun
	// before that task could start.
	for _, old := range s.All() {
		if !old.Dropped.Load() || old.Index != i && old.Addr != addr {
			continue
		}
		select {
		case <-old.Ended:
		case <-ps.Over:
			return fault.ErrClosed
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(s.All())
	switch at := list[i-s.base]; {
	case s.closed:
		return fault.ErrClosed
	case !at.Dropped.Load(): // by another call, meanwhile
		return fmt.Errorf("%w: %s is in use already", fault.ErrInvalid, at.Addr)
	}
	n, err := newNode(ps, i, addr, c)
	if err != nil {
		return err
	}
	n.own = own
	list[i-s.base] = n
	s.list.Store(&list)
	close(n.placed)
	return nil
}

// Close ends all nodes at the same time, each when it has acknowledged all
// leaves, or acknowledges none any more.
func (s *nodes) Close(ctx context.Context, timeout time.Duration) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	// No node is added from here on: connect sees closed under mu.
	errs := make([]error, s.Size())
	var wg sync.WaitGroup
	for i, n := range s.All() {
		wg.Go(func() {
			ctx, cancel := n.WhileAcknowledged(ctx, timeout)
			defer cancel()
			errs[i] = n.end(ctx)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// ReadyWith is Ready for claims with these settings.
func (ps *Peers) ReadyWith(ctx context.Context, set *setup.Settings) error {
	// Nothing says when a majority is connected, so this looks each 2 ms.
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := ps.Members.OutOfSet(set); err != nil {
			return &fault.Failure{Err: err}
		}
		err, hopeless := ps.Reached()
		if err == nil || ps.Members.blank() {
			return nil
		}
		if hopeless {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err.Cut(ctx)
		case <-ps.Over:
			return &fault.Failure{Err: fault.ErrClosed}
		}
	}
}

// Reached returns nil if a quorum of the set's members is connected, else what
// each node says, and whether no waiting helps: so many refuse for good. While
// no set is known the nodes are those of the list. A majority is enough, even
// where another node is refused for good: that node's error is in Check.
func (ps *Peers) Reached() (f *fault.Failure, hopeless bool) {
	// sets is read before the list: a node is made before claims count on it.
	sets, list := ps.Driver.Sets(), ps.Nodes.All()
	if !ps.Members.Usable() {
		list = ps.Seeds.Live()
		sets = protocol.Majority(len(list))
	}
	f, met, hopeless := tally(list, sets, (*Node).Unfit)
	if met {
		return nil, false
	}
	return f, hopeless
}

// tally is what the nodes have against their votes, each by err, whether the
// others are a quorum, and whether so many refuse for good that they cannot be.
func tally(list []*Node, sets protocol.Quorums, err func(n *Node) error) (f *fault.Failure, met, hopeless bool) {
	good, refused := uint32(0), uint32(0)
	f = &fault.Failure{Err: fault.ErrNoQuorum, Needed: sets.Need()}
	for i, n := range list {
		if n.Dropped.Load() {
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
		f.Nodes = append(f.Nodes, fault.NodeFailure{Addr: n.Addr, Err: fault.NamesAge(err)})
	}
	f.Votes = bits.OnesCount32(good & sets.All())
	return f, sets.Met(good), refused != 0 && sets.Blocked(refused)
}

// Unfit is why a node is not connected, or has no vote in the set; nil: it has.
func (n *Node) Unfit() error { return cmp.Or(n.Err(), n.ps.Members.unfit(n.Index)) }

// Tried waits for the first attempt to connect, which may still be under way.
// Without it a process that has just begun would report each node as down. It
// returns at once ever after, also while the node is down: that is an answer.
func (n *Node) Tried(ctx context.Context) {
	select {
	case <-n.Ready:
	case <-ctx.Done():
	}
}

// end ends what a node has: goroutines, connections and timers.
func (n *Node) end(ctx context.Context) error {
	unsent := n.Drain(ctx)
	// ready is closed after the link: a call that waits for the first attempt
	// goes on, and finds the error of a closed node.
	err := n.Link.Close(ctx)
	if unsent > 0 {
		err = errors.Join(fmt.Errorf("%d requests waited for room at the node: %w", unsent, context.Cause(ctx)), err)
	}
	n.first.Do(func() { close(n.Ready) })
	if n.later != nil { // no connection begins any more
		n.later.Stop()
	}
	if n.own {
		_ = n.client.Close() // it has no connections
	}
	return err
}

// Mask has a bit for each node. With 32 nodes the shift leaves 0, and 0 - 1 has
// all bits.
func (s *nodes) Mask() uint32 { return 1<<s.Size() - 1 }

// Flush writes the requests that are queued for the nodes, a bit for each.
// The caller holds no lock of an attempt: Flush may write to a socket.
func (s *nodes) Flush(nodes uint32) {
	for ; nodes != 0; nodes &= nodes - 1 {
		s.At(bits.TrailingZeros32(nodes)).Link.Flush()
	}
}

// Only returns the node of a set of one, else nil.
func (s *nodes) Only(set uint32) *Node {
	if bits.OnesCount32(set) != 1 {
		return nil
	}
	return s.At(bits.TrailingZeros32(set))
}

// Read has a caller read what the node answers: see [transport.Transport]. For
// a quorum of more nodes than one a caller cannot read all answers itself, so
// there n is nil.
func (n *Node) Read(until <-chan struct{}) {
	if n != nil {
		n.Link.Read(until)
	}
}
