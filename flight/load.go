package flight

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/protocol"
)

// record is a result as the nodes keep it.
type record struct {
	Version int             `json:"flight"` // of this format
	At      int64           `json:"at"`     // when it was loaded, by the nodes' clocks, in Unix microseconds
	Value   json.RawMessage `json:"value"`
}

// format is the Version that is written.
const format = 1

// loader is one call, with its claim.
type loader[T any] struct {
	q     *core.Quorum
	spec  *core.Spec
	reg   *core.Register
	fresh time.Duration
	will  func(age time.Duration) bool // a result of that age will do
	// The caller is a running load of the same key.
	itself func() bool
}

// failed is f's own error.
type failed struct{ error }

// errLostBefore says that the claim was lost before f was called: try again.
var errLostBefore = errors.New("lost before the load began")

// load returns a result that is fresh, or loads one.
func (g *Group[T]) load(ctx context.Context, w wanted, c *call[T],
	f func(context.Context) (T, error)) (T, error) {
	name := g.prefix + w.key
	q := g.q.For(name)
	spec, err := q.NewSpec(core.Spec{Name: name, Kind: "flight", Weight: 1, Capacity: 1,
		Set: core.Override(q, "flight.New", g.opts)})
	if err != nil {
		return *new(T), core.WrapError("do", name, err)
	}
	l := &loader[T]{q: q, spec: spec, reg: q.Register(spec), fresh: w.fresh, will: func(age time.Duration) bool {
		return g.over(w, c, func() bool { return age < w.fresh || age < time.Since(c.called) })
	}, itself: func() bool { return g.loadedBy(ctx, w.key) }}
	v, err := l.do(ctx, func(ctx context.Context) (T, error) {
		if g.over(w, c, func() bool { c.loading = c.waiters > 0; return !c.loading }) {
			return *new(T), &fault.Failure{Err: fault.ContextError(ctx)}
		}
		defer g.over(w, c, func() bool { return true })
		returned := make(chan struct{})
		defer close(returned)
		return f(context.WithValue(ctx, loadOf{g.q, name}, returned))
	})
	if own, is := err.(failed); is {
		return v, own.error
	}
	return v, core.WrapError("do", name, err)
}

// over reports whether a call is over, and then has later callers begin another
// one.
// Invariant: the callers of one call get a result that would do for each of
// them. A load that has ended, and an older result, are not good enough for a
// later caller. And no load begins unless a caller waits for it.
func (g *Group[T]) over(w wanted, c *call[T], is func() bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !is() {
		return false
	}
	g.forget(w, c)
	return true
}

func (l *loader[T]) do(ctx context.Context, f func(context.Context) (T, error)) (v T, err error) {
	rec, err := l.reg.Read(ctx)
	if err == nil {
		if v, ok := l.result(rec); ok {
			return v, nil
		}
	} else if ctx.Err() != nil || errors.Is(err, fault.ErrClosed) {
		return v, err
	} // where the nodes cannot be asked, the claim waits for them
	if l.itself() {
		return v, errItself
	}
	for again := (core.Retry{}); ; again.Wait(ctx, l.q, l.spec.Name, errLostBefore) {
		t, rec, err := l.reg.TurnUnless(ctx, func(rec core.Record) bool { _, ok := l.result(rec); return ok })
		switch {
		case err != nil:
			return v, err
		case t == nil:
			if v, ok := l.result(rec); ok {
				return v, nil
			}
			continue // it was fresh a moment ago
		}
		if v, err = l.run(ctx, t, f); err != errLostBefore {
			return v, err
		}
	}
}

// result returns what is recorded, if it will do: it is fresh, or was loaded
// after the last caller had called. One that is further ahead of the nodes'
// clocks than these may differ is from before they were set back: its age is
// unknown.
func (l *loader[T]) result(rec core.Record) (v T, ok bool) {
	var r record
	ok = rec.Exists && json.Unmarshal(rec.Value, &r) == nil && r.Version == format &&
		json.Unmarshal(r.Value, &v) == nil
	age := l.q.NodesTime().Sub(time.UnixMicro(r.At))
	return v, ok && age >= -l.q.Skew() && l.will(age)
}

// run calls f under the claim, unless it turns out that another caller has
// loaded, and releases the claim however that ends.
func (l *loader[T]) run(ctx context.Context, t *core.Lease,
	f func(context.Context) (T, error)) (v T, err error) {
	inner, stop := t.Derive(ctx)
	defer func() {
		stop()
		_ = t.Release()
	}()
	rec, err := l.reg.Open(inner, t.Hold())
	if err != nil {
		lost := t.Lost() != nil || errors.Is(err, fault.ErrLost) // which the lease may not tell yet
		if lost && ctx.Err() == nil && !errors.Is(err, fault.ErrClosed) {
			return v, errLostBefore
		}
		return v, err
	}
	if v, ok := l.result(rec); ok {
		return v, nil
	}
	if v, err = f(inner); err != nil {
		return v, failed{err}
	}
	return v, l.share(ctx, t, v)
}

// share records a result, even if ctx has ended. If the nodes can't record it,
// the caller still gets it.
func (l *loader[T]) share(ctx context.Context, t *core.Lease, v T) error {
	value, err := json.Marshal(v)
	switch {
	case err != nil:
		return fmt.Errorf("%w: cannot encode the result: %w", fault.ErrInvalid, err)
	case len(value) > MaxValue:
		return fmt.Errorf("%w: the result takes %d bytes as JSON; at most %d are allowed: share a reference "+
			"instead", fault.ErrInvalid, len(value), MaxValue)
	}
	text, err := json.Marshal(record{Version: format, At: l.q.NodesTime().UnixMicro(), Value: value})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.q.Rounds(l.spec.Set, 2))
	defer cancel()
	// Another caller may take the result for fresh for longer.
	keep := max(l.fresh, l.spec.Set.Retention, protocol.Remember).Truncate(time.Millisecond)
	if err := l.reg.Put(ctx, t.Hold(), 0, text, keep); err != nil {
		l.spec.Set.Logger.Warn("quorate: could not share a result; other processes may load it again",
			"name", l.spec.Name, "error", core.WrapError("share", l.spec.Name, err))
	}
	return nil
}
