package core

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
)

// retellOne brings one name's record to the node.
func (q *Quorum) retellOne(ctx context.Context, node int, name string) error {
	bare, side, _ := strings.Cut(name, "}")
	s, err := q.NewSpec(Spec{Name: bare, side: side, Set: &q.set})
	if err != nil {
		return nil // not one that this library could have written
	}
	each, cancel := context.WithTimeout(ctx, q.Rounds(&q.set, 4))
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

// decide has a run of its own find out what the last one, which began and came
// to nothing, has left open: whether a minority's record stands. It reports
// whether it could; not while the name is held.
func (q *Quorum) decide(ctx context.Context, s *Spec) bool {
	s = s.WithWeight(1)
	s.Capacity = 1
	// Whoever sees the name held for longer than this may take it for a run of the work.
	// To claim it and to open takes two round trips, and three where claims meet.
	ctx, cancel := context.WithTimeout(ctx, max(s.Set.NodeTimeout/2, min(4*q.trip(0), s.Set.TTL/2)))
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
// others must be asked. Whoever cannot be is an error: it may be the only one that knows.
// They may be many: next is called before each step.
func (q *Quorum) recorded(ctx context.Context, except int, next func() error) (map[string]bool, error) {
	names := map[string]bool{}
	errs := make([]error, len(q.nodes))
	errs[except] = errForgetful // it is not one of those that answer
	enough := func(look func(context.Context, *node) (marker, error)) bool {
		whole, all := 0, 0
		for i, n := range q.nodes {
			if errs[i] != nil {
				continue
			}
			var m marker
			if m, errs[i] = look(ctx, n); errs[i] == nil {
				all++
				if m.whole {
					whole++
				}
			}
		}
		return rules().Told(len(q.nodes), whole, all)
	}
	// First whether it can help to look at all.
	if enough(q.marker) && enough(func(ctx context.Context, n *node) (marker, error) { return q.list(ctx, n, names, next) }) {
		return names, nil
	}
	return nil, &Failure{Err: ErrNoQuorum, Needed: len(q.nodes) - 1, Nodes: q.failed(errs)}
}

// Bounds of what one node may list. A node whose cursor never returns to 0 would
// otherwise fill this process's memory, or keep it busy.
const (
	maxNames = 128 << 20 // bytes of all names, with perName for each
	perName  = 64
	maxSteps = 100_000 // of at least 1,000 keys each, on a server that tells the truth
)

var errEndless = fmt.Errorf("lists more than %d MB of names, or without end", maxNames>>20)

// list adds a node's names, and tells whether the node was whole before.
func (q *Quorum) list(ctx context.Context, n *node, names map[string]bool, next func() error) (marker, error) {
	run := n.info().RunID
	m, err := q.marker(ctx, n)
	if err != nil {
		return m, err
	}
	begin, end := q.set.Prefix+":{", ":r"
	glob := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(begin) + "*" + end
	size := 0
	for cursor, steps := "0", 0; ; steps++ {
		if steps == maxSteps || size > maxNames {
			return m, errEndless
		}
		if err := next(); err != nil {
			return m, err
		}
		step, cancel := context.WithTimeout(ctx, 10*q.set.NodeTimeout)
		v, err := n.do(step, "SCAN", cursor, "MATCH", glob, "COUNT", "1000")
		cancel()
		if err != nil {
			return m, err
		}
		for i := 1; i < len(v); i++ {
			name := strings.TrimSuffix(strings.TrimPrefix(text(v, i), begin), end)
			if strings.Contains(name, "}") && !names[name] {
				names[name] = true
				size += len(name) + perName
			}
		}
		if cursor = text(v, 0); cursor == "0" {
			break
		}
		if cursor == "" {
			return m, script.ErrAnswer
		}
	}
	// It has not lost its memory while it was read, and the cursor was of one run.
	switch after, err := q.marker(ctx, n); {
	case err != nil:
		return m, err
	case after.inc != m.inc || n.info().RunID != run:
		return m, errForgetful
	}
	return m, nil
}
