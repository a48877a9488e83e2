package inspect

// Asking the nodes about one name, and combining what a majority answers.

import (
	"cmp"
	"context"
	"errors"
	"math/bits"
	"sync"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// most is how many claims a node tells of: as many as inspect.lua looks at.
const most = 100

// view is what the nodes say of one name.
type view struct {
	nodes []seen
	sets  protocol.Quorums
}

// seen is what one node says.
type seen struct {
	core.NodeAnswer
	queue   script.Queue
	written *script.Written // nil: nothing is recorded
}

// look asks every node for the claims of a name, and for its record.
//
// The record is read as it is. A read through the register would bring what a
// minority has to the others, and an onlooker changes nothing. A node for which
// skip returns an error is not asked: that is what it says. skip is called
// concurrently.
func look(
	ctx context.Context, q core.Onlooker, name string, most int, skip func(s *core.NodeAnswer) error,
) (v view, err error) {
	_ = ctx.Done() // a nil context panics here, in the goroutine of the caller, and not in one of those below
	var records []core.NodeAnswer
	var all sync.WaitGroup
	var failed error
	all.Go(func() { v, err = queues(ctx, q, name, most, 0, skip) })
	all.Go(func() {
		records, _, failed = q.Ask(ctx, func(dst []byte, s *core.NodeAnswer,
			keys func(string) script.Keys) []byte {
			if skip(s) != nil {
				return nil
			}
			return resp.AppendCommand(dst, script.ReadLong(keys(name).Record())...)
		})
	})
	all.Wait()
	if err = errors.Join(err, failed); err != nil {
		return v, err
	}
	for i := range v.nodes {
		if s := &v.nodes[i]; s.Err == nil {
			s.written, s.Err = recordOf(records, s.Addr)
		}
	}
	return v, nil
}

// queues asks every node for the claims of a name. A node pushes to the owner
// of the claim with the ticket evicted that its hold ends; 0: to none.
func queues(
	ctx context.Context, q core.Onlooker, name string, most int, evicted protocol.Ticket,
	skip func(s *core.NodeAnswer) error,
) (v view, err error) {
	said, sets, err := q.Ask(ctx, func(dst []byte, s *core.NodeAnswer, keys func(string) script.Keys) []byte {
		if skip(s) != nil {
			return nil
		}
		return script.AppendInspect(dst, keys(name), most, evicted)
	})
	v.sets = sets
	for _, said := range said {
		s := seen{NodeAnswer: said}
		if s.Err == nil {
			s.Err = skip(&s.NodeAnswer)
		}
		if s.Err == nil {
			s.queue, s.Err = script.DecodeInspect(s.Values)
		}
		v.nodes = append(v.nodes, s)
	}
	return v, err
}

// everyNode skips none.
func everyNode(*core.NodeAnswer) error { return nil }

// recordOf returns what the node at addr has recorded, nil if nothing. That is
// known only for a node that has answered this question as well.
func recordOf(said []core.NodeAnswer, addr string) (*script.Written, error) {
	for _, s := range said {
		if s.Addr != addr {
			continue
		}
		if s.Err != nil || len(s.Values) != 1 {
			return nil, cmp.Or(s.Err, errUnread)
		}
		if w, ok := script.ParseWritten(string(s.Values[0].Str)); ok && !w.Erased {
			return &w, nil
		}
		return nil, nil
	}
	return nil, errUnread
}

// known returns the nodes whose word is evidence, a bit for each.
func (v *view) known() (nodes uint32) {
	for _, n := range v.nodes {
		if n.Err == nil && n.queue.Memory > 0 {
			nodes |= 1 << n.Index
		}
	}
	return nodes
}

var (
	errForgetful = errors.New("is new or lost its data, so its answer does not count yet")
	errUnread    = errors.New("did not answer what is recorded")
)

// missing returns nil if a majority can say, else what is wrong with each node.
func (v *view) missing() error {
	known := v.known()
	if v.sets.Met(known) {
		return nil
	}
	f := &fault.Failure{Err: fault.ErrNoQuorum, Votes: bits.OnesCount32(known & v.sets.All()),
		Needed: v.sets.Need()}
	for _, n := range v.nodes {
		if known&(1<<n.Index) == 0 {
			f.Nodes = append(f.Nodes, fault.NodeFailure{Addr: n.Addr, Err: cmp.Or(n.Err, errForgetful)})
		}
	}
	return f
}
