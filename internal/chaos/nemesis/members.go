package nemesis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/chaos/fleet"
	"github.com/samber/lo"
)

// How the nemesis makes operators exchange the nodes of the set, and how it
// finds out which set counts.

// Operators is the maximum number of operators that exchange nodes at once.
// Each has its own proxies to the servers.
const Operators = 2

// change is an exchange to make, in numbers of servers.
type change struct{ add, remove []int }

func (c change) of(set []int) []int { return append(lo.Without(set, c.remove...), c.add...) }

func (c change) String() string {
	return fmt.Sprintf("add [%s] remove [%s]", list(c.add), list(c.remove))
}

const (
	exchangeWithin = time.Minute // an operator gives up after this; guard times take 12 s of an exchange
	undoWithin     = 10 * time.Second
	settleWithin   = time.Minute
)

// spare returns k servers that are not members and are ready to join. Some are
// empty, and some have data from the time when they were members. It fails if
// there are too few.
func (n *Nemesis) spare(r *rand.Rand, k int) ([]int, error) {
	free := lo.Without(n.allNodes(), n.Roster.Voters()...)
	order, flush := r.Perm(len(free)), r.IntN(2) == 0
	if len(free) < k {
		return nil, fmt.Errorf("%w: %d servers are no members", fleet.ErrSkip, len(free))
	}
	chosen := lo.Map(order[:k], func(i int, _ int) int { return free[i] })
	for _, id := range chosen {
		if err := n.ready(n.Nodes[id], flush); err != nil {
			return nil, err
		}
	}
	return chosen, nil
}

// ready makes sure that a server that will join runs with a correct clock. The
// list that clients start with stays as it is.
func (n *Nemesis) ready(nd *fleet.Node, flush bool) (err error) {
	nd.Mu.Lock()
	defer nd.Mu.Unlock()
	off := nd.Off()
	if off.Abs() > driftMost {
		err = nd.SetClock(-off, nd.Rate)
	}
	if !nd.Server.Running() {
		err = errors.Join(err, nd.Restart())
		n.Memory.Back(nd.ID)
	}
	if off > driftMost && n.Plan.Rivals > 0 {
		err = errors.Join(err, fleet.Insist(func() error { return n.uprootRival(context.Background(), nd) }))
	}
	if flush && nd.ID >= n.Plan.Nodes {
		err = errors.Join(err, fleet.Insist(func() error { return nd.Admin.FlushAll(context.Background()).Err() }))
	}
	return err
}

// leaving draws k members that may be removed from a set. At least one node of
// the list that clients start with stays.
func (n *Nemesis) leaving(r *rand.Rand, set []int, k int) []int {
	for {
		chosen := lo.Map(some(r, k, len(set)), func(i int, _ int) int { return set[i] })
		if slices.ContainsFunc(lo.Without(set, chosen...), func(id int) bool { return id < n.Plan.Nodes }) {
			return chosen
		}
	}
}

// set returns the set that counts. If an earlier fault has left an exchange
// unfinished, set undoes it first.
func (n *Nemesis) set(ctx context.Context) ([]int, error) {
	if n.Roster.Unsettled() {
		if err := n.Settle(ctx, nil); err != nil {
			return nil, err
		}
	}
	set, _ := n.Roster.Now()
	return set, nil
}

// begin starts an operator for each change. Every set that may result counts
// from now on.
func (n *Nemesis) begin(changes ...change) (started []*operator, err error) {
	set, _ := n.Roster.Now()
	may := [][]int{}
	for _, c := range changes {
		for _, s := range append([][]int{set}, may...) {
			may = append(may, c.of(s))
		}
	}
	n.Roster.May(may...)
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

// order returns the orders for operator i, without the change to make.
func (n *Nemesis) order(i int) Orders {
	o := n.Orders[i]
	o.Terms.Addrs = fleet.Present(n.Nodes, n.Roster, o.Terms.Addrs)
	return o
}

// exchange makes operators carry out changes, all at once, and returns when it
// is known which set counts. It returns the errors of operators that fail,
// which faults may cause by lasting too long.
func (n *Nemesis) exchange(ctx context.Context, changes ...change) error {
	started, err := n.begin(changes...)
	var set []string
	for _, p := range started {
		after, werr := p.wait(ctx)
		set, err = after, errors.Join(err, werr)
		switch {
		case werr == nil:
			n.members.done.Add(1)
		case ctx.Err() == nil: // otherwise the faults end, and the exchange with them
			n.members.failed.Add(1)
		}
	}
	if err != nil || len(changes) > 1 {
		set = nil
	}
	return errors.Join(err, n.Settle(ctx, set))
}

// Settle finds out which set counts: the given one, or the result after an
// operator has undone an unfinished exchange. It does so even if ctx has ended.
// Then it stops the servers that have left the set, or leaves them running.
func (n *Nemesis) Settle(ctx context.Context, set []string) (err error) {
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
	ids := n.IDs(set)
	for _, id := range n.Roster.Settled(ids) {
		nd := n.Nodes[id]
		nd.Mu.Lock()
		n.retire(nd)
		nd.Mu.Unlock()
	}
	err = nil
	for _, c := range n.Clients[n.Plan.Clients:] { // rivals do not follow changes
		err = errors.Join(err, c.Relist(set))
	}
	return err
}

func (n *Nemesis) addrs(ids []int) []string {
	return lo.Map(ids, func(id int, _ int) string { return n.Nodes[id].Server.Addr() })
}

// IDs returns the numbers of the servers with the given addresses.
func (n *Nemesis) IDs(addrs []string) (ids []int) {
	for _, nd := range n.Nodes {
		if slices.Contains(addrs, nd.Server.Addr()) {
			ids = append(ids, nd.ID)
		}
	}
	return ids
}

// LostSince reports whether a node has a reason to be within its guard time:
// since then it has lost its data or joined the set.
func (n *Nemesis) LostSince(node int, then int64) bool {
	return n.Memory.LostSince(node, then) || n.Roster.EnteredSince(node, then)
}
