package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/samber/lo"
)

// This file owns how the nemesis has operators exchange the nodes of the set,
// and how it finds out which set counts.

// operators are how many exchange nodes at once, at the most. Each has its own
// ways to the servers.
const operators = 2

// exchanges is what the track of members needs. Its fault of the moment alone
// uses it, but for the counts.
type exchanges struct {
	done, failed, killed, copies atomic.Int64
	found                        []violation
}

// exchangeStats counts what operators have done.
type exchangeStats struct {
	Done, Failed int64 // by operators whose end was waited for
	Killed       int64 // operators, in the middle of an exchange
	Copies       int64 // attempts to add a server with a copy of a member's data
}

func (m *exchanges) stats() exchangeStats {
	return exchangeStats{m.done.Load(), m.failed.Load(), m.killed.Load(), m.copies.Load()}
}

func (s exchangeStats) String() string {
	return fmt.Sprintf("%d, %d; %d; %d", s.Done, s.Failed, s.Killed, s.Copies)
}

// change is what an exchange is to do, by the numbers of servers.
type change struct{ add, remove []int }

func (c change) of(set []int) []int { return append(lo.Without(set, c.remove...), c.add...) }

func (c change) String() string {
	return fmt.Sprintf("add [%s] remove [%s]", list(c.add), list(c.remove))
}

const (
	exchangeWithin = time.Minute // an operator gives up then; 12 s of an exchange are guard times
	undoWithin     = 10 * time.Second
	settleWithin   = time.Minute
)

// spare returns k servers that are no members, ready to enter: some are empty,
// and some have the data of the time when they were members. It fails if there
// are too few.
func (n *nemesis) spare(r *rand.Rand, k int) ([]int, error) {
	free := lo.Without(n.allNodes(), n.roster.voters()...)
	order, flush := r.Perm(len(free)), r.IntN(2) == 0
	if len(free) < k {
		return nil, fmt.Errorf("%w: %d servers are no members", errSkip, len(free))
	}
	chosen := lo.Map(order[:k], func(i int, _ int) int { return free[i] })
	for _, id := range chosen {
		if err := n.ready(n.nodes[id], flush); err != nil {
			return nil, err
		}
	}
	return chosen, nil
}

// ready has a server run that is to enter, with a clock that is right. What
// clients begin with stays as it is.
func (n *nemesis) ready(nd *node, flush bool) (err error) {
	nd.mu.Lock()
	defer nd.mu.Unlock()
	off := nd.off()
	if off.Abs() > driftMost {
		err = nd.setClock(-off, nd.rate)
	}
	if !nd.server.Running() {
		err = errors.Join(err, nd.restart())
		n.memory.back(nd.id)
	}
	if off > driftMost && n.plan.Rivals > 0 {
		err = errors.Join(err, insist(func() error { return n.uprootRival(context.Background(), nd) }))
	}
	if flush && nd.id >= n.plan.Nodes {
		err = errors.Join(err, insist(func() error { return nd.admin.FlushAll(context.Background()).Err() }))
	}
	return err
}

// leaving draws k members that may be removed from a set. One of those that
// clients begin with stays.
func (n *nemesis) leaving(r *rand.Rand, set []int, k int) []int {
	for {
		chosen := lo.Map(some(r, k, len(set)), func(i int, _ int) int { return set[i] })
		if slices.ContainsFunc(lo.Without(set, chosen...), func(id int) bool { return id < n.plan.Nodes }) {
			return chosen
		}
	}
}

// set is the one that counts. What a fault of before has left half-way is
// undone first.
func (n *nemesis) set(ctx context.Context) ([]int, error) {
	if n.roster.unsettled() {
		if err := n.settle(ctx, nil); err != nil {
			return nil, err
		}
	}
	set, _ := n.roster.now()
	return set, nil
}

// begin starts an operator for each change. What may come of that counts from
// now on.
func (n *nemesis) begin(changes ...change) (started []*operator, err error) {
	set, _ := n.roster.now()
	may := [][]int{}
	for _, c := range changes {
		for _, s := range append([][]int{set}, may...) {
			may = append(may, c.of(s))
		}
	}
	n.roster.may(may...)
	for i, c := range changes {
		o := n.order(i)
		o.Add, o.Remove, o.Within = n.addrs(c.add), n.addrs(c.remove), exchangeWithin
		p, serr := startOperator(o)
		if serr != nil {
			return started, errors.Join(err, serr)
		}
		started = append(started, p)
	}
	return started, err
}

// order is that of an operator, but for what to do.
func (n *nemesis) order(i int) orders {
	o := n.orders[i]
	o.Terms.Addrs = present(n.nodes, n.roster, o.Terms.Addrs)
	return o
}

// exchange has operators carry out changes, all at once, and returns when it is
// known which set counts. An operator that fails says so in the error: faults
// may last for too long.
func (n *nemesis) exchange(ctx context.Context, changes ...change) error {
	started, err := n.begin(changes...)
	var set []string
	for _, p := range started {
		after, werr := p.wait(ctx)
		set, err = after, errors.Join(err, werr)
		switch {
		case werr == nil:
			n.members.done.Add(1)
		case ctx.Err() == nil: // else the faults end, and the exchange with them
			n.members.failed.Add(1)
		}
	}
	if err != nil || len(changes) > 1 {
		set = nil
	}
	return errors.Join(err, n.settle(ctx, set))
}

// settle finds out which set counts: the given one, or what is left when an
// operator has undone what was left half-way. It does that also when ctx has
// ended. Then the servers that have left stay as they are, or stop.
func (n *nemesis) settle(ctx context.Context, set []string) (err error) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleWithin)
	defer cancel()
	for len(set) == 0 {
		o := n.order(0)
		o.Undo, o.Within = true, undoWithin
		p, serr := startOperator(o)
		if serr != nil {
			return serr
		}
		if set, err = p.wait(bounded); err != nil {
			set = nil
		}
		if bounded.Err() != nil {
			return fmt.Errorf("it is not known which set counts: %w", err)
		}
	}
	ids := n.ids(set)
	for _, id := range n.roster.settled(ids) {
		nd := n.nodes[id]
		nd.mu.Lock()
		n.retire(nd)
		nd.mu.Unlock()
	}
	err = nil
	for _, c := range n.clients[n.plan.Clients:] { // rivals do not follow
		err = errors.Join(err, c.relist(set))
	}
	return err
}

func (n *nemesis) addrs(ids []int) []string {
	return lo.Map(ids, func(id int, _ int) string { return n.nodes[id].server.Addr() })
}

func (n *nemesis) ids(addrs []string) (ids []int) {
	for _, nd := range n.nodes {
		if slices.Contains(addrs, nd.server.Addr()) {
			ids = append(ids, nd.id)
		}
	}
	return ids
}

// lostSince says whether a node has a reason to be within its guard time: it
// has lost its data since then, or it entered.
func (n *nemesis) lostSince(node int, then int64) bool {
	return n.memory.lostSince(node, then) || n.roster.enteredSince(node, then)
}
