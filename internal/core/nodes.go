package core

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/transport"
)

// This file owns the set of a Quorum's nodes, and the questions that are put to
// all of them.

// maxNodes is how many nodes a client can have: sets of nodes are a uint32 in
// the whole protocol.
const maxNodes = 32

// nodes are the nodes of a Quorum, by index. They may come and go while it
// runs. It is safe for concurrent use: mu guards changes. Readers see a list
// that is not written to.
// Lock order: mu, then the lock of a link. No callback of a link takes mu.
//
// Invariant: a node keeps its index while it lives. When it is dropped it stays
// in the list, with a connection that is closed, until another node takes the
// index. So a request that is still meant for it fails at once, as at a node
// that is down, and no reader has to ask whether there is a node.
//
// Invariant: a node begins after the last one with its index has ended. Without
// that the late end of a connection would be taken for that of the next one.
type nodes struct {
	mu     sync.Mutex
	closed bool
	offers map[string]*redis.Options // by address: of those that may become nodes
	list   atomic.Pointer[[]*node]   // nil: there is none yet
}

func (s *nodes) all() []*node {
	if list := s.list.Load(); list != nil {
		return *list
	}
	return nil
}

// live are the nodes that were not dropped. It is for what looks at nodes one
// by one: reports, discovery, the check of a new server. What counts votes goes
// by the Client's Group.
func (s *nodes) live() []*node {
	return slices.DeleteFunc(slices.Clone(s.all()), func(n *node) bool { return n.dropped.Load() })
}

func (s *nodes) at(i int) *node { return (*s.list.Load())[i] }

func (s *nodes) size() int { return len(s.all()) }

// connect begins a node with index i: the next one, or that of a node that was
// dropped. It waits until that has ended, which is bounded, and for nothing
// else. The node connects by itself, again and again until it is dropped.
func (s *nodes) connect(q *Quorum, i int, c redis.UniversalClient, own bool) error {
	n, err := s.place(q, i, c, own)
	if err == nil {
		close(n.placed)
	}
	return err
}

// enter adds a node whose connection waits until n.placed is closed. Without a
// client it counts as down.
func (s *nodes) enter(q *Quorum, i int, addr string, c redis.UniversalClient) *node {
	if c != nil {
		if n, err := s.place(q, i, c, true); err == nil {
			return n
		}
		_ = c.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := q.blankNode(i, addr)
	n.link = nowhere{fmt.Errorf("%s: %w", addr, transport.ErrDown)}
	n.first.Do(func() { close(n.ready) })
	list := append(slices.Clone(s.all()), n)
	s.list.Store(&list)
	return n
}

// place is connect for a node whose connection waits until n.placed is closed.
func (s *nodes) place(q *Quorum, i int, c redis.UniversalClient, own bool) (*node, error) {
	if i < s.size() {
		old := s.at(i)
		if !old.dropped.Load() {
			return nil, fmt.Errorf("%w: %s is in use already", ErrInvalid, old.addr)
		}
		// Without mu: the task that ends old may have to wait for a node
		// timeout, and nodes.close takes mu. closing ends the wait where Close
		// has begun before that task could start.
		select {
		case <-old.ended:
		case <-q.closing:
			return nil, ErrClosed
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(s.all())
	switch {
	case s.closed:
		return nil, ErrClosed
	case i < len(list) && !list[i].dropped.Load(): // by another call, meanwhile
		return nil, fmt.Errorf("%w: %s is in use already", ErrInvalid, list[i].addr)
	}
	n, err := q.newNode(i, c)
	if err != nil {
		return nil, err
	}
	n.own = own
	if i == len(list) {
		list = append(list, n)
	} else {
		list[i] = n
	}
	s.list.Store(&list)
	return n, nil
}

// drop ends a node for good. It does not wait for that: n.ended is closed when
// nothing of the node is left. What the node has not answered a node timeout
// later ends with an error, as at a node that is down.
func (s *nodes) drop(i int) {
	n := s.at(i)
	if n.dropped.Swap(true) {
		return
	}
	q := n.q
	// It is a task: the caller may be the link's own goroutine, in the
	// handshake that has shown that the node has left its set. The link's Close
	// waits for that one.
	q.tasks.start(func() { // or Close ends it
		defer close(n.ended)
		ctx, cancel := context.WithTimeout(context.Background(), n.timeout(&q.set))
		defer cancel()
		_ = n.end(ctx) // says how much was unanswered
		n.settle()
		q.members.change(-1, func(m *protocol.Membership) { m.Down(i) })
		q.driver.carryOut(q.driver.client.Down(q.now(), i))
		n.noteRecovering(protocol.Answer{Status: protocol.OK})
		q.set.Logger.Debug("quorate: a node is not used any more", "node", n.addr)
	})
}

// close ends all nodes at the same time, each when it has acknowledged all
// leaves, or acknowledges none any more.
func (s *nodes) close(ctx context.Context, timeout time.Duration) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	// No node is added from here on: place sees closed under mu. What is in the
	// list now is all there will be to end.
	errs := make([]error, s.size())
	var wg sync.WaitGroup
	for i, n := range s.all() {
		wg.Go(func() {
			ctx, cancel := n.whileAcknowledged(ctx, timeout)
			defer cancel()
			errs[i] = n.end(ctx)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// end ends what a node has: goroutines, connections and timers.
func (n *node) end(ctx context.Context) error {
	unsent := n.drain(ctx)
	// ready is closed after the link: a call that waits for the first attempt
	// goes on, and finds the error of a closed node.
	err := n.link.Close(ctx)
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

// settle ends what has found no room until the node ended: the connection is
// closed, so each request fails.
//
// Invariant: each request that a flow has taken is answered. Without that a
// claim would wait for an answer that does not come
// (TestDroppedNodeAnswersWhatWaitsForRoom). flow.mu is free while transmit
// runs, as in pump: transmit takes its owner's lock, and owners take flow.mu
// under theirs.
func (n *node) settle() {
	f := &n.flow
	for {
		f.mu.Lock()
		k, ok := f.backlog.Next()
		if !ok {
			f.mu.Unlock()
			return
		}
		c := f.backlog.Take(k)
		f.mu.Unlock()
		c.transmit(n)
	}
}

// mask has a bit for each node. With 32 nodes the shift leaves 0, and 0 - 1 has
// all bits.
func (s *nodes) mask() uint32 { return 1<<s.size() - 1 }

// flush writes the requests that are queued for the nodes, a bit for each.
// The caller holds no lock of an attempt: Flush may write to a socket.
func (s *nodes) flush(nodes uint32) {
	for ; nodes != 0; nodes &= nodes - 1 {
		s.at(bits.TrailingZeros32(nodes)).link.Flush()
	}
}

// ask puts a question to every node for which encode returns one, and waits
// until all have replied or the context ends. take is called for one reply at a
// time. A reply of an address that is a duplicate of another is an error: its
// server is counted where it votes.
func (s *nodes) ask(ctx context.Context, encode func(dst []byte, n *node) []byte, take func(i int, v []resp.Value) error) []error {
	list := s.all()
	errs := make([]error, len(list))
	var mu sync.Mutex
	var all sync.WaitGroup
	for i, n := range list {
		if n.dropped.Load() {
			errs[i] = errDropped
			continue
		}
		// Invariant: each node is asked in a goroutine of its own, and replies
		// are taken one at a time. So the caller's take needs no lock, and a
		// node that hangs delays none but the caller.
		all.Go(func() {
			command := encode(nil, n)
			if command == nil {
				return
			}
			// The caller's context bounds the wait. An answer that comes later
			// is dropped, so take is never called after ask has returned.
			v, err := n.answer(ctx, command)
			// A refusal for the set is made the error that names both lists,
			// here and not by each caller.
			err = n.q.members.checkSet(i, err)
			mu.Lock()
			defer mu.Unlock()
			// It is asked after the answer: that the two are one server may
			// have been found out while the command was on its way.
			if err == nil {
				err = n.q.driver.duplicate(i)
			}
			if err == nil {
				err = take(i, v)
			}
			errs[i] = err
		})
	}
	all.Wait()
	return errs
}

// asked makes a Failure of what the nodes said, or nil if need of them replied
// well.
func (s *nodes) asked(errs []error, need int) error {
	f := &Failure{Err: ErrNoQuorum, Needed: need, Nodes: s.failed(errs)}
	// need counts answers, not members: Bootstrap needs that of each node of
	// the list, whatever the set makes of it. A node that was dropped asks for
	// no remedy, and is not counted as failed.
	if f.Votes = len(errs) - len(f.Nodes); f.Votes >= need {
		return nil
	}
	return f
}

// reached returns nil if the nodes that replied well are a quorum, else a
// Failure of what the nodes said.
func (s *nodes) reached(sets protocol.Quorums, errs []error) error {
	good := uint32(0)
	for i, err := range errs {
		if err == nil {
			good |= 1 << i
		}
	}
	if sets.Met(good) {
		return nil
	}
	return &Failure{Err: ErrNoQuorum, Needed: sets.Need(), Votes: bits.OnesCount32(good & sets.All()), Nodes: s.failed(errs)}
}

var errDropped = errors.New("is not used any more")

// failed are the nodes that have failed, and why. In the order of the
// addresses, so that two errors of one Quorum can be compared.
func (s *nodes) failed(errs []error) (f []NodeFailure) {
	for i, err := range errs {
		if err != nil && !errors.Is(err, errDropped) {
			f = append(f, NodeFailure{Addr: s.at(i).addr, Err: s.at(i).because(err)})
		}
	}
	return f
}
