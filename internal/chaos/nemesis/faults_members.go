package nemesis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/chaos/fleet"
	"github.com/quorate/quorate/internal/chaos/judge"
	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/testkit/proxy"
	"github.com/samber/lo"
)

// Changes of the set: operators exchange its nodes with the public API, each in
// a process of its own, during all other faults. Clients start with the
// original list, and follow.
var memberHarms = []harm{
	{"node of the set replaced", replaceNodes(1)},
	{"two nodes of the set replaced at once", replaceNodes(2)},
	partedReplacement,
	{"set of three made one of five and back, or the other way round", resize},
	{"dead node removed or replaced", removeDead},
	{"operator killed in the middle of an exchange, the next one goes on", killOperator(false)},
	{"operator killed in the middle of an exchange, the next one undoes it", killOperator(true)},
	{"two operators exchange nodes at once", twoOperators},
	{"node removed, back with its data of before", comeBack},
	{"data of a node copied to a server that is to be added", copyData},
	{"client stopped across two exchanges", sleepThrough},
	{"node with a forged record of the set", forge},
}

// partedReplacement would show two holders if a majority of one set were enough
// while both sets count. It is also a track of its own, for the control
// no-both.
var partedReplacement = harm{"most nodes of the set replaced, clients parted", replaceMost}

// swap draws a change that replaces the given number of nodes of a set.
func (n *Nemesis) swap(r *rand.Rand, set []int, nodes int) (change, error) {
	spare, err := n.spare(r, nodes)
	return change{spare, n.leaving(r, set, nodes)}, err
}

func replaceNodes(nodes int) func(context.Context, *Nemesis, *rand.Rand) (string, error) {
	return func(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
		set, err := n.set(ctx)
		if err != nil {
			return "", err
		}
		c, err := n.swap(r, set, nodes)
		if err != nil {
			return c.String(), err
		}
		return c.String(), n.exchange(ctx, c)
	}
}

// replaceMost replaces a majority of the set. Meanwhile half of the clients can
// reach only the nodes that leave, which are a majority of the old set. The
// other half can reach only the nodes of the new set.
func replaceMost(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
	set, err := n.set(ctx)
	if err != nil {
		return "", err
	}
	c, err := n.swap(r, set, fleet.Majority(len(set)))
	if err != nil {
		return c.String(), err
	}
	for i := range n.Plan.Clients {
		n.Wires.Set([]int{i}, lo.Ternary(i%2 == 0, c.of(set), c.remove), proxy.Both, lose)
	}
	err = n.exchange(ctx, c)
	n.Wires.Set(lo.Range(n.Plan.Clients), append(c.of(set), c.remove...), proxy.Both, pass)
	return c.String(), err
}

func resize(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
	set, err := n.set(ctx)
	if err != nil {
		return "", err
	}
	grow := func() (change, error) {
		spare, err := n.spare(r, 2)
		return change{add: spare}, err
	}
	shrink := func() (change, error) { return change{remove: n.leaving(r, set, len(set)-3)}, nil }
	steps := []func() (change, error){grow, shrink}
	if len(set) > 3 {
		steps = []func() (change, error){shrink, grow}
	}
	var target string
	for _, step := range steps {
		c, err := step()
		if target += c.String() + "; "; err == nil {
			err = n.exchange(ctx, c)
		}
		if err != nil || ctx.Err() != nil {
			return target, err
		}
		set, _ = n.Roster.Now()
	}
	return target, nil
}

// removeDead kills a node, and then replaces it, or removes it from a set of
// more than three. The server is started again only when it joins as another
// node, or if it could not be removed. removeDead waits until a node may lose
// its data.
func removeDead(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
	set, err := n.set(ctx)
	if err != nil {
		return "", err
	}
	c := change{remove: n.leaving(r, set, 1)}
	if len(set) <= 3 {
		if c.add, err = n.spare(r, 1); err != nil {
			return c.String(), err
		}
	}
	nd := n.Nodes[c.remove[0]]
	if err := n.inTurn(ctx, func() error { return n.kill(nd) }); err != nil {
		return c.String(), err
	}
	err = n.exchange(ctx, c)
	nd.Mu.Lock()
	defer nd.Mu.Unlock()
	if n.Roster.Has(nd.ID) && !nd.Server.Running() {
		err = errors.Join(err, nd.Restart())
		n.back(nd)
	}
	return c.String(), err
}

func (n *Nemesis) kill(nd *fleet.Node) error {
	nd.Mu.Lock()
	defer nd.Mu.Unlock()
	if err := n.Memory.Lose(nd.ID); err != nil {
		return err
	}
	return nd.Server.Kill()
}

// killOperator kills an operator at a random time. Then the same call is
// repeated and finishes the change, or another call undoes it.
func killOperator(undo bool) func(context.Context, *Nemesis, *rand.Rand) (string, error) {
	return func(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
		set, err := n.set(ctx)
		if err != nil {
			return "", err
		}
		after, pause := between(r, n.Plan.TTL/4, 5*n.Plan.Guard/2), between(r, 0, n.Plan.TTL)
		c, err := n.swap(r, set, 1)
		if err != nil {
			return c.String(), err
		}
		target := fmt.Sprintf("%v, killed after %v", c, after)
		started, err := n.begin(c)
		record.Wait(ctx, after)
		for _, p := range started {
			err = errors.Join(err, p.Kill())
		}
		n.members.killed.Add(1)
		record.Wait(ctx, pause)
		if undo || err != nil {
			return target, errors.Join(err, n.Settle(ctx, nil))
		}
		return target, n.exchange(ctx, c)
	}
}

func twoOperators(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
	set, err := n.set(ctx)
	if err != nil {
		return "", err
	}
	spares, err := n.spare(r, 2)
	if err != nil {
		return "", err
	}
	leaves := n.leaving(r, set, 2)
	one, other := change{spares[:1], leaves[:1]}, change{spares[1:], leaves[1:]}
	return fmt.Sprintf("%v, %v", one, other), n.exchange(ctx, one, other)
}

// comeBack removes a node that keeps its data, restarts its server with that
// data, and adds it again.
func comeBack(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
	set, err := n.set(ctx)
	if err != nil {
		return "", err
	}
	c, err := n.swap(r, set, 1)
	if err == nil {
		err = n.exchange(ctx, c)
	}
	if err != nil || ctx.Err() != nil {
		return c.String(), err
	}
	nd := n.Nodes[c.remove[0]]
	if err := n.again(nd); err != nil {
		return c.String(), err
	}
	record.Wait(ctx, n.length(r))
	return c.String() + ", and back", n.exchange(ctx, change{c.remove, c.add})
}

// again restarts a server that is not a member. A server that keeps its data in
// memory is only stopped for a moment.
func (n *Nemesis) again(nd *fleet.Node) error {
	nd.Mu.Lock()
	defer nd.Mu.Unlock()
	if nd.Store == fleet.InMemory && nd.Server.Running() {
		return errors.Join(nd.Server.Stop(), nd.Server.Cont())
	}
	return nd.Restart()
}

// copyData starts a server with the files of a member, checks that it cannot
// join, and then empties it.
func copyData(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
	set, err := n.set(ctx)
	if err != nil {
		return "", err
	}
	keeps := func(id int, _ int) bool {
		return n.Nodes[id].Store != fleet.InMemory &&
			n.Nodes[id].Server.Running()
	}
	from := lo.Filter(set, keeps)
	to := lo.Filter(lo.Without(n.allNodes(), append(lo.Range(n.Plan.Nodes), set...)...),
		func(id int, _ int) bool { return n.Nodes[id].Store != fleet.InMemory })
	pick := r.Int()
	if len(from) == 0 || len(to) == 0 {
		return "none", fmt.Errorf("%w: no member and no other server keep files", fleet.ErrSkip)
	}
	a, b := n.Nodes[from[pick%len(from)]], n.Nodes[to[pick%len(to)]]
	target := fmt.Sprintf("of node %d to %d", a.ID, b.ID)
	if err := b.TakeFiles(a); err != nil {
		return target, err
	}
	if !b.KnowsSet() { // a copy of what is empty is an empty server, which may join
		return target, errors.Join(b.Empty(), fmt.Errorf("%w: the member had just lost its data", fleet.ErrSkip))
	}
	started, err := n.begin(change{add: []int{b.ID}})
	for _, p := range started {
		if _, werr := p.wait(ctx); werr == nil {
			n.members.found = append(n.members.found,
				judge.Violation{At: record.Now(), What: "a server with a copy of a member's data was added: " + target})
		}
		n.members.copies.Add(1)
	}
	err = errors.Join(err, n.Settle(ctx, nil))
	if n.Roster.Has(b.ID) {
		return target, err
	}
	return target, errors.Join(err,
		fleet.Insist(func() error { return b.Admin.FlushAll(context.Background()).Err() }))
}

// sleepThrough stops a client while the set changes twice.
func sleepThrough(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
	cl := n.Clients[r.IntN(n.Plan.Clients)]
	target := fmt.Sprintf("client %d", cl.ID)
	err := cl.Freeze()
	for range 2 {
		set, serr := n.set(ctx)
		if err = errors.Join(err, serr); err != nil || ctx.Err() != nil {
			break
		}
		c, serr := n.swap(r, set, 1)
		if target += ", " + c.String(); serr == nil {
			serr = n.exchange(ctx, c)
		}
		err = errors.Join(err, serr)
	}
	return target, errors.Join(err, cl.Thaw())
}

// forge makes one node claim to be the only member of a much later
// configuration of the set, and then restores its own record. No client may
// believe it. If the node has lost its data meanwhile, the record is not
// restored.
func forge(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
	nd, d := n.pick(r), n.length(r)
	nd.Mu.Lock()
	defer nd.Mu.Unlock()
	target := fmt.Sprintf("node %d for %v", nd.ID, d.Round(time.Millisecond))
	key := script.SetKey(setup.Defaults().Prefix)
	own, err := nd.Admin.Get(ctx, key).Result()
	has, ok := nodeset.ParseNodeSet(own)
	if err != nil || !ok || has.Recorded() == nil || has.Config.Member(has.Identity) < 0 {
		return target, errors.Join(fmt.Errorf("%w: the node is no member", fleet.ErrSkip), err)
	}
	c := *has.Config
	c.Stamp, c.Stage = nodeset.StampOf(99, nodeset.NewBallot(time.Now(), r.Uint32(), "")), nodeset.Stable
	c.Members = []nodeset.Member{c.Members[c.Member(has.Identity)]}
	c.Members[0].Role = nodeset.Stays
	forged := fmt.Sprintf("0 0 c %s %s", has.Identity, c.String())
	alive := context.WithoutCancel(ctx)
	if err = nd.Admin.Set(alive, key, forged, 0).Err(); err != nil {
		return target, err
	}
	record.Wait(ctx, d)
	return target, fleet.Insist(func() error {
		const back = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('SET', KEYS[1], ARGV[2]) end return 1"
		return nd.Admin.Eval(alive, back, []string{key}, forged, own).Err()
	})
}
