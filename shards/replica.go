package shards

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/inspect"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
)

// replica is one call of Run.
//
// Each replica is a member while it holds a permit of the semaphore, and all
// members compute the same division from the tokens of those. The owner of a
// shard, and the next in line, queue for its claim. The claim alone says which
// replica has the shard: the division only says which replicas want it.
type replica struct {
	s   *Shards
	f   func(ctx context.Context, shard int, l quorate.Lease) error
	all sync.WaitGroup
	end func(err error) // of the run, for an error that would come again

	mu      sync.Mutex
	broken  error // why Run ends before its context; nil: it does not
	parts   []part
	changed chan struct{} // closed when parts changes, and replaced

	// Full while the nodes are asked for the members, so that an older answer
	// never replaces a newer one. What follows changes while it is full.
	asking chan struct{}
	asked  atomic.Int64 // how often they were
	token  uint64       // of this member; 0: it is none
	shared []uint64     // the members that parts are of, by their tokens; nil: none
	seen   bool         // the last answer had this member
	failed error        // why the last time brought no answer
}

// Run takes part until ctx is done. For each shard that this replica gets, it
// calls f in a separate goroutine, with the number of the shard (counting from
// 0) and its lease. The context passed to f ends when ctx does, when the shard
// is to be handed over, or when the shard is lost; in the last case,
// [context.Cause] returns [quorate.ErrLost]. f must then return soon, because
// the shard is not handed over until it does.
//
// If f returns while its context is still active, the shard is given up, and a
// second later this or another replica takes it. If f returns an error, it is
// logged. If f panics, the process crashes, as with a panic in any goroutine.
//
// Run keeps waiting through outages. It returns an error that matches ctx's
// error when ctx is done, [quorate.ErrClosed] when the Quorum is closed, or
// [quorate.ErrInvalid] if the name is invalid or is used with a different n. By
// the time Run returns, every f has returned and all shards have been given up.
// Each concurrent call of Run counts as a replica.
func (s *Shards) Run(ctx context.Context,
	f func(ctx context.Context, shard int, l quorate.Lease) error) error {
	switch {
	case s == nil || s.q == nil:
		panic("quorate: the zero shards.Shards has no quorum; use shards.New")
	case f == nil:
		panic("quorate: shards.Run: the function is nil")
	case s.err != nil:
		return core.WrapError("run", s.name, s.err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &replica{s: s, f: f, parts: make([]part, len(s.specs)), changed: make(chan struct{}),
		asking: make(chan struct{}, 1)}
	r.end = func(err error) { r.breaks(ctx, err); cancel(err) }
	for shard := range s.specs {
		r.all.Go(func() { r.serve(ctx, shard) })
	}
	r.member(ctx)
	r.all.Wait()
	switch {
	case errors.Is(r.broken, quorate.ErrClosed):
		return core.WrapError("run", s.name, &fault.Failure{Err: fault.ErrClosed})
	case r.broken != nil:
		return core.WrapError("run", s.name, r.broken)
	}
	return core.WrapError("run", s.name, &fault.Failure{Err: fault.ContextError(ctx)})
}

// breaks notes why Run ends, unless its context has ended before. The cause of
// that is the caller's: it may be an error of another Quorum.
func (r *replica) breaks(ctx context.Context, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken == nil && ctx.Err() == nil {
		r.broken = err
	}
}

// part returns the replica's part in a shard, and what is closed when that may
// have changed.
func (r *replica) part(shard int) (part, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.parts[shard], r.changed
}

func (r *replica) become(parts []part) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Equal(parts, r.parts) {
		return
	}
	r.parts = parts
	close(r.changed)
	r.changed = make(chan struct{})
}

// member keeps this replica a member until ctx ends, and follows which others
// there are.
func (r *replica) member(ctx context.Context) {
	for ctx.Err() == nil {
		l, err := r.s.members.AcquireLease(ctx, r.s.weight)
		if err != nil {
			if fatal(err) {
				r.end(err)
			}
			pause(ctx, time.Second) // too many nodes refuse permanently, so waiting is pointless
			continue
		}
		r.follow(ctx, l)
		_ = l.Release() // nothing if it was lost
	}
}

// follow divides the shards as long as this replica is a member. Where the
// nodes cannot be asked, the division stays.
func (r *replica) follow(ctx context.Context, l quorate.Lease) {
	member, cancel := context.WithCancel(l.Context())
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	r.is(l.Token())
	// After an outage nodes may have other tickets of a claim than its
	// holder. A member that does not find itself joins again.
	for unseen := 0; member.Err() == nil && unseen < 4; {
		switch seen, err := r.divide(member); {
		case err != nil:
		case seen:
			unseen = 0
		default:
			unseen++
		}
		pause(member, r.s.look())
	}
	r.is(0)
	if ctx.Err() == nil {
		r.become(make([]part, len(r.s.specs)))
	}
}

// is sets by which token this replica is a member.
func (r *replica) is(token uint64) {
	r.asking <- struct{}{}
	r.token, r.seen, r.shared = token, token != 0, nil
	<-r.asking
}

// divide asks the nodes for the members, and divides the shards among them. It
// reports whether this replica is one of them. Calls that wait for each other
// share an answer that was asked for after they began.
func (r *replica) divide(ctx context.Context) (seen bool, err error) {
	next := r.asked.Load() + 1
	r.asking <- struct{}{} // not for long: all questions end with the replica
	defer func() { <-r.asking }()
	if r.token == 0 || r.asked.Load() >= next {
		return r.seen, r.failed
	}
	r.asked.Add(1)
	report, err := inspect.Name(ctx, r.s.q, r.s.membersName())
	if r.failed = err; err != nil {
		return false, err
	}
	var members []uint64
	for _, c := range report.Holders {
		members = append(members, c.Token)
	}
	slices.Sort(members)
	r.seen = slices.Contains(members, r.token)
	if !slices.Equal(members, r.shared) { // else nothing has changed, as mostly
		r.shared = members
		r.become(parts(members, r.token, len(r.s.specs)))
	}
	return r.seen, nil
}

// serve has the shard whenever it is this replica's turn, until ctx ends.
func (r *replica) serve(ctx context.Context, shard int) {
	for ctx.Err() == nil {
		p, changed := r.part(shard)
		if p == none {
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		h, err := r.take(ctx, shard)
		switch {
		case h != nil:
			pause(ctx, r.hold(ctx, shard, h))
		case fatal(err):
			r.end(err)
		case !errors.Is(err, context.Canceled):
			pause(ctx, time.Second)
		}
	}
}

// take waits for the claim of a shard, as long as this replica has a part in
// it.
func (r *replica) take(ctx context.Context, shard int) (*core.Lease, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stopped := make(chan struct{})
	defer func() { cancel(); <-stopped }()
	go func() {
		defer close(stopped)
		grace := time.NewTimer(0)
		defer grace.Stop()
		for ctx.Err() == nil {
			p, changed := r.part(shard)
			var after <-chan time.Time
			if p == none {
				grace.Reset(2 * r.s.look())
				after = grace.C
			}
			select {
			case <-after:
				cancel()
			case <-changed:
			case <-ctx.Done():
			}
		}
	}()
	return r.s.cores[shard].AcquireLease(ctx, r.s.specs[shard], false, new(core.Single))
}

// hold runs the shard under its claim until the run ends or another replica
// should have the shard, and releases the claim. It returns how long to wait
// before asking for the shard again.
//
// The next in line often is before the owner in the queue: it passes the claim
// on without running the shard. Two replicas that pass it back and forth, because
// they know different members, pause in between.
func (r *replica) hold(ctx context.Context, shard int, h *core.Lease) (wait time.Duration) {
	defer h.Release()
	inner, stop := h.Derive(ctx)
	defer stop()
	if r.others(inner, shard, h) {
		return r.s.look()
	}
	returned := make(chan struct{})
	var err error
	go func() {
		defer close(returned) // also when f ends its goroutine
		err = r.f(inner, shard, h)
	}()
	if r.wanted(inner, shard, h, returned) {
		stop()
		<-returned
		return 0
	}
	<-returned
	if inner.Err() != nil {
		return 0
	}
	if err != nil {
		r.s.set.Logger.Error("quorate: a shard failed; retrying",
			"name", r.s.name, "shard", shard, "error", err)
	}
	return time.Second
}

// others reports whether a claim that has just been admitted is another
// replica's to have. What this replica knows of the members and of the queue
// may be old: two that passed the claim on to each other would leave the shard
// idle. So it asks before it passes it on.
func (r *replica) others(ctx context.Context, shard int, h *core.Lease) bool {
	if p, _ := r.part(shard); p == owner || !h.Hold().HoldState().Waiters {
		return false
	}
	_, _ = r.divide(ctx)
	if p, _ := r.part(shard); p == owner {
		return false
	}
	report, err := inspect.Name(ctx, r.s.q, r.s.specs[shard].Name)
	return err != nil || len(report.Waiters) > 0
}

// wanted waits until another replica should have the shard, and reports whether
// that happened before the run ended. That is so when the shard is not this
// replica's and another one waits. One whose part has just ended gives the
// owner the time to learn of its own: otherwise the next in line would run the
// shard in between.
func (r *replica) wanted(inner context.Context, shard int, h *core.Lease, returned <-chan struct{}) bool {
	grace, begun := time.NewTimer(0), h.Wanted()
	defer grace.Stop()
	for {
		p, changed := r.part(shard)
		var after <-chan time.Time
		waits := false
		if p != owner { // a push may be lost, so it looks again and again
			waits = h.Hold().HoldState().Waiters
			grace.Reset(r.s.look())
			after = grace.C
		}
		select {
		case <-returned:
			return false
		case <-inner.Done():
			return false
		case <-after:
			if waits {
				return true
			}
		case <-changed:
		case <-begun:
			begun = nil
		}
	}
}
