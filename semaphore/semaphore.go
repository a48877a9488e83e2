// Package semaphore is x/sync's weighted semaphore across processes: permits
// are held on a majority of the nodes of a quorate.Quorum, first come first
// served over all processes.
//
//	s := semaphore.NewWeighted(q, "encoders", 16)
//	if err := s.Acquire(ctx, 1); err != nil { ... }
//	defer s.Release(1)
package semaphore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
)

// Weighted is a number of permits that all processes share. It must be made by
// NewWeighted, and must not be copied; the zero value panics, for it has no
// quorum.
//
// It is first come first served: a large request is not starved by small ones,
// and no later one overtakes it. Never are more permits in use than there are,
// over all processes: that is decided by counting the other claims on the
// nodes, not by votes alone (protocol.md, rule 3). A process that dies gives
// its permits back when their leases end.
type Weighted struct {
	q    *core.Quorum
	spec *core.Spec
	size int64
	err  error // of the name or the size; every Acquire tells it

	mu   sync.Mutex
	held []*Lease // by Acquire and TryAcquire, in order
	lost int64    // permits of those that ended by themselves, still to be released
}

// NewWeighted returns a semaphore of n permits. All who use the name must
// agree on n: the one who differs gets an error that tells both numbers. Once
// Resize has been called, its number is in force, whatever n says. A
// wrong option is a programmer's error: NewWeighted panics. An unusable name
// (empty, with braces, ending in :marker or :heal, longer than 1024 bytes) and an n below 1 are reported by
// every Acquire, as an error that matches quorate.ErrInvalid.
func NewWeighted(q *quorate.Quorum, name string, n int64, opts ...quorate.Option) *Weighted {
	c := core.Of(q)
	set := core.Override(c, "semaphore.NewWeighted", opts)
	s := &Weighted{q: c, size: n}
	s.spec, s.err = c.NewSpec(core.Spec{Name: name, Weight: 1, Capacity: uint64(max(n, 0)), Counting: true, Set: set})
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
		return fmt.Errorf("%w: a semaphore of %d permits; it needs at least 1, and at most 2^48", core.ErrInvalid, n)
	}
	return nil
}

// Acquire takes n permits. It waits for its turn, or fails with a
// *quorate.Error: when the context ends, one that matches the context's error
// and says what was being waited for (quorate.ErrHeld: permits;
// quorate.ErrNoQuorum: nodes); quorate.ErrClosed; quorate.ErrInvalid. Nothing
// is then taken on any node.
//
// Acquire of more than there are fails at once with quorate.ErrInvalid, where
// x/sync waits for the context to end: no release can ever make it succeed,
// and a context without an end would wait for ever.
func (s *Weighted) Acquire(ctx context.Context, n int64) error {
	return s.acquire(ctx, "acquire", n, false)
}

// TryAcquire takes n permits without waiting for any, and reports whether it did.
func (s *Weighted) TryAcquire(n int64) bool {
	return s.acquire(context.Background(), "try acquire", n, true) == nil
}

// Release gives n permits back, of those that Acquire and TryAcquire took. It
// does not wait for the nodes. It panics if fewer are held. Permits are alike:
// of those whose hold has been lost meanwhile, Release takes account first, so
// that it never gives back what another goroutine still uses.
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
		part.hold.Shrink(rest)
	}
	releaseAll(whole)
}

// releaseAll releases the rest also when the observer of one release panics.
func releaseAll(ls []*Lease) {
	if len(ls) > 0 {
		defer releaseAll(ls[1:])
		_ = ls[0].lease.Release()
	}
}

// AcquireLease takes n permits as one hold of its own, with a token and a
// context that ends when the hold is lost. It is given back by the Release of
// the [Lease], not by that of the semaphore. Otherwise it is as Acquire, but for
// n = 0: no permits are no hold and have no token, so it fails with
// [quorate.ErrInvalid].
func (s *Weighted) AcquireLease(ctx context.Context, n int64) (*Lease, error) {
	l, err := s.one(ctx, n, false)
	return l, core.Dress("acquire lease", s.spec.Name, err)
}

// TryAcquireLease is AcquireLease without waiting for a turn: it fails with
// quorate.ErrHeld when too few permits are free or others are ahead, and with
// quorate.ErrNoQuorum when too few nodes answered.
func (s *Weighted) TryAcquireLease(ctx context.Context, n int64) (*Lease, error) {
	l, err := s.one(ctx, n, true)
	return l, core.Dress("try acquire lease", s.spec.Name, err)
}

func (s *Weighted) one(ctx context.Context, n int64, try bool) (*Lease, error) {
	if n == 0 {
		s.usable()
		return nil, fmt.Errorf("%w: a lease of 0 permits was asked for; ask for 1 at least, or use Acquire", core.ErrInvalid)
	}
	return s.get(ctx, n, try, func(*Lease) {})
}

// Resize changes the number of permits to n, at least 1, for everybody who uses
// the name, until the next Resize: the nodes keep it for ever, also while nobody
// uses the semaphore. More permits admit those who wait at once. Fewer take
// effect as permits come back: nobody loses what he holds; who waits for more
// than there are now gets quorate.ErrInvalid, within a third of the ttl.
//
// The number survives the loss of memory of a minority of the nodes if those that
// forgot can be told by the others within a guard time. If they cannot, because
// more nodes are away, they go by the number declared meanwhile.
//
// It fails with ErrInvalid, with quorate.ErrNoQuorum and the context's error
// when a majority could not be told before the context ended, or with
// quorate.ErrClosed or quorate.ErrLost (another Resize came between). After a
// failure the number may or may not have changed; call it again.
func (s *Weighted) Resize(ctx context.Context, n int64) error {
	s.usable()
	err := errors.Join(s.err, checkSize(n))
	if err == nil {
		err = s.q.Resize(ctx, s.spec, uint64(n))
	}
	return core.Dress("resize", s.spec.Name, err)
}

// Size asks the nodes how many permits there are: as the last Resize said, or
// else as NewWeighted did. It fails as Resize does.
func (s *Weighted) Size(ctx context.Context) (int64, error) {
	s.usable()
	if s.err != nil {
		return 0, core.Dress("size", s.spec.Name, s.err)
	}
	n, err := s.q.Permits(ctx, s.spec)
	return int64(n), core.Dress("size", s.spec.Name, err)
}

// usable panics for the zero value.
func (s *Weighted) usable() {
	if s == nil || s.q == nil {
		panic("quorate: the zero semaphore.Weighted has no quorum; use semaphore.NewWeighted")
	}
}

func (s *Weighted) acquire(ctx context.Context, op string, n int64, try bool) error {
	l, err := s.get(ctx, n, try, s.lose)
	if err == nil && l != nil {
		s.mu.Lock()
		s.held = append(s.held, l)
		s.mu.Unlock()
		if !l.hold.Valid() {
			s.lose(l) // so early that it was told before it was listed
		}
	}
	return core.Dress(op, s.spec.Name, err)
}

// lose accounts for permits whose hold has ended by itself.
func (s *Weighted) lose(l *Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
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
		return nil, fmt.Errorf("%w: %d permits were asked for", core.ErrInvalid, n)
	case ctx.Err() != nil:
		return nil, &core.Failure{Err: core.ContextError(ctx)}
	case n == 0:
		return nil, nil
	case n > s.size: // unless a Resize has made more of them
		there, err := s.q.Permits(ctx, s.spec)
		if err != nil {
			return nil, err
		}
		if uint64(n) > there {
			return nil, fmt.Errorf("%w: %d permits were asked for, and there are %d", core.ErrInvalid, n, there)
		}
	}
	l := &Lease{weight: n}
	ready := make(chan struct{})
	defer close(ready)
	hold, err := s.q.Acquire(ctx, s.spec.WithWeight(uint64(n)), try, core.OnEnd(func(cause error) {
		<-ready // the claim was admitted, so Acquire is about to return
		if l.lease != nil {
			_ = l.lease.End(cause)
			lost(l)
		}
	}))
	if err != nil {
		return nil, err
	}
	l.hold, l.lease, l.name = hold, hold.Lease(0), s.spec.Name
	return l, nil
}
