package core

// This file owns the steps of repairs: reading markers, taking turns, listing
// names, reading records. Which step comes next is repair.Repair's to say.
// Each client repairs, whatever primitives it uses, and a key at the nodes says
// whose turn it is. If two clients believe that it is theirs, both bring the
// same records, and no harm is done.

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

// repairer takes the steps that process.Client says, and reports how each has
// ended. It is safe for concurrent use; mu guards the fields below it.
// Invariant: mu is not held while a step is taken, so no event waits for a
// node.
type repairer struct {
	q      *operations
	mu     sync.Mutex
	failed [peers.MaxNodes]error // per node: why the last attempt has failed; nil: it has not
}

// start has a step taken, by a task: the logger and the observer may block, and
// claims and the readers of answers must not wait for these.
func (r *repairer) start(s *repair.RepairStep) {
	if s.Kind == repair.RepairYield { // should another client have its turn by now, the two do the same twice
		r.q.Nodes.At(s.Node).Send(&flow.Request{Command: resp.AppendCommand(nil, "DEL", r.turn())})
		return
	}
	if !r.q.Tasks.Start(func() { r.step(s) }) && s.Reported() {
		r.done(s, repair.RepairResult{Err: fault.ErrClosed})
	}
}

// done reports the end of a step, also after Close has begun: then the turn is
// given up.
func (r *repairer) done(s *repair.RepairStep, res repair.RepairResult) {
	r.q.Driver.CarryOut(r.q.Driver.Client.StepDone(r.q.Now(), s, res))
}

// step takes a step and reports how it has ended.
func (r *repairer) step(s *repair.RepairStep) {
	if !s.Reported() {
		r.log(s, r.outcome(s))
		return
	}
	res := r.take(s)
	res.ForGood = res.Err != nil && fault.ForGood(res.Err)
	r.done(s, res)
}

var errUndecided = errors.New("another client is deciding what is recorded")

// log logs why an attempt has failed, or that the node is caught up.
func (r *repairer) log(s *repair.RepairStep, err error) {
	addr := r.q.Nodes.At(s.Target).Addr
	if s.Kind == repair.RepairDone {
		r.q.Set.Logger.Info("quorate: node has been repaired and has caught up", "node", addr, "records", s.Count)
		r.q.Observer.Call(setup.Event{Kind: setup.EventNodeCaughtUp, Node: addr})
		return
	}
	r.q.Set.Logger.Debug("quorate: node cannot be repaired yet; retrying", "node", addr, "error", err)
	if s.Warn {
		r.q.Set.Logger.Warn("quorate: node lost its data and cannot be repaired, so Once, elections and Resize do not count it; "+
			report.Remedy, "node", addr, "error", err)
	}
}

// await waits until a repair of the node that is under way was attempted once.
func (r *repairer) await(ctx context.Context, n *peers.Node) {
	r.q.Until(ctx, func() bool { return r.q.Driver.Client.Attempted(n.Index) })
}

// turn is the key of the client whose turn it is to repair a node.
func (r *repairer) turn() string { return script.TurnKey(r.q.Set.Prefix) }

// take takes a step. Invariant: it ends, within ten node timeouts or what a few
// questions to a majority take.
func (r *repairer) take(s *repair.RepairStep) (res repair.RepairResult) {
	q, ctx, n := r.q, r.q.Life, r.q.Nodes.At(s.Node)
	switch s.Kind {
	case repair.RepairLook:
		return r.lookAt(ctx, n, q.Members.MarkerKey(), s.Node == s.Target)
	case repair.RepairTurn:
		// It is taken at the node that is repaired, and read from others.
		for _, n := range q.Nodes.All() {
			n.Tried(ctx) // a process connects to all nodes at the same time, and may end soon
		}
		// NX and PX are the whole of the turn.
		v, err := r.ask(n, "SET", r.turn(), script.TurnOf(q.Channel, -1), "PX", millis(s.For), "NX")
		return repair.RepairResult{Err: err, OK: flow.Text(v, 0) == "OK"}
	// XX: a turn that has expired stays over, so the next client can take it.
	// If one has it by now, the key names this client again, and both bring the
	// same records. Check of any client shows the number.
	case repair.RepairStay:
		_, res.Err = r.ask(n, "SET", r.turn(), script.TurnOf(q.Channel, s.Count), "PX", millis(s.For), "XX")
	case repair.RepairList:
		res.Names, res.Cursor, res.Err = r.listNames(ctx, n, s.Cursor)
	case repair.RepairRead:
		return r.repairName(ctx, s)
	case repair.RepairDecide:
		spec, err := r.specOf(s)
		return repair.RepairResult{Err: err, OK: err == nil && q.Register(spec).decide(ctx)}
	// The script compares the incarnation. A node that has lost its data again
	// since the names were listed stays unmarked, as it lacks what was brought
	// before.
	case repair.RepairMark:
		v, err := r.answer(q.Nodes.At(s.Target), script.AppendCaughtUp(nil, q.Members.MarkerKey(), s.Incarnation))
		return repair.RepairResult{Err: err, OK: len(v) == 1 && v[0].Int == 1}
	case repair.RepairSpread:
		res.Err = r.spreadNumber(ctx, s.Name)
	}
	return res
}

func millis(d time.Duration) string { return strconv.FormatInt(max(1, d.Milliseconds()), 10) }

// why returns why the last attempt to repair a node has failed; nil: it has
// not, or another client had the turn.
func (r *repairer) why(n *peers.Node) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed[n.Index]
}

// outcome returns why an attempt has failed, nil if it has not, and keeps that
// for why. It runs in the goroutine of a step that only reports, before the
// logger is called.
func (r *repairer) outcome(s *repair.RepairStep) error {
	q, err := r.q, s.Err
	switch {
	case s.Kind == repair.RepairDone:
	case errors.Is(err, repair.ErrUndecided):
		err = errUndecided
	case err == nil:
		s.Nodes[s.Target] = fault.ErrForgetful // it is not one of those that are asked
		f := &fault.Failure{Err: fault.ErrNoQuorum, Needed: q.Count() - 1}
		for i, why := range s.Nodes {
			if why != nil {
				f.Nodes = append(f.Nodes, fault.NodeFailure{Addr: q.Addr(i), Err: fault.NamesAge(why)})
			}
		}
		err = f
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed[s.Target] = err
	return err
}

// ask asks a node for something that takes it no time.
func (r *repairer) ask(n *peers.Node, words ...string) ([]resp.Value, error) {
	return r.answer(n, resp.AppendCommand(nil, words...))
}

func (r *repairer) answer(n *peers.Node, command []byte) ([]resp.Value, error) {
	ctx, cancel := context.WithTimeout(r.q.Life, n.Timeout(&r.q.Set))
	defer cancel()
	return n.Answer(ctx, command)
}

// lookAt reads a node's marker, at key, and what is left of its guard time.
func (r *repairer) lookAt(ctx context.Context, n *peers.Node, key string, clock bool) (res repair.RepairResult) {
	// The time is asked only of a node whose guard time may run: most looks are
	// at healthy nodes, and take one command.
	m, err := n.Marker(ctx, key)
	res = repair.RepairResult{Err: err, Incarnation: m.Inc, CaughtUp: m.CaughtUp, Kept: m.Kept, Run: n.Info().Run()}
	if err != nil || !clock || m.CaughtUp {
		return res
	}
	ctx, cancel := context.WithTimeout(ctx, n.Timeout(&r.q.Set))
	defer cancel()
	v, err := n.Do(ctx, "TIME")
	var now time.Time
	if err == nil {
		now, err = script.DecodeTime(v)
	}
	if res.Err = err; err == nil {
		res.Wait = m.Recovers(now)
	}
	return res
}

// listNames lists a portion of the names, as "name}side", that have a record on
// a node. SCAN gives each name that is there throughout at least once.
func (r *repairer) listNames(ctx context.Context, n *peers.Node, cursor string) (names []string, next string, err error) {
	// A name may hold any byte, so what is special to SCAN's patterns is
	// quoted. A portion is bounded by COUNT: Redis looks at a thousand keys,
	// some tenths of a millisecond, and the next portion is another command.
	begin, end := r.q.Set.Prefix+":{", ":r"
	glob := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(begin) + "*" + end
	ctx, cancel := context.WithTimeout(ctx, 10*r.q.Set.NodeTimeout)
	defer cancel()
	if err := r.hasSlot(ctx, n); err != nil {
		return nil, "", err
	}
	v, err := n.Do(ctx, "SCAN", cursor, "MATCH", glob, "COUNT", "1000")
	if err == nil {
		err = r.hasSlot(ctx, n)
	}
	if err != nil {
		return nil, "", err
	}
	for i := 1; i < len(v); i++ {
		if name := strings.TrimSuffix(strings.TrimPrefix(flow.Text(v, i), begin), end); strings.Contains(name, "}") {
			names = append(names, name)
		}
	}
	if next = flow.Text(v, 0); next == "" {
		err = script.ErrAnswer
	}
	return names, next, err
}

// hasSlot fails unless the server has all keys of the bucket, if the node has
// buckets.
// Invariant: a listing begins and ends on a server that has the whole slot.
// SCAN has no keys, so the server that the slot has left answers it: without
// the names that have moved.
func (r *repairer) hasSlot(ctx context.Context, n *peers.Node) error {
	if n.Slot == "" { //mutant:WholeSlot=true
		return nil
	}
	_, err := n.Do(ctx, "EXISTS", n.Slot, script.AbsentKey(n.Slot))
	return err
}

// specOf returns the spec of a name as nodes list it: "name}side". A name has
// no brace (CheckName), so the first one ends it.
func (r *repairer) specOf(step *repair.RepairStep) (*Spec, error) {
	bare, side, _ := strings.Cut(step.Name, "}")
	return r.q.NewSpec(Spec{Name: bare, side: side, succession: step.Succession, Set: &r.q.Set})
}

// repairName brings one name's record to a node. It is a read that does not
// count the target: what a node that has forgotten says of a record is no
// evidence (docs/internals/protocol.md, The record, 4).
func (r *repairer) repairName(ctx context.Context, step *repair.RepairStep) repair.RepairResult {
	s, err := r.specOf(step)
	if err != nil {
		// Another program, or a later version, may have made such a key.
		return repair.RepairResult{Outcome: lease.Settled} // there is no register of this name
	}
	ctx, cancel := context.WithTimeout(ctx, r.q.Rounds(&r.q.Set, 4))
	defer cancel()
	i := r.q.Register(s).start(&registerCall{in: lease.RegisterOp{Op: protocol.OpRead, Repair: step.Target + 1}})
	err = i.wait(ctx)
	return repair.RepairResult{Err: err, Outcome: i.outcome()}
}

// spreadNumber brings a semaphore's permits to the nodes that have missed them.
func (r *repairer) spreadNumber(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, r.q.Rounds(&r.q.Set, 4))
	defer cancel()
	_, err := r.q.number(name, &r.q.Set).read(ctx, lease.RegisterOp{Op: protocol.OpRead, All: true}, protocol.Terms{})
	if err != nil {
		r.q.Set.Logger.Debug("quorate: cannot copy a Resize to the node that missed it; retrying", "name", name, "error", err)
	}
	return err
}
