package core

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
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
	h := &healer{q: q, node: q.nodes[node], inc: inc}
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
		if err != nil && ctx.Err() == nil {
			q.set.Logger.Debug("quorate: a node that has lost its memory cannot be told yet what is recorded", "node", q.nodes[node].addr, "error", err)
		}
		pause = min(2*pause, 4*q.set.NodeTimeout)
	}
}

// healer brings one node what it has forgotten.
type healer struct {
	q    *Quorum
	node *node
	inc  protocol.Incarnation

	listed bool
	names  []string // that it has not been told yet
	all    int
}

// tell brings every record to the node and declares it whole. One client does
// so at a time: all at once would only be slower. What has been told need not be
// told again when something else cannot be told yet.
func (h *healer) tell(ctx context.Context) (done bool, err error) {
	q, client := h.q, h.node.client
	if done, err = h.over(ctx); done || err != nil {
		return done, err
	}
	const turns = 4 // node timeouts
	turn := q.set.Prefix + ":heal"
	if mine, err := client.SetNX(ctx, turn, q.channel, turns*q.set.NodeTimeout).Result(); err != nil || !mine {
		return false, err
	}
	defer func() {
		// Should another have its turn by now, the two do the same twice.
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), q.set.NodeTimeout)
		defer cancel()
		_ = client.Del(after, turn).Err()
	}()
	if !h.listed {
		names, err := q.recorded(ctx, h.node.index)
		if err != nil {
			return false, err
		}
		h.names, h.all, h.listed = slices.Collect(maps.Keys(names)), len(names), true
	}
	var left []string
	var why error
	for some := range slices.Chunk(h.names, 64) {
		errs := make([]error, len(some))
		var wg sync.WaitGroup
		for i, name := range some {
			wg.Go(func() { errs[i] = q.retellOne(ctx, h.node.index, name) })
		}
		wg.Wait()
		for i, err := range errs {
			if err != nil {
				left, why = append(left, some[i]), err
			}
		}
		if err := client.PExpire(ctx, turn, turns*q.set.NodeTimeout).Err(); err != nil {
			return false, err
		}
	}
	if h.names = left; len(left) > 0 {
		return false, why
	}
	return h.declare(ctx)
}

// over reports whether there is nothing to do any more. It fails while the node
// sits out its guard time: before that is over, what others have may yet become more.
func (h *healer) over(ctx context.Context) (bool, error) {
	marker, err := h.q.marker(ctx, h.node)
	if err != nil {
		return false, err
	}
	var inc, born int64
	if _, err := fmt.Sscan(marker, &inc, &born); err != nil {
		return false, err
	}
	if isWhole(marker) || protocol.Incarnation(inc) != h.inc {
		return true, nil // whoever hears next of a new incarnation begins anew
	}
	now, err := h.node.client.Time(ctx).Result()
	if wait := time.Duration(born-now.UnixMilli())*time.Millisecond + h.q.set.Guard; err == nil && wait > 0 {
		err = &RecoveringError{Wait: wait}
	}
	return false, err
}

// declare says that the node has been told everything.
func (h *healer) declare(ctx context.Context) (bool, error) {
	done := make(chan bool, 1)
	h.node.link.Send(&question{command: script.AppendWhole(nil, h.q.set.Prefix, h.inc), reply: func(v []resp.Value, err error) {
		done <- err == nil && len(v) == 1 && v[0].Int == 1
	}})
	select {
	case ok := <-done:
		if ok {
			h.q.set.Logger.Info("quorate: a node that is new or lost its memory has been told all that is recorded", "node", h.node.addr, "records", h.all)
		}
		return ok, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// retellOne brings one name's record to the node.
func (q *Quorum) retellOne(ctx context.Context, node int, name string) error {
	bare, side, _ := strings.Cut(name, "}")
	s, err := q.NewSpec(Spec{Name: bare, side: side, Set: &q.set})
	if err != nil {
		return nil // not one that this library could have written
	}
	each, cancel := context.WithTimeout(ctx, 4*q.set.NodeTimeout)
	defer cancel()
	for decided := false; ; decided = true {
		i := q.inquire(&inquiry{spec: s, in: protocol.Inquiry{Op: protocol.OpRead, Heal: node + 1}})
		if err := i.wait(each); err != nil {
			return err
		}
		if i.outcome() != protocol.Unsettled {
			return nil
		}
		// What a run decides, a majority has: the node need not be one of them.
		if decided || !q.decide(ctx, s) {
			return errUndecided // a run is under way: after it
		}
	}
}

var errUndecided = errors.New("a run is under way that decides what is recorded")

func isWhole(marker string) bool { return strings.HasSuffix(marker, " w") }

// decide has a run of its own find out what the last one, which began and came
// to nothing, has left open: whether a minority's record stands. It reports
// whether it could; not while the name is held.
func (q *Quorum) decide(ctx context.Context, s *Spec) bool {
	s = s.WithWeight(1)
	s.Capacity = 1
	// Whoever sees the name held for longer than this may take it for a run of the work.
	ctx, cancel := context.WithTimeout(ctx, s.Set.NodeTimeout/2)
	defer cancel()
	h, err := q.Acquire(ctx, s, true, nil)
	if err != nil {
		return false
	}
	defer h.Release()
	_, err = q.Register(s).Open(ctx, h)
	return err == nil
}

// recorded returns the names, as "name}side", that have a record on any node but one. What was
// recorded on a majority is on one of any q whole nodes; failing that, all the
// others must be asked.
func (q *Quorum) recorded(ctx context.Context, except int) (map[string]bool, error) {
	names := map[string]bool{}
	whole, all := 0, 0
	errs := make([]error, len(q.nodes))
	enough := func() bool { return whole > len(q.nodes)/2 || all == len(q.nodes)-1 }
	for i, n := range q.nodes { // first whether it can help to look at all
		if i == except {
			continue
		}
		var marker string
		if marker, errs[i] = q.marker(ctx, n); errs[i] == nil {
			all++
			if isWhole(marker) {
				whole++
			}
		}
	}
	if !enough() {
		return nil, q.asked(errs, len(q.nodes)-1)
	}
	whole, all = 0, 0
	for i, n := range q.nodes {
		if i == except || errs[i] != nil {
			continue
		}
		var w bool
		if w, errs[i] = q.list(ctx, n, names); errs[i] == nil {
			all++
			if w {
				whole++
			}
		}
	}
	if enough() {
		return names, nil
	}
	return nil, q.asked(errs, len(q.nodes)-1)
}

func (q *Quorum) marker(ctx context.Context, n *node) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, q.set.NodeTimeout)
	defer cancel()
	return n.client.Get(ctx, script.MarkerKey(q.set.Prefix)).Result()
}

// list adds a node's names, and tells whether the node is whole.
func (q *Quorum) list(ctx context.Context, n *node, names map[string]bool) (whole bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*q.set.NodeTimeout)
	defer cancel()
	marker, err := q.marker(ctx, n)
	if err != nil {
		return false, err
	}
	begin, end := q.set.Prefix+":{", ":r"
	glob := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(begin)
	scan := n.client.Scan(ctx, 0, glob+"*"+end, 1000).Iterator()
	for scan.Next(ctx) {
		name := strings.TrimSuffix(strings.TrimPrefix(scan.Val(), begin), end)
		if strings.Contains(name, "}") {
			names[name] = true
		}
	}
	return isWhole(marker), scan.Err()
}
