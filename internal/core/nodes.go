package core

import (
	"context"
	"math/bits"
	"sync"

	"github.com/quorate/quorate/internal/resp"
)

// This file owns the set of a Quorum's nodes, and the questions that are put to all of them.

// nodes are the nodes of a Quorum, by index. It is safe for concurrent use.
//
// Invariant: no node is added after Quorum.built is closed. New opens one connection
// after the other, so the first may be up before the last exists. Without the wait
// for built in carryOut the first one's events would index a list that still
// grows.
type nodes struct{ list []*node }

func (s *nodes) all() []*node { return s.list }

func (s *nodes) at(i int) *node { return s.list[i] }

func (s *nodes) size() int { return len(s.list) }

func (s *nodes) add(n *node) { s.list = append(s.list, n) }

// mask has a bit for each node.
func (s *nodes) mask() uint32 { return 1<<s.size() - 1 }

// flush writes the requests that are queued for the nodes, a bit for each.
// The caller holds no lock of an attempt: Flush may write to a socket.
func (s *nodes) flush(nodes uint32) {
	for ; nodes != 0; nodes &= nodes - 1 {
		s.at(bits.TrailingZeros32(nodes)).link.Flush()
	}
}

// ask puts a question to every node for which encode returns one, and waits until all
// have replied or the context ends. take is called for one reply at a time.
// A reply of an address that is a duplicate of another is an error: its server is
// counted where it votes.
func (s *nodes) ask(ctx context.Context, encode func(dst []byte, n *node) []byte, take func(i int, v []resp.Value) error) []error {
	errs := make([]error, s.size())
	var mu sync.Mutex
	var all sync.WaitGroup
	for i, n := range s.all() {
		all.Go(func() {
			command := encode(nil, n)
			if command == nil {
				return
			}
			v, err := n.answer(ctx, command)
			err = n.q.members.checkSet(i, err)
			mu.Lock()
			defer mu.Unlock()
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

// asked makes a Failure of what the nodes said, or nil if need of them replied well.
func (s *nodes) asked(errs []error, need int) error {
	f := &Failure{Err: ErrNoQuorum, Needed: need, Nodes: s.failed(errs)}
	if f.Votes = len(errs) - len(f.Nodes); f.Votes >= need {
		return nil
	}
	return f
}

// failed are the nodes that have failed, and why.
// In the order of the addresses, so that two errors of one Quorum can be compared.
func (s *nodes) failed(errs []error) (f []NodeFailure) {
	for i, err := range errs {
		if err != nil {
			f = append(f, NodeFailure{Addr: s.at(i).addr, Err: err})
		}
	}
	return f
}
