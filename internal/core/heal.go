package core

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// heal repairs a node that lost its data: it brings the node what the other
// nodes have recorded, in the background, one task per node. Until that is done
// the node may not attest that something was not recorded.
//
// Every client calls heal for every node it connects to, whatever it uses itself.
// If only users of records did so, a fleet that holds locks would let a second node
// restart while the first is not caught up yet, and what was recorded would be lost.
func (q *Quorum) heal(n *node) {
	r := &q.records
	r.mu.Lock()
	defer r.mu.Unlock()
	if q.isClosed() {
		return
	}
	if h := r.healing[n.index]; h != nil {
		h.again = true // it may have just found the node caught up, before the node lost its data
		return
	}
	h := &healer{q: q, node: n, chunk: most, tried: make(chan struct{}), stir: make(chan struct{}, 1)}
	r.healing[n.index] = h
	r.tasks.Go(h.run)
}

// healMore has nodes that could not be repaired so far be tried now: another
// node is back, which may be the one whose answer was missing.
func (q *Quorum) healMore() {
	q.records.mu.Lock()
	defer q.records.mu.Unlock()
	for _, h := range q.records.healing {
		select {
		case h.stir <- struct{}{}:
		default:
		}
	}
}

// Healed waits until every repair under way has been attempted once, ctx ends, or
// ten node timeouts have passed. So a process that is about to end does not
// leave a repair half-done, and waits neither for a guard time nor for a node that
// cannot be reached. What a node has been told stays told: the next client that
// repairs it goes on from there.
func (q *Quorum) Healed(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*q.set.NodeTimeout)
	defer cancel()
	for _, n := range q.nodes {
		q.healed(ctx, n)
	}
}

func (q *Quorum) healed(ctx context.Context, n *node) {
	q.records.mu.Lock()
	h := q.records.healing[n.index]
	q.records.mu.Unlock()
	if h == nil {
		return
	}
	select {
	case <-h.tried:
	case <-ctx.Done():
	}
}

// most is how many names are repaired on a node at a time: not so many that its link would break.
const most = 64

// healer repairs one node. Only the goroutine of run uses it, but for stir,
// tried and what says otherwise.
type healer struct {
	q     *Quorum
	node  *node
	stir  chan struct{} // try again now
	tried chan struct{} // closed after the first attempt
	again bool          // guarded by records.mu: heal has been called since

	inc    protocol.Incarnation // in which it is repaired
	listed bool
	names  []string // that are not repaired there yet
	all    int
	chunk  int // told at a time
}

// healAttempts is after how many attempts a node that cannot be repaired is
// logged, and the pauses get longer: after about ten seconds by default.
const healAttempts = 24

// run tries until the node is caught up, or its connection is gone: the next
// connection begins again.
func (h *healer) run() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-h.q.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	select {
	case <-h.q.built:
	case <-ctx.Done():
		close(h.tried)
		return
	}
	set := &h.q.set
	pause := set.NodeTimeout / 16
	for attempts := 1; ; attempts++ {
		done, err := h.tell(ctx)
		if attempts == 1 {
			close(h.tried)
		}
		if done || ctx.Err() != nil || h.node.err() != nil {
			if h.end() {
				return
			}
			continue
		}
		longest := 4 * set.NodeTimeout
		if attempts >= healAttempts {
			longest = max(longest, set.Guard/2)
		}
		pause = min(2*pause, longest)
		wait := time.Duration(0)
		if r, recovering := errors.AsType[*RecoveringError](err); recovering {
			wait = r.Wait
			attempts, pause = 1, set.NodeTimeout
		} else if err != nil {
			h.report(attempts, err)
		}
		// Every client does this: their attempts are spread.
		select {
		case <-ctx.Done():
		case <-time.After(wait + time.Duration(rand.Int64N(int64(pause)+1))):
		case <-h.stir:
			pause = set.NodeTimeout / 16
		}
	}
}

// end ends the task, unless heal has been called meanwhile and the task can go on.
func (h *healer) end() bool {
	r := &h.q.records
	r.mu.Lock()
	defer r.mu.Unlock()
	if h.again && h.node.err() == nil && !h.q.isClosed() {
		h.again = false
		return false
	}
	delete(r.healing, h.node.index)
	return true
}

func (h *healer) report(attempts int, err error) {
	log := h.q.set.Logger
	log.Debug("quorate: a node that lost its data cannot be repaired yet", "node", h.node.addr, "error", err)
	if attempts == healAttempts && !forGood(err) { // a client that lacks a right leaves it to others
		log.Warn("quorate: a node that lost its data cannot be repaired, so it cannot attest that something was not recorded; "+
			untoldRemedy, "node", h.node.addr, "error", err)
	}
}

// untoldRemedy is what to do about a node that cannot be repaired.
const untoldRemedy = "start the nodes that are down: any connected client then repairs it within seconds; " +
	"if they are gone for good, wait until no node is within its guard time and run \"quorate bootstrap\" with the nodes that are left, which declares what these know to be all there is"

// tell brings every record to the node and declares it whole. One client does
// so at a time: all at once would only be slower. What has been told need not be
// told again when something else cannot be told yet.
func (h *healer) tell(ctx context.Context) (done bool, err error) {
	q := h.q
	if done, err = h.over(ctx); done || err != nil {
		return done, err
	}
	for _, n := range q.nodes {
		n.tried(ctx) // a process connects to all nodes at the same time, and may end soon
	}
	turn := q.set.Prefix + ":heal"
	turns := strconv.FormatInt(max(1, (4*q.set.NodeTimeout).Milliseconds()), 10)
	if v, err := h.do(ctx, "SET", turn, q.channel, "PX", turns, "NX"); err != nil || text(v, 0) != "OK" {
		return false, err
	}
	defer func() {
		// Should another have its turn by now, the two do the same twice.
		_, _ = h.do(context.WithoutCancel(ctx), "DEL", turn)
	}()
	stay := func() error { // the turn lasts
		_, err := h.do(ctx, "PEXPIRE", turn, turns)
		return err
	}
	if !h.listed {
		names, err := q.recorded(ctx, h.node.index, stay)
		if err != nil {
			return false, err
		}
		h.names, h.all, h.listed = slices.Collect(maps.Keys(names)), len(names), true
	}
	var why error
	for todo := len(h.names); todo > 0; {
		some := h.names[:min(h.chunk, todo)]
		left, err := h.retell(ctx, some)
		why = cmp.Or(err, why)
		// What cannot be told now comes after the others, which need not wait for it.
		h.names, todo = append(h.names[len(some):], left...), todo-len(some)
		if len(left) == len(some) { // the others would fail, too; or they were too much at a time
			h.chunk = max(1, h.chunk/4)
			return false, err
		}
		h.chunk = min(2*h.chunk, most)
		if err := stay(); err != nil {
			return false, err
		}
	}
	if len(h.names) > 0 {
		return false, why
	}
	return h.declare(ctx)
}

// retell tells the node of some names, and returns those that it could not be told of.
func (h *healer) retell(ctx context.Context, names []string) (left []string, why error) {
	errs := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() { errs[i] = h.q.retellOne(ctx, h.node.index, name) })
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			left, why = append(left, names[i]), err
		}
	}
	return left, why
}

// do asks the node for something that takes it no time.
func (h *healer) do(ctx context.Context, words ...string) ([]resp.Value, error) {
	ctx, cancel := context.WithTimeout(ctx, h.node.timeout(&h.q.set))
	defer cancel()
	return h.node.do(ctx, words...)
}

// over reports whether there is nothing to do any more. It fails while the node
// sits out its guard time: before that is over, what others have may yet become more.
func (h *healer) over(ctx context.Context) (bool, error) {
	m, err := h.q.marker(ctx, h.node)
	if err != nil {
		return false, err
	}
	if m.whole {
		return true, nil
	}
	if m.inc != h.inc { // it has lost its data again
		h.inc, h.listed, h.names, h.chunk = m.inc, false, nil, most
	}
	v, err := h.do(ctx, "TIME")
	if err != nil {
		return false, err
	}
	now, err := decodeTime(v)
	if wait := m.recovers(time.UnixMilli(now), h.q.set.Guard); err == nil && wait > 0 {
		err = &RecoveringError{Wait: wait}
	}
	return false, err
}

// declare says that the node has been told everything.
func (h *healer) declare(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, h.node.timeout(&h.q.set))
	defer cancel()
	v, err := h.node.answer(ctx, script.AppendWhole(nil, h.q.set.Prefix, h.inc))
	if err != nil || len(v) != 1 || v[0].Int != 1 {
		return false, err
	}
	h.q.set.Logger.Info("quorate: a node that is new or lost its data has been repaired: it can attest again", "node", h.node.addr, "records", h.all)
	return true, nil
}
