package mutex

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
)

// A Group locks several names as one: either it holds all of them or none. It
// must be created with [All] or [Both] and must not be copied.
//
// Each name excludes every Mutex and Group that uses the name, in any process.
// Goroutines that share a Group wait for each other. Groups never deadlock with
// each other, whatever the order of their names. But as with [sync.Mutex], a
// goroutine that holds a Mutex while it waits for a Group, or the other way
// around, can deadlock with another goroutine.
type Group struct {
	_     core.NoCopy
	parts []part        // in the order in which they are waited for
	err   error         // of a name; every call that would lock tells it
	bad   string        // that name
	turn  chan struct{} // full while a goroutine has the names or asks for them

	mu      sync.Mutex
	held    []*hold // by the goroutine that has the turn; nil: it has not got them
	waiting int     // goroutines that wait for the turn
}

// part is one name of a Group.
type part struct {
	q    *core.Quorum
	spec *core.Spec
}

// All returns a Group of the given names. Duplicate names count once. If a name
// is invalid, or there are no names, every call that would lock returns an
// error.
//
// Options: [quorate.WithTTL], [quorate.WithNodeTimeout], [quorate.WithMaxHold],
// [quorate.WithoutRenewal] and [quorate.WithWarning]. The defaults are the
// settings of q. All panics if an option is invalid or nil.
func All(q *quorate.Quorum, names []string, opts ...quorate.SharedOption) *Group {
	g := &Group{turn: make(chan struct{}, 1)}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	if len(names) == 0 {
		g.err = &fault.Failure{Err: errNoNames}
	}
	for _, name := range names {
		g.add(q, name, "mutex.All", opts)
	}
	return g
}

// add makes a name of q the last part of g.
func (g *Group) add(q *quorate.Quorum, name, constructor string, opts []quorate.SharedOption) {
	c := core.CoreOf(q).For(name)
	set := core.Override(c, constructor, opts)
	spec, err := c.NewSpec(core.Spec{Name: name, Kind: "mutex", Weight: 1, Capacity: 1, Notify: true,
		Set: set, ShortHold: !set.NoRenewal, BoundLater: true})
	if err != nil && g.err == nil {
		g.err, g.bad = err, name
	}
	g.parts = append(g.parts, part{q: c, spec: spec})
}

var errNoNames = fmt.Errorf("%w: a Group without names protects nothing; pass at least one name to mutex.All",
	fault.ErrInvalid)

// LockContext locks all names. If all of them are free, it takes one round trip
// for every 1024 names. Otherwise it waits for one name at a time, first come,
// first served, and while it waits it holds only names that sort before that
// name in byte order. This is why two Groups never wait for each other.
//
// For [quorate.WithMaxHold] and [quorate.WithoutRenewal], time starts when all
// names are held. If LockContext fails, it returns the error of the first name
// that could not be locked, and no name is held.
func (g *Group) LockContext(ctx context.Context) error { return g.lock(ctx, "lock", false) }

// TryLockContext locks all names if all of them are free. If it fails, it
// returns the error of the first name that could not be locked, and no name is
// held. If two Groups that share names try at the same moment, both may fail.
func (g *Group) TryLockContext(ctx context.Context) error { return g.lock(ctx, "try lock", true) }

// Unlock unlocks all names without waiting for the nodes. It panics if g is not
// locked. Names that have been lost are skipped.
func (g *Group) Unlock() {
	if _, _, ok := g.unlock("unlock"); !ok {
		panic("quorate: unlock of unlocked mutex.Group")
	}
}

// Do runs f while all names are locked, and unlocks g even if f panics. The
// context passed to f ends when ctx does or when any of the names is lost. In
// the latter case, [context.Cause] returns [quorate.ErrLost] or
// [quorate.ErrClosed]. Do returns the error from locking, or else f's error; if
// a hold ended before f returned, the error is joined with ErrLost or ErrClosed
// for the first such name. In profiles, f has the labels quorate_kind and
// quorate_name, which is the first name.
func (g *Group) Do(ctx context.Context, f func(ctx context.Context) error) (err error) {
	if err := g.lock(ctx, "do", false); err != nil {
		return err
	}
	g.mu.Lock()
	held := g.held
	g.mu.Unlock()
	if held == nil { // another goroutine has unlocked meanwhile, which is a mistake
		return core.WrapError("do", g.parts[0].spec.Name, &fault.Failure{Err: fault.ErrNotHeld})
	}
	inner := ctx
	stops := make([]func(), len(held))
	for i, h := range held {
		inner, stops[i] = h.lease.Derive(inner)
	}
	defer func() {
		for _, stop := range slices.Backward(stops) {
			stop()
		}
		if _, lost, _ := g.unlock("do"); lost != nil {
			err = errors.Join(err, lost)
		}
	}()
	return core.Labeled(inner, "mutex", g.parts[0].spec.Name, f)
}

func (g *Group) lock(ctx context.Context, op string, try bool) error {
	if g.turn == nil {
		panic("quorate: the zero mutex.Group has no names; use mutex.All or mutex.Both")
	}
	if g.err != nil {
		return core.WrapError(op, g.bad, g.err)
	}
	if err := g.enter(ctx, try); err != nil {
		return core.WrapError(op, g.parts[0].spec.Name, err)
	}
	locked := false
	defer func() {
		if !locked { // also when the tracer panics
			<-g.turn
		}
	}()
	held, name, err := g.acquire(ctx, try)
	if err != nil {
		return core.WrapError(op, name, err)
	}
	g.mu.Lock()
	g.held, locked = held, true
	g.mu.Unlock()
	g.wait(0)
	return nil
}

// enter waits until this goroutine acts for the value.
func (g *Group) enter(ctx context.Context, try bool) error {
	if ctx.Err() != nil {
		return &fault.Failure{Err: fault.ContextError(ctx)}
	}
	select {
	case g.turn <- struct{}{}:
		return nil
	default:
	}
	if try {
		return &fault.Failure{Err: fault.ErrHeld}
	}
	g.wait(1)
	defer g.wait(-1)
	return core.Enter(ctx, g.parts[0].q, g.turn, func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.held != nil
	})
}

// wait adds more to g.waiting. If any goroutine is waiting for the turn, it
// tells the leases that are held.
func (g *Group) wait(more int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting += more; g.waiting > 0 {
		for _, h := range g.held {
			h.lease.Want()
		}
	}
}

// acquire locks all names or none. If it fails, it returns the name that could
// not be locked.
//
// Note: Here is an incorrect implementation:
//
//	for _, name := range names {
//		lock(name)
//	}
//
// It takes a round trip for each name, and two callers that pass the names in
// different orders can each hold what the other is waiting for.
//
// The time limits of the holds start when all names are held. Otherwise the
// first hold could end while the Group waits for another name.
//
// Invariant: the name that is being waited for sorts after all names that are
// held. Attempts on later names do not wait, and are abandoned first.
func (g *Group) acquire(ctx context.Context, try bool) (held []*hold, name string, err error) {
	done := false
	defer func() {
		if !done { // also when the tracer panics
			_ = release("lock", held)
		}
	}()
	for {
		// The names from here on are asked for at the same time, as far as this
		// process has places for them.
		from := len(held)
		for _, p := range g.parts[from:] {
			h := p.begin(ctx, true)
			// Else only wait asks for it, if that has not been refused.
			begun := h.refused == nil && h.pending.Begun()
			if begun || len(held) == from {
				held = append(held, h)
			}
			if !begun {
				break
			}
		}
		got, err := from, error(nil)
		for i, h := range held[from:] {
			if e := h.wait(ctx); e == nil && got == from+i {
				got++
			} else if err == nil {
				err = e
			}
		}
		if got == len(g.parts) &&
			!slices.ContainsFunc(held, func(h *hold) bool { return h.lease.Context().Err() != nil }) {
			done = true
			for _, h := range held {
				h.lease.Hold().Bound()
			}
			return held, "", nil
		}
		if got == len(g.parts) { // one was lost while another was waited for
			got = 0
		}
		_ = release("lock", held[got:])
		if held = held[:got]; err == nil {
			continue
		}
		name := g.parts[got].spec.Name
		if g.onOneSet() {
			return held, name, &fault.Failure{Err: errOneSet}
		}
		if try {
			return held, name, err
		}
		h := g.parts[got].begin(ctx, false)
		held = append(held, h)
		if err := h.wait(ctx); err != nil {
			return held, name, err
		}
	}
}

// hold is one name that is asked for or held. It is the owner of its claim.
type hold struct {
	part
	core.Single
	try     bool
	pending *core.Pending
	refused error       // why there is no pending
	lease   *core.Lease // nil: not held yet
}

// begin asks for a name without waiting for it.
func (p part) begin(ctx context.Context, try bool) *hold {
	h := &hold{part: p, try: try}
	if try {
		if h.refused = p.q.Members.Await(ctx, true); h.refused != nil {
			return h
		}
	}
	h.pending, h.refused = p.q.Begin(ctx, p.spec, try, h)
	return h
}

// wait waits until the name is held, or cannot be.
func (h *hold) wait(ctx context.Context) error {
	ctx, span := h.q.Trace(ctx, h.spec, h.try)
	var hold core.Hold
	err := h.refused
	if err == nil {
		hold, err = h.pending.Wait(ctx)
	}
	if err == nil {
		h.lease = h.Take(hold)
	}
	span.ReportAcquire(hold, h.lease, err, func() { _ = h.end() })
	return err
}

// end gives the name back, or the claim where it is not held. It returns why
// the hold had ended by itself, if it had.
func (h *hold) end() error {
	switch {
	case h.lease != nil:
		return h.lease.Release()
	case h.pending != nil:
		h.pending.Cancel()
	}
	return nil
}

// release ends them, the last one first. A waiter that gets its first name then
// finds the others free. It ends the rest also when the tracer of one panics.
// It returns how the first of the names was lost, if any was.
func release(op string, held []*hold) (lost error) {
	if len(held) == 0 {
		return nil
	}
	last := len(held) - 1
	defer func() {
		if err := release(op, held[:last]); err != nil {
			lost = err
		}
	}()
	if err := held[last].end(); err != nil {
		lost = core.WrapError(op, held[last].spec.Name, err)
	}
	return lost
}

// unlock releases all names and the turn. It returns the holds that it has
// released, and why the first lost one was lost, if any was. ok is false if g
// was not locked.
func (g *Group) unlock(op string) (held []*hold, lost error, ok bool) {
	g.mu.Lock()
	held = g.held
	g.held = nil
	g.mu.Unlock()
	if held == nil {
		return nil, nil, false
	}
	defer func() { <-g.turn }() // also when the tracer panics
	return held, release(op, held), true
}
