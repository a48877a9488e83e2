package core

// The runtime of repair.Repair: it runs the attempts to repair nodes, and asks
// the nodes on their behalf. Every client repairs nodes, whatever primitives it
// uses. A key on the node says which client has the turn. If two clients
// believe that they have it, both copy the same records, which is harmless.

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/flow"
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/peers"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/repair"
	"github.com/quorate/quorate/internal/report"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
)

// repairer runs the attempts to repair nodes. It is safe for concurrent use; mu
// guards the fields below it.
// Invariant: mu is not held while a node is asked, so no event waits for a
// node.
type repairer struct {
	q *claims

	mu     sync.Mutex
	failed [peers.MaxNodes]error // per node: why the last attempt failed; nil if it did not
}

// start carries out a task of a Repair. It does not wait, because claims and
// the readers of answers call it.
func (r *repairer) start(t *repair.Task) {
	if a := t.Attempt; a != nil {
		if !r.q.Tasks.Start(func() { r.attempt(a) }) {
			r.q.Driver.Client.Repaired(r.q.Now(), a) // the client is closed
		}
		return
	}
	r.q.Tasks.Start(func() {
		r.spreadNumber(r.q.Life, t.Number)
		r.q.Driver.Client.Spread(t.Number)
	})
}

// attempt runs an attempt, and logs how it ended.
func (r *repairer) attempt(a *repair.Attempt) {
	a.Run(asker{r, a.Node})
	report, do := r.q.Driver.Client.Repaired(r.q.Now(), a)
	err := r.keepFailure(a.Node, report)
	r.q.Driver.CarryOut(do)
	if report != nil {
		r.log(a.Node, report, err)
	}
}

var errUndecided = errors.New("another client is deciding what is recorded")

// keepFailure stores why an attempt has failed, for the method why, and returns
// it.
func (r *repairer) keepFailure(node int, rep *repair.Report) error {
	if rep == nil {
		return nil
	}
	err := rep.Err
	if few, is := errors.AsType[*repair.TooFew](err); is {
		few.Nodes[node] = fault.ErrForgetful // the node being repaired is not asked itself
		f := &fault.Failure{Err: fault.ErrNoQuorum, Needed: r.q.Count() - 1}
		for i, why := range few.Nodes {
			if why != nil {
				f.Nodes = append(f.Nodes, fault.NodeFailure{Addr: r.q.Addr(i), Err: why})
			}
		}
		err = f
	} else if errors.Is(err, repair.ErrUndecided) {
		err = errUndecided
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed[node] = err
	return err
}

// log logs that the node is caught up, or why an attempt has failed.
func (r *repairer) log(node int, rep *repair.Report, err error) {
	addr := r.q.Nodes.At(node).Addr
	if err == nil {
		if rep.Names > 0 {
			r.q.Set.Logger.Info("quorate: node got back the records that it had lost",
				"node", addr, "records", rep.Names)
		} else { // a new node, too, which has lost nothing
			r.q.Set.Logger.Debug("quorate: node has caught up; there was nothing to bring back", "node", addr)
		}
		r.q.Observer.Call(setup.Event{Kind: setup.EventNodeCaughtUp, Node: addr})
		return
	}
	r.q.Set.Logger.Debug("quorate: node cannot be repaired yet; retrying", "node", addr, "error", err)
	if rep.Warn {
		r.q.Set.Logger.Warn("quorate: node lost its data and cannot be repaired, so Once, elections and Resize do "+
			"not count it; "+
			report.Remedy, "node", addr, "error", err)
	}
}

// why returns why the last attempt to repair a node failed. It is nil if the
// attempt did not fail, or if another client had the turn.
func (r *repairer) why(n *peers.Node) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed[n.Index]
}

// await waits until a repair of the node, if one is in progress, has been
// attempted once.
func (r *repairer) await(ctx context.Context, n *peers.Node) {
	r.q.Until(ctx, func() bool { return r.q.Driver.Client.Attempted(n.Index) })
}

// turn returns the key that names the client whose turn it is to repair a node.
func (r *repairer) turn() string { return script.TurnKey(r.q.Set.Prefix) }

func millis(d time.Duration) string { return strconv.FormatInt(max(1, d.Milliseconds()), 10) }

// send sends a command to a node, and does not wait for the answer.
func (r *repairer) send(node int, words ...string) {
	r.q.Nodes.At(node).Send(&flow.Request{Command: resp.AppendCommand(nil, words...)})
}

// answer sends a short command to a node and returns the answer.
func (r *repairer) answer(node int, command []byte) ([]resp.Value, error) {
	n := r.q.Nodes.At(node)
	ctx, cancel := context.WithTimeout(r.q.Life, n.Timeout(&r.q.Set))
	defer cancel()
	return n.Answer(ctx, command)
}

// asker is the repair.IO of an attempt at a node.
// Invariant: each question ends soon after Close, and otherwise within ten node
// timeouts or the time that a few questions to a majority take.
type asker struct {
	*repairer
	node int
}

func (a asker) Group() protocol.Group  { return a.q.Driver.Client.Group() }
func (asker) Permanent(err error) bool { return fault.Permanent(err) }

// Each runs f n times, each in its own goroutine, and returns when all have
// ended.
func (a asker) Each(n int, f func(io repair.IO, k int)) {
	var under sync.WaitGroup
	for k := range n {
		under.Go(func() { f(a, k) })
	}
	under.Wait()
}

func (a asker) Look(node int, clock bool) (repair.Marker, error) {
	home := a.q.Members.Home()
	m, err := a.lookAt(a.q.Life, a.q.Nodes.At(node), home.Marker(a.q.Set.Prefix), clock)
	m.Home = string(home)
	return m, err
}

// TakeTurn takes the turn at the node being repaired. One SET with NX and PX
// does that.
func (a asker) TakeTurn(d time.Duration) (bool, error) {
	for _, n := range a.q.Nodes.All() {
		// The connection may still be starting, and a process that ends soon
		// should still repair.
		n.Tried(a.q.Life)
	}
	turn := script.TurnOf(a.q.Channel, -1)
	v, err := a.answer(a.node, resp.AppendCommand(nil, "SET", a.turn(), turn, "PX", millis(d), "NX"))
	return flow.Text(v, 0) == "OK", err
}

// Every calls f regularly from one goroutine. stop waits until that goroutine
// has ended.
func (a asker) Every(d time.Duration, f func()) (stop func()) {
	var under sync.WaitGroup
	over, tick := make(chan struct{}), time.NewTicker(d)
	under.Go(func() {
		for {
			select {
			case <-tick.C:
				f()
			case <-over:
				return
			}
		}
	})
	return func() {
		tick.Stop()
		close(over)
		under.Wait()
	}
}

// Prolong extends the turn. XX makes it fail if the turn has expired, so that
// the next client can take it. If another client has taken it by now, the key
// names this client again, and both copy the same records. left is stored with
// the turn, and Check shows it in any client.
func (a asker) Prolong(d time.Duration, left int) {
	a.send(a.node, "SET", a.turn(), script.TurnOf(a.q.Channel, left), "PX", millis(d), "XX")
}

// YieldTurn gives up the turn. If another client has the turn by now, the work
// is merely done twice.
func (a asker) YieldTurn() { a.send(a.node, "DEL", a.turn()) }

// Mark marks the node as caught up. The script compares the incarnation: a node
// that has lost its data again since the names were listed stays unmarked,
// because it lacks the records copied before that. So does a node that has moved:
// its marker has another key.
func (a asker) Mark(inc protocol.Incarnation, home string) (bool, error) {
	v, err := a.answer(a.node, script.AppendCaughtUp(nil, script.Home(home).Marker(a.q.Set.Prefix), inc))
	return len(v) == 1 && v[0].Int == 1, err
}

// Read reads a record without counting the node being repaired: a node that has
// lost its data is no evidence of what was recorded
// (docs/internals/protocol.md, The record, 4).
func (a asker) Read(name string, succession bool) (lease.Outcome, error) {
	s, err := a.specOf(name, succession)
	if err != nil {
		// Another program or a later version may have created such a key.
		return lease.Settled, nil // no register has this name
	}
	ctx, cancel := context.WithTimeout(a.q.Life, a.q.Rounds(&a.q.Set, 4))
	defer cancel()
	i := a.q.Register(s).start(&registerCall{op: lease.RegisterOp{Op: protocol.OpRead, Repair: a.node + 1}})
	err = i.wait(ctx)
	return i.outcome(), err
}

func (a asker) Decide(name string, succession bool) (bool, error) {
	spec, err := a.specOf(name, succession)
	return err == nil && a.q.Register(spec).decide(a.q.Life), err
}

// specOf returns the spec for a name that a node has listed as "name}side". A
// name contains no brace (CheckName), so the first brace ends it. The lease is
// one that the set's guard time covers: the nodes refuse a longer one.
func (a asker) specOf(name string, succession bool) (*Spec, error) {
	set := a.q.Set
	if c := a.q.Members.Config.Load(); c != nil {
		set.TTL = min(set.TTL, c.LongestTTL())
	}
	bare, side, _ := strings.Cut(name, "}")
	return a.q.NewSpec(Spec{Name: bare, side: side, decidesSuccessor: succession, Set: &set})
}

// List lists a portion of the names that have a record on a node, each as
// "name}side". SCAN returns every name that exists throughout the scan at least
// once.
func (a asker) List(node int, cursor string) (names []string, next string, err error) {
	// A name may contain any byte, so characters that are special in SCAN's
	// patterns are quoted. COUNT bounds a portion: Redis looks at a thousand
	// keys, which takes a few tenths of a millisecond, and the next portion is
	// another command.
	n, begin, end := a.q.Nodes.At(node), a.q.Set.Prefix+":{", ":r"
	glob := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(begin) + "*" + end
	ctx, cancel := context.WithTimeout(a.q.Life, 10*n.Timeout(&a.q.Set))
	defer cancel()
	if err := a.hasSlot(ctx, n); err != nil {
		return nil, "", err
	}
	v, err := n.Do(ctx, "SCAN", cursor, "MATCH", glob, "COUNT", "1000")
	if err == nil {
		err = a.hasSlot(ctx, n)
	}
	if err != nil {
		return nil, "", err
	}
	for i := 1; i < len(v); i++ {
		name := strings.TrimPrefix(flow.Text(v, i), begin)
		if name = strings.TrimSuffix(name, end); strings.Contains(name, "}") {
			names = append(names, name)
		}
	}
	if next = flow.Text(v, 0); next == "" {
		err = script.ErrAnswer
	}
	return names, next, err
}

// hasSlot fails if the server does not have the whole slot of this bucket. A
// server that is handing a slot over refuses a command with several keys if it
// lacks one of them. It always lacks AbsentKey, so it refuses this EXISTS. A node
// without buckets passes.
// Invariant: a listing begins and ends on a server that has the whole slot. SCAN
// names no key, so a server answers it even while the slot is moving away, without
// the names that have already moved.
func (r *repairer) hasSlot(ctx context.Context, n *peers.Node) error {
	if n.Slot == "" { //mutant:WholeSlot=true
		return nil
	}
	_, err := n.Do(ctx, "EXISTS", n.Slot, script.AbsentKey(n.Slot))
	return err
}

// lookAt reads a node's marker, stored at key, and the time left of its guard
// time.
func (r *repairer) lookAt(ctx context.Context, n *peers.Node, key string, clock bool) (repair.Marker, error) {
	// Ask for the time only if the node's guard time may be running. Most nodes
	// are healthy, so one command is enough.
	m, err := n.Marker(ctx, key)
	shown := repair.Marker{Incarnation: m.Inc, CaughtUp: m.CaughtUp, Kept: m.Kept, Run: n.Info().Run()}
	if err != nil || !clock || m.CaughtUp {
		return shown, err
	}
	ctx, cancel := context.WithTimeout(ctx, n.Timeout(&r.q.Set))
	defer cancel()
	now, err := timeOf(ctx, n)
	if err == nil {
		shown.Wait = m.Recovers(now)
	}
	return shown, err
}

// spreadNumber brings a semaphore's number of permits to the nodes that have
// missed it.
func (r *repairer) spreadNumber(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(ctx, r.q.Rounds(&r.q.Set, 4))
	defer cancel()
	_, err := number(r.q, name, &r.q.Set).read(ctx, lease.RegisterOp{Op: protocol.OpRead, All: true},
		protocol.Terms{})
	if err != nil {
		r.q.Set.Logger.Debug("quorate: cannot copy a Resize to the node that missed it; retrying", "name", name,
			"error", err)
	}
}
