package core

import (
	"cmp"
	"context"
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

// heal tells a node that has lost its memory what the others have recorded, in
// the background, once at a time. Until it has been told everything, the node
// does not count as a witness that something is not recorded.
func (q *Quorum) heal(node int, inc protocol.Incarnation) {
	r := &q.records
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.healing[node] || q.isClosed() {
		return
	}
	r.healing[node] = true
	r.tasks.Go(func() {
		q.healing(node, inc)
		r.mu.Lock()
		delete(r.healing, node)
		r.mu.Unlock()
	})
}

// healing tries until it is done, for about a minute; whoever hears next that
// the node is not whole goes on.
func (q *Quorum) healing(node int, inc protocol.Incarnation) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-q.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	h := &healer{q: q, node: q.nodes[node], inc: inc, chunk: most}
	pause := q.set.NodeTimeout / 16
	for range 24 {
		// Every client does this: they shall not do it at the same moment.
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(rand.Int64N(int64(pause) + 1))):
		}
		done, err := h.tell(ctx)
		if done {
			return
		}
		if h.why = cmp.Or(err, h.why); err != nil && ctx.Err() == nil {
			q.set.Logger.Debug("quorate: a node that has lost its memory cannot be told yet what is recorded", "node", q.nodes[node].addr, "error", err)
		}
		pause = min(2*pause, 4*q.set.NodeTimeout)
	}
	if h.why != nil {
		q.set.Logger.Warn("quorate: a node that has lost its memory could not be told for some time what is recorded; it is no witness of what has not been done", "node", q.nodes[node].addr, "error", h.why)
	}
}

// most is of how many names a node is told at a time: not so much that its link would break.
const most = 64

// healer brings one node what it has forgotten.
type healer struct {
	q    *Quorum
	node *node
	inc  protocol.Incarnation

	listed bool
	names  []string // that it has not been told yet
	all    int
	chunk  int   // told at a time
	why    error // not yet
}

// tell brings every record to the node and declares it whole. One client does
// so at a time: all at once would only be slower. What has been told need not be
// told again when something else cannot be told yet.
func (h *healer) tell(ctx context.Context) (done bool, err error) {
	q := h.q
	if done, err = h.over(ctx); done || err != nil {
		return done, err
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
	ctx, cancel := context.WithTimeout(ctx, h.q.set.NodeTimeout)
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
	if m.whole || m.inc != h.inc {
		return true, nil // whoever hears next of a new incarnation begins anew
	}
	v, err := h.do(ctx, "TIME")
	if err != nil {
		return false, err
	}
	now, err := decodeTime(v)
	if wait := m.born.Add(h.q.set.Guard).Sub(time.UnixMilli(now)); err == nil && wait > 0 {
		err = &RecoveringError{Wait: wait}
	}
	return false, err
}

// declare says that the node has been told everything.
func (h *healer) declare(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, h.q.set.NodeTimeout)
	defer cancel()
	v, err := h.node.answer(ctx, script.AppendWhole(nil, h.q.set.Prefix, h.inc))
	if err != nil || len(v) != 1 || v[0].Int != 1 {
		return false, err
	}
	h.q.set.Logger.Info("quorate: a node that is new or lost its memory has been told all that is recorded", "node", h.node.addr, "records", h.all)
	return true, nil
}
