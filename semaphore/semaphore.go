// Package semaphore is x/sync's weighted semaphore across processes. The whole
// fleet shares a fixed number of permits, and waiters are served first come,
// first served.
//
//	s := semaphore.NewWeighted(q, "encoders", 16)
//	if err := s.Acquire(ctx, 1); err != nil { ... }
//	defer s.Release(1)
//
// Permits are leases on a majority of the nodes of a [quorate.Quorum], which
// the library renews. If a process crashes, its permits are released when its
// leases expire.
//
// # Errors
//
// Methods that take a context return a [*quorate.Error]. Check for its kind
// with [errors.Is]:
//
//   - [quorate.ErrHeld]: too few permits are free, or others are ahead in the
//     queue;
//   - [quorate.ErrNoQuorum]: too few nodes answered. A waiting call returns it
//     early if so many nodes refuse permanently that waiting is pointless;
//   - [quorate.ErrLost]: the permits have been lost;
//   - [quorate.ErrNotHeld]: the lease has already been released;
//   - [quorate.ErrClosed]: the Quorum has been closed;
//   - [quorate.ErrInvalid]: the name is empty, longer than 1024 bytes or
//     contains braces, another kind of primitive uses it, or the number of
//     permits is wrong.
//
// If the context ends first, the error matches the context's error and also
// ErrHeld or ErrNoQuorum, depending on what the call was waiting for. Its claim
// is then withdrawn from all nodes.
//
// All types in this package are safe for concurrent use.
package semaphore

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

// A Weighted is a semaphore whose permits are shared by all processes. It must
// be created with [NewWeighted] and must not be copied.
//
// Small requests cannot starve a large one, because no request overtakes an
// earlier one. Whether a permit is free depends on the claims on the nodes, not
// on votes alone (docs/internals/protocol.md, rule 3).
type Weighted struct {
	q    *core.Quorum
	spec *core.Spec
	size int64
	err  error // of the name or the size; every Acquire tells it

	mu   sync.Mutex
	held []*Lease // by Acquire and TryAcquire, in order
	lost int64    // permits of those that ended by themselves, still to be released
}

// NewWeighted returns a semaphore of n permits, from 1 to 2^48. All users of
// the name must agree on n: a call with a different n returns
// [quorate.ErrInvalid], and the error shows both numbers. After a call to
// [Weighted.Resize], the number it set applies and n is ignored.
//
// Options: [quorate.WithTTL], [quorate.WithNodeTimeout], [quorate.WithMaxHold],
// [quorate.WithoutRenewal] and [quorate.WithWarning]. The defaults are the
// settings of q. NewWeighted panics if an option is invalid or nil. If n or the
// name is invalid, every Acquire returns an error.
func NewWeighted(q *quorate.Quorum, name string, n int64, opts ...quorate.SharedOption) *Weighted {
	c := core.CoreOf(q).For(name)
	set := core.Override(c, "semaphore.NewWeighted", opts)
	s := &Weighted{q: c, size: n}
	s.spec, s.err = c.NewSpec(core.Spec{Name: name, Kind: "semaphore", Weight: 1,
		Capacity: uint64(max(n, 0)), Counting: true, Set: set})
	if s.err != nil {
		s.spec = &core.Spec{Name: name}
	} else {
		s.err = checkSize(n)
	}
	return s
}

// most is how many permits there may be: what the nodes can count exactly, with
// room for sums.
const most = 1 << 48

func checkSize(n int64) error {
	if n < 1 || n > most {
		return fmt.Errorf("%w: a semaphore of %d permits; it needs at least 1, and at most 2^48",
			fault.ErrInvalid, n)
	}
	return nil
}

// Acquire acquires n permits. It waits for its turn until ctx is done. n must
// not be negative.
//
// If the semaphore has fewer than n permits in total, Acquire immediately
// returns [quorate.ErrInvalid], because it could never succeed. (x/sync waits
// until the context is done.)
func (s *Weighted) Acquire(ctx context.Context, n int64) error {
	return s.acquire(ctx, "acquire", n, false)
}

// TryAcquire acquires n permits without waiting for its turn, and reports
// whether it succeeded. It waits only for a majority of the nodes to answer,
// for at most one node timeout. If n is higher than the number passed to
// NewWeighted, it also looks up the number set by [Weighted.Resize], which
// takes at most two node timeouts.
func (s *Weighted) TryAcquire(n int64) bool {
	return s.acquire(context.Background(), "try acquire", n, true) == nil
}

// Release releases n permits that were acquired with [Weighted.Acquire] or
// [Weighted.TryAcquire]. It does not wait for the nodes. It panics if fewer
// than n are held or n is negative. Permits that have been lost are counted
// first, so Release never takes a permit away from another goroutine that is
// still using it.
func (s *Weighted) Release(n int64) {
	s.usable()
	if n < 0 {
		panic("semaphore: released a negative number of permits")
	}
	s.mu.Lock()
	held := s.lost
	for _, l := range s.held {
		held += l.weight
	}
	if n > held {
		s.mu.Unlock()
		panic("semaphore: released more than held")
	}
	fromLost := min(n, s.lost)
	s.lost -= fromLost
	n -= fromLost
	var whole []*Lease
	for n > 0 && s.held[0].weight <= n {
		n -= s.held[0].weight
		whole = append(whole, s.held[0])
		s.held = slices.Delete(s.held, 0, 1)
	}
	var part *Lease
	var rest uint64
	if n > 0 {
		part = s.held[0]
		part.weight -= n
		rest = uint64(part.weight)
	}
	s.mu.Unlock()
	if part != nil {
		part.lease.Hold().Shrink(rest)
	}
	releaseAll(whole)
}

// releaseAll releases the rest also when the tracer of one release panics.
func releaseAll(ls []*Lease) {
	if len(ls) > 0 {
		defer releaseAll(ls[1:])
		_ = ls[0].lease.Release()
	}
}

// AcquireLease is like [Weighted.Acquire] but returns a lease on the permits,
// with a token and a context that ends if the permits are lost. Release them
// with [Lease.Release], not with [Weighted.Release]. n must be at least 1.
func (s *Weighted) AcquireLease(ctx context.Context, n int64) (*Lease, error) {
	l, err := s.one(ctx, n, false)
	return l, core.WrapError("acquire lease", s.spec.Name, err)
}

// TryAcquireLease is like [Weighted.AcquireLease] but does not wait for its
// turn.
func (s *Weighted) TryAcquireLease(ctx context.Context, n int64) (*Lease, error) {
	l, err := s.one(ctx, n, true)
	return l, core.WrapError("try acquire lease", s.spec.Name, err)
}

func (s *Weighted) one(ctx context.Context, n int64, try bool) (*Lease, error) {
	if n == 0 {
		s.usable()
		return nil, fmt.Errorf("%w: a lease needs at least 1 permit; use Acquire for 0",
			fault.ErrInvalid)
	}
	return s.get(ctx, n, try, func(*Lease) {})
}

// Resize changes the number of permits to n, from 1 to 2^48, for all users of
// the name, until the next Resize. The nodes keep the number forever. An
// increase admits waiting claims immediately. A decrease takes effect as
// permits are released; no holder loses its permits. A claim that is waiting
// for more than n permits fails with [quorate.ErrInvalid] within TTL/3.
//
// The number survives if a minority of the nodes loses its data, as long as
// those nodes are repaired from the others within a guard time. Until then,
// nodes without their data use the number passed to NewWeighted.
//
// Resize returns [quorate.ErrNoQuorum] joined with the context's error if a
// majority did not confirm before ctx was done, and [quorate.ErrLost] if
// another Resize got in between. After a failure the number may or may not have
// changed, so call Resize again.
func (s *Weighted) Resize(ctx context.Context, n int64) error {
	s.usable()
	err := errors.Join(s.err, checkSize(n))
	if err == nil {
		err = core.Resize(ctx, s.q, s.spec, uint64(n))
	}
	return core.WrapError("resize", s.spec.Name, err)
}

// Size asks the nodes how many permits there are in total: the number set by
// the last [Weighted.Resize], or else the number passed to [NewWeighted]. It
// fails with [quorate.ErrHeld] while a Resize is in progress.
func (s *Weighted) Size(ctx context.Context) (int64, error) {
	s.usable()
	if s.err != nil {
		return 0, core.WrapError("size", s.spec.Name, s.err)
	}
	n, _, err := core.Permits(ctx, s.q, s.spec)
	return int64(n), core.WrapError("size", s.spec.Name, err)
}

// Holder asks the nodes which process has held permits longest. It returns
// [quorate.ErrNotHeld] if no process holds any. The answer may be out of date
// by the time it arrives.
func (s *Weighted) Holder(ctx context.Context) (quorate.Holder, error) {
	s.usable()
	if s.err != nil {
		return quorate.Holder{}, core.WrapError("holder", s.spec.Name, s.err)
	}
	h, err := s.q.Onlooker().Holder(ctx, s.spec)
	return quorate.Holder(h), core.WrapError("holder", s.spec.Name, err)
}

func (s *Weighted) usable() {
	if s == nil || s.q == nil {
		panic("quorate: the zero semaphore.Weighted has no quorum; use semaphore.NewWeighted")
	}
}

func (s *Weighted) acquire(ctx context.Context, op string, n int64, try bool) error {
	l, err := s.get(ctx, n, try, s.lose)
	if err == nil && l != nil {
		s.keep(l)
	}
	return core.WrapError(op, s.spec.Name, err)
}

// keep lists a hold for Release. The hold may have been lost since it was
// acquired.
// Invariant: only lose decides that. A hold that is past its deadline may still
// be renewed by an answer from just before the deadline, so it must still be
// listed.
func (s *Weighted) keep(l *Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.lost {
		s.lost += l.weight
		return
	}
	s.held = append(s.held, l)
}

// lose accounts for permits that have been lost.
func (s *Weighted) lose(l *Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.lost = true
	if i := slices.Index(s.held, l); i >= 0 {
		s.held = slices.Delete(s.held, i, i+1)
		s.lost += l.weight
	}
}

// get takes n permits as one claim; nil for none.
func (s *Weighted) get(ctx context.Context, n int64, try bool, lost func(*Lease)) (*Lease, error) {
	s.usable()
	switch {
	case s.err != nil:
		return nil, s.err
	case n < 0:
		return nil, fmt.Errorf("%w: %d permits were requested", fault.ErrInvalid, n)
	case ctx.Err() != nil:
		return nil, &fault.Failure{Err: fault.ContextError(ctx)}
	case n == 0:
		return nil, nil
	case n > s.size: // unless a Resize has made more of them
		there, err := s.there(ctx, try)
		if err != nil {
			return nil, err
		}
		if uint64(n) > there {
			return nil, fmt.Errorf("%w: %d permits were requested, but there are only %d", fault.ErrInvalid, n, there)
		}
	}
	l := &Lease{weight: n, name: s.spec.Name}
	var err error
	if l.lease, err = s.q.AcquireLease(ctx, s.spec.WithWeight(uint64(n)), try,
		&core.Single{OnEnd: func() { lost(l) }}); err != nil {
		return nil, err
	}
	return l, nil
}

// there asks the nodes how many permits there are. A try does not wait for
// nodes that are down: TryAcquire has no context that could end it.
func (s *Weighted) there(ctx context.Context, try bool) (uint64, error) {
	if !try {
		n, _, err := core.Permits(ctx, s.q, s.spec)
		return n, err
	}
	asked, cancel := context.WithTimeout(ctx, s.q.Rounds(s.spec.Set, 2))
	defer cancel()
	n, _, err := core.Permits(asked, s.q, s.spec)
	if f, ok := errors.AsType[*fault.Failure](err); ok && asked.Err() != nil && ctx.Err() == nil {
		f.Err = fault.ErrNoQuorum // the caller's context has not ended
		return 0, f
	}
	return n, err
}
