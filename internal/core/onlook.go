package core

// This file owns the questions of an onlooker: package inspect. An onlooker has
// no claim. It asks for no vote, waits for no turn, and no holder learns of it.

import (
	"context"
	"strings"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// Said is what one node answers to an onlooker.
type Said struct {
	Index  int // as protocol.Quorums numbers the nodes
	Addr   string
	Server string // that the connection goes to: of a Redis Cluster one of its servers
	Err    error
	Values []resp.Value
}

// Ask puts a question to every node. It returns what each of them says, and
// which make a quorum. question appends the command for a node; one for which
// it returns nil is not asked, and has no values. A node that hangs is waited
// for as a claim waits for its furthest node. Ask fails only with ErrClosed.
func (q *Quorum) Ask(ctx context.Context, question func(dst []byte, s *Said, keys func(name string) script.Keys) []byte) ([]Said, protocol.Quorums, error) {
	if q.isClosed() {
		return nil, protocol.Quorums{}, &Failure{Err: ErrClosed}
	}
	q.AwaitFirst(ctx)
	q.members.settled(ctx)
	sets, home := q.driver.sets(), q.members.home()
	if !q.members.usable() {
		f, all := q.members.unknown(), []Said(nil)
		for i, n := range f.Nodes {
			all = append(all, Said{Index: i, Addr: n.Addr, Err: n.Err})
		}
		return all, protocol.Majority(len(q.seeds.live())), nil
	}
	ctx, cancel := context.WithTimeout(ctx, q.driver.furthest(&q.set))
	defer cancel()
	keys := func(name string) script.Keys { return script.NewKeys(q.set.Prefix, name).At(home) }
	said := make([]Said, maxNodes) // by number, as the set may grow meanwhile
	errs := q.nodes.ask(ctx, func(dst []byte, n *node) []byte {
		s := &said[n.index]
		s.Index, s.Addr, s.Server = n.index, n.addr, n.info().Addr
		return question(dst, s, keys)
	}, func(i int, v []resp.Value) error {
		said[i].Values = v
		return nil
	})
	var all []Said
	for i, err := range errs {
		if n := q.nodes.at(i); err != errDropped {
			said[i].Index, said[i].Addr, said[i].Err = i, n.addr, namesAge(err)
			all = append(all, said[i])
		}
	}
	return all, sets, nil
}

// Parts returns the Quorums that have the names: q alone, or each of its
// buckets. Those that have not begun begin.
func (q *Quorum) Parts() ([]*Quorum, error) {
	if q.buckets == nil {
		return []*Quorum{q}, nil
	}
	err := q.buckets.each(func(int, *Quorum) error { return nil })
	return q.buckets.begun(), err
}

// NameOf returns the name that a key is of, if it is the key of a name's claims
// or of its record, and no key of the library's own.
func NameOf(key string) (name string, ok bool) {
	_, name, ours := strings.Cut(key, ":{")
	name, end, whole := strings.Cut(name, "}")
	ok = ours && whole && (end == "" || end == ":r") && CheckName(name) == nil && !protocol.IsSuccessor(name)
	return name, ok
}
